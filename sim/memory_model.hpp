// Memory models: what answers the access unit's reads, and when.
//
// A model is a class with the five members below, found by overload at compile time, so that the
// clock loop calls no virtual function. Add one here (or in a header of its own), to `AnyMemory`
// and to `make_memory` in harness.cpp.
//
//   bool accepts(cycle)               ARREADY in this cycle
//   void request(read, cycle)         a read that was handed over in this cycle
//   const ReadBeat* offer(cycle)      what the R channel carries in this cycle, or null; once
//                                     offered, a beat stays until it is taken
//   void taken()                      the offered beat was handed over
//
// `accepts` and `offer` are called once per cycle, with rising cycle numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "address_map.hpp"
#include "random.hpp"

namespace ember {

enum Response : uint8_t { OKAY = 0, EXOKAY = 1, SLVERR = 2, DECERR = 3 };

struct ReadRequest {
    uint64_t address;     // bytes
    uint32_t id;
    uint32_t beats;       // 1..256
    uint32_t beat_bytes;  // a power of two, at most the bus
};

struct ReadBeat {
    const uint8_t* data;  // beat_bytes of them; null if the response is an error
    uint32_t lane;        // the first byte's place on the bus
    uint32_t beat_bytes;
    uint32_t id;
    uint8_t response;
    bool last;
};

// A request on its way through a model.
struct Burst {
    ReadRequest read;
    uint64_t due_cycle;  // first cycle in which its first beat may be offered
    uint32_t beats_done = 0;

    // The beat that comes next. A beat that no region holds as a whole is a decode error.
    ReadBeat beat(AddressMap& map, uint32_t bus_bytes) const {
        const uint64_t first = read.address & ~uint64_t{read.beat_bytes - 1};
        const uint64_t address = first + uint64_t{beats_done} * read.beat_bytes;
        const uint8_t* data = map.find(address, read.beat_bytes);
        return ReadBeat{data,
                        static_cast<uint32_t>(address & (bus_bytes - 1)),
                        read.beat_bytes,
                        read.id,
                        data ? OKAY : DECERR,
                        beats_done + 1 == read.beats};
    }
};

// Fixed latency, one beat a cycle, in the order of the requests, any number of them outstanding.
// The first beat comes `latency_cycles` after the request's cycle, or after the beats before it.
class IdealMemory {
public:
    IdealMemory(AddressMap& map, uint32_t bus_bytes, uint64_t latency_cycles)
        : map_(&map), bus_bytes_(bus_bytes), latency_cycles_(latency_cycles) {}

    bool accepts(uint64_t) { return true; }

    void request(const ReadRequest& read, uint64_t cycle) {
        queue_.push_back(Burst{read, cycle + latency_cycles_});
    }

    const ReadBeat* offer(uint64_t cycle) {
        if (!offered_) {
            if (queue_.empty() || queue_.front().due_cycle > cycle) return nullptr;
            beat_ = queue_.front().beat(*map_, bus_bytes_);
            offered_ = true;
        }
        return &beat_;
    }

    void taken() {
        offered_ = false;
        queue_.front().beats_done++;
        if (beat_.last) queue_.pop_front();
    }

private:
    AddressMap* map_;
    uint32_t bus_bytes_;
    uint64_t latency_cycles_;
    std::deque<Burst> queue_;
    ReadBeat beat_{};
    bool offered_ = false;
};

struct TestMemoryOptions {
    uint64_t seed;
    uint64_t min_latency_cycles;
    uint64_t max_latency_cycles;
    double request_stall_probability;  // of a cycle with ARREADY low
    double beat_stall_probability;     // of a cycle without a beat although one is due
    bool reorder;                      // bursts of different IDs overtake each other
    bool interleave;                   // beats of different IDs mix
    uint64_t error_base;               // beats that touch this range answer SLVERR
    uint64_t error_bytes;
};

// Everything that AXI4 allows and `ideal` never does. Bursts of one ID stay in order.
class TestMemory {
public:
    TestMemory(AddressMap& map, uint32_t bus_bytes, uint32_t ids, const TestMemoryOptions& options)
        : map_(&map),
          bus_bytes_(bus_bytes),
          options_(options),
          random_(options.seed),
          queues_(ids) {}

    bool accepts(uint64_t) { return !random_.chance(options_.request_stall_probability); }

    void request(const ReadRequest& read, uint64_t cycle) {
        const uint64_t latency =
            random_.between(options_.min_latency_cycles, options_.max_latency_cycles);
        queues_[read.id].push_back(Burst{read, cycle + latency});
        order_.push_back(read.id);
    }

    const ReadBeat* offer(uint64_t cycle) {
        if (offered_) return &beat_;
        if (random_.chance(options_.beat_stall_probability)) return nullptr;
        const std::optional<uint32_t> id = choose(cycle);
        if (!id) return nullptr;
        const Burst& burst = queues_[*id].front();
        beat_ = burst.beat(*map_, bus_bytes_);
        if (beat_.response == OKAY && in_error_range(burst)) {
            beat_.response = SLVERR;
            beat_.data = nullptr;
        }
        offered_ = true;
        return &beat_;
    }

    void taken() {
        offered_ = false;
        queues_[beat_.id].front().beats_done++;
        current_ = beat_.id;
        if (!beat_.last) return;
        current_.reset();
        queues_[beat_.id].pop_front();
        // The oldest mark of this ID is the burst that ended, as one ID's bursts stay in order.
        order_.erase(std::find(order_.begin(), order_.end(), beat_.id));
    }

private:
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

    bool in_error_range(const Burst& burst) const {
        const uint64_t bytes = burst.read.beat_bytes;
        const uint64_t address = (burst.read.address & ~(bytes - 1)) + burst.beats_done * bytes;
        return address + bytes > options_.error_base &&
               address < options_.error_base + options_.error_bytes;
    }

    AddressMap* map_;
    uint32_t bus_bytes_;
    TestMemoryOptions options_;
    Random random_;
    std::vector<std::deque<Burst>> queues_;  // by ID
    std::deque<uint32_t> order_;             // IDs of the bursts in flight, oldest first
    std::optional<uint32_t> current_;        // ID of a burst that has begun and not ended
    std::vector<uint32_t> candidates_;
    ReadBeat beat_{};
    bool offered_ = false;
};

}  // namespace ember
