// Fixed latency and a fixed rate, in the order of the requests.
#pragma once

#include <algorithm>
#include <deque>

#include "memory.hpp"

namespace ember {

// Any number of reads outstanding. The first beat comes `latency_cycles` after the request's cycle,
// or after the beats before it. A beat takes a cycle, or beat_bytes / bytes_per_cycle where
// `bytes_per_cycle` isn't 0 (rounded up).
//
// Any number of writes, too, a beat a cycle beside the reads. A write is answered `latency_cycles`
// after its last beat's cycle; over a link once it has crossed as well, in the way of its own that
// a link has for writes.
class IdealMemory final : public Memory {
public:
    IdealMemory(const MemoryPort& port, uint64_t latency_cycles, uint64_t bytes_per_cycle)
        : port_(port),
          latency_cycles_(latency_cycles),
          bytes_per_cycle_(bytes_per_cycle),
          writes_(port) {}

    bool accepts(uint64_t) override { return true; }

    void request(const BurstRequest& read, uint64_t cycle) override {
        queue_.push_back(Burst{read, cycle + latency_cycles_, spacing(read), 0});
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

    void write(const BurstRequest& write, uint64_t cycle) override {
        uint64_t crossed = cycle;
        if (bytes_per_cycle_) {
            crossed = std::max(cycle, writes_crossed_) + write.beats * spacing(write);
            writes_crossed_ = crossed;
        }
        writes_.push(write, crossed + latency_cycles_);
    }

    const WriteAnswer* answer(uint64_t cycle) override { return writes_.answer(cycle); }

    void answered() override { writes_.answered(); }

private:
    struct Burst {
        BurstRequest read;
        uint64_t due_cycle;  // first cycle in which its first beat may be offered
        uint64_t spacing;    // cycles from beat to beat
        uint32_t beats_done;
    };

    // Cycles from beat to beat.
    uint64_t spacing(const BurstRequest& burst) const {
        if (!bytes_per_cycle_) return 1;
        return (burst.beat_bytes + bytes_per_cycle_ - 1) / bytes_per_cycle_;
    }

    MemoryPort port_;
    uint64_t latency_cycles_;
    uint64_t bytes_per_cycle_;
    uint64_t link_free_cycle_ = 0;
    std::deque<Burst> queue_;
    ReadBeat beat_{};
    bool offered_ = false;
    WritesInOrder writes_;
    uint64_t writes_crossed_ = 0;  // cycle in which the writes so far have crossed the link
};

}  // namespace ember
