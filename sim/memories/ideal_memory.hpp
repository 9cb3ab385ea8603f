// Fixed latency and a fixed rate, in the order of the requests.
#pragma once

#include <algorithm>
#include <deque>

#include "memory.hpp"

namespace ember {

// Any number of reads outstanding. The first beat comes `latency_cycles` after the request's cycle,
// or after the beats before it. A beat takes a cycle, or beat_bytes / bytes_per_cycle where
// `bytes_per_cycle` isn't 0 (rounded up).
class IdealMemory final : public Memory {
public:
    IdealMemory(const ReadPort& port, uint64_t latency_cycles, uint64_t bytes_per_cycle)
        : port_(port), latency_cycles_(latency_cycles), bytes_per_cycle_(bytes_per_cycle) {}

    bool accepts(uint64_t) override { return true; }

    void request(const ReadRequest& read, uint64_t cycle) override {
        uint64_t spacing = 1;
        if (bytes_per_cycle_) {
            spacing = (read.beat_bytes + bytes_per_cycle_ - 1) / bytes_per_cycle_;
        }
        queue_.push_back(Burst{read, cycle + latency_cycles_, spacing, 0});
    }

    const ReadBeat* offer(uint64_t cycle) override {
        if (offered_) return &beat_;
        if (queue_.empty()) return nullptr;
        const Burst& burst = queue_.front();
        // A narrow link needs `spacing` cycles for a beat, which is there in the last of them.
        const uint64_t due = std::max(burst.due_cycle, link_free_cycle_) + burst.spacing - 1;
        if (due > cycle) return nullptr;
        link_free_cycle_ = due + 1;
        beat_ = make_beat(port_, burst.read, burst.beats_done);
        offered_ = true;
        return &beat_;
    }

    void taken() override {
        offered_ = false;
        queue_.front().beats_done++;
        if (beat_.last) queue_.pop_front();
    }

private:
    struct Burst {
        ReadRequest read;
        uint64_t due_cycle;  // first cycle in which its first beat may be offered
        uint64_t spacing;    // cycles from beat to beat
        uint32_t beats_done;
    };

    ReadPort port_;
    uint64_t latency_cycles_;
    uint64_t bytes_per_cycle_;
    uint64_t link_free_cycle_ = 0;
    std::deque<Burst> queue_;
    ReadBeat beat_{};
    bool offered_ = false;
};

}  // namespace ember
