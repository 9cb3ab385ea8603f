// Everything that AXI4 allows and a good memory never does; for tests.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include "memory.hpp"
#include "random.hpp"

namespace ember {

struct TestMemoryOptions {
    uint64_t seed;
    uint64_t min_latency_cycles;
    uint64_t max_latency_cycles;
    uint64_t min_write_latency_cycles;
    uint64_t max_write_latency_cycles;
    double request_stall_probability;  // of a cycle with ARREADY or AWREADY low
    double beat_stall_probability;     // of a cycle without a beat or an answer that is due, and
                                       // of one with WREADY low
    bool reorder;                      // bursts of different IDs overtake each other
    bool interleave;                   // beats of different IDs mix
    uint64_t error_base;               // beats that touch this range answer SLVERR
    uint64_t error_bytes;
    uint64_t decode_error_base;        // or DECERR
    uint64_t decode_error_bytes;
};

// Bursts of one ID stay in order, and all writes.
class TestMemory final : public Memory {
public:
    TestMemory(const MemoryPort& port, const TestMemoryOptions& options)
        : port_(port),
          options_(options),
          random_(options.seed),
          queues_(port.ids),
          writes_(port) {}

    bool accepts(uint64_t) override { return !random_.chance(options_.request_stall_probability); }

    void request(const BurstRequest& read, uint64_t cycle) override {
        const uint64_t latency =
            random_.between(options_.min_latency_cycles, options_.max_latency_cycles);
        queues_[read.id].push_back(Burst{read, cycle + latency, 0});
        order_.push_back(read.id);
    }

    const ReadBeat* offer(uint64_t cycle) override {
        if (offered_) return &beat_;
        if (random_.chance(options_.beat_stall_probability)) return nullptr;
        const std::optional<uint32_t> id = choose(cycle);
        if (!id) return nullptr;
        const Burst& burst = queues_[*id].front();
        beat_ = make_beat(port_, burst.read, burst.beats_done);
        const uint8_t fault = fault_of(burst.read, burst.beats_done);
        beat_.response = std::max(beat_.response, fault);
        if (fault != OKAY) beat_.data = nullptr;
        offered_ = true;
        return &beat_;
    }

    void taken() override {
        offered_ = false;
        queues_[beat_.id].front().beats_done++;
        current_ = beat_.id;
        if (!beat_.last) return;
        current_.reset();
        queues_[beat_.id].pop_front();
        // The oldest mark of this ID is the burst that ended, as one ID's bursts stay in order.
        order_.erase(std::find(order_.begin(), order_.end(), beat_.id));
    }

    bool accepts_address(uint64_t) override {
        return !random_.chance(options_.request_stall_probability);
    }

    bool accepts_beat(uint64_t) override {
        return !random_.chance(options_.beat_stall_probability);
    }

    void write(const BurstRequest& write, uint64_t cycle) override {
        writes_.push(write, cycle + random_.between(options_.min_write_latency_cycles,
                                                    options_.max_write_latency_cycles));
    }

    const WriteAnswer* answer(uint64_t cycle) override {
        const BurstRequest* write = writes_.due(cycle);
        if (!write) return nullptr;
        if (!writes_.is_offered() && random_.chance(options_.beat_stall_probability)) {
            return nullptr;
        }
        uint8_t fault = OKAY;
        for (uint32_t beat = 0; beat < write->beats; beat++) {
            fault = std::max(fault, fault_of(*write, beat));
        }
        return writes_.answer(cycle, fault);
    }

    void answered() override { writes_.answered(); }

private:
    struct Burst {
        BurstRequest read;
        uint64_t due_cycle;  // first cycle in which its first beat may be offered
        uint32_t beats_done;
    };

    std::optional<uint32_t> choose(uint64_t cycle) {
        if (current_ && !options_.interleave) return current_;
        candidates_.clear();
        if (!options_.reorder) {
            if (!order_.empty()) candidates_.push_back(order_.front());
        } else {
            for (uint32_t id = 0; id < queues_.size(); id++) candidates_.push_back(id);
        }
        std::erase_if(candidates_, [&](uint32_t id) {
            return queues_[id].empty() || queues_[id].front().due_cycle > cycle;
        });
        if (candidates_.empty()) return std::nullopt;
        return candidates_[random_.between(0, candidates_.size() - 1)];
    }

    uint8_t fault_of(const BurstRequest& burst, uint32_t beat) const {
        const uint64_t address = beat_address(burst, beat);
        const auto touches = [&](uint64_t base, uint64_t bytes) {
            return address + burst.beat_bytes > base && address < base + bytes;
        };
        if (touches(options_.decode_error_base, options_.decode_error_bytes)) return DECERR;
        return touches(options_.error_base, options_.error_bytes) ? SLVERR : OKAY;
    }

    MemoryPort port_;
    TestMemoryOptions options_;
    Random random_;
    std::vector<std::deque<Burst>> queues_;  // by ID
    std::deque<uint32_t> order_;             // IDs of the bursts in flight, oldest first
    std::optional<uint32_t> current_;        // ID of a burst that has begun and not ended
    std::vector<uint32_t> candidates_;
    ReadBeat beat_{};
    bool offered_ = false;
    WritesInOrder writes_;
};

}  // namespace ember
