// One AXI4 read port of the units with the memory that answers it.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "harness.h"
#include "memories/memories.hpp"
#include "pins.hpp"
#include "ports.hpp"

namespace ember {

// Refuses bursts that AXI doesn't allow, or that the port is too narrow for.
inline void check_burst(const std::string& channel, uint32_t bus_bytes,
                        const BurstRequest& request, uint32_t burst, uint64_t cycle) {
    const auto fail = [&](const std::string& rule) {
        throw SimulationError(channel + " " + rule + " (address " +
                              std::to_string(request.address) + ", cycle " +
                              std::to_string(cycle) + ")");
    };
    const char letter = channel.ends_with("_ar") ? 'R' : 'W';
    if (burst != 1) {
        fail(std::string("must ask for INCR bursts, not A") + letter + "BURST " +
             std::to_string(burst));
    }
    if (request.beat_bytes > bus_bytes) {
        fail("must ask for beats of at most " + std::to_string(bus_bytes) + " bytes, not " +
             std::to_string(request.beat_bytes));
    }
    const uint64_t end = beat_address(request, request.beats);
    if ((beat_address(request, 0) ^ (end - 1)) >> 12) fail("must not cross a 4 KB boundary");
}

class ReadChannel {
public:
    ReadChannel(const ChannelPins& pins, AddressMap& map)
        : pins_(pins),
          port_{&map, pins.bytes, 1u << pins.id_bits},
          hold_(std::string(pins.name) + "_ar"),
          beats_by_id_(port_.ids) {
        choose(EmberMemory{.kind = EMBER_IDEAL_MEMORY, .min_latency_cycles = 100});
    }

    // Reads in flight are lost with the memory's state.
    void reset() {
        *pins_.arready = *pins_.rvalid = 0;
        memory_ = make_memory(port_, choice_);
        beat_on_pins_ = false;
        outstanding_ = 0;
        hold_.release();
    }

    // Refused while reads are outstanding: their beats would never come.
    bool set_memory(const EmberMemory& choice) {
        if (outstanding_) return false;
        choose(choice);
        return true;
    }

    uint64_t outstanding() const { return outstanding_; }
    void show(EmberStream streams[2]) const {
        streams[0] = {*pins_.arvalid, *pins_.arready};
        streams[1] = {*pins_.rvalid, *pins_.rready};
    }
    const EmberChannelCounters& counters() const { return counters_; }
    const std::vector<uint64_t>& beats_by_id() const { return beats_by_id_; }
    Memory& memory() { return *memory_; }
    const std::vector<EmberRead>& reads() const { return reads_; }

    void clear_counters() {
        counters_ = {};
        std::fill(beats_by_id_.begin(), beats_by_id_.end(), 0);
    }

    void record(uint64_t limit) {
        recorded_most_ = limit;
        reads_ = {};
    }

    void drive(uint64_t cycle) {
        *pins_.arready = memory_->accepts(cycle);
        const ReadBeat* beat = memory_->offer(cycle);
        *pins_.rvalid = beat != nullptr;
        if (!beat || beat_on_pins_) return;
        beat_on_pins_ = true;
        beat_bytes_ = beat->beat_bytes;
        if (!beat->data || beat->beat_bytes != pins_.bytes) {
            // Lanes that carry nothing, and beats of an error, must not be used: make it show.
            std::memset(pins_.rdata, 0xa5, pins_.bytes);
        }
        if (beat->data) std::memcpy(pins_.rdata + beat->lane, beat->data, beat->beat_bytes);
        *pins_.rid = beat->id;
        *pins_.rresp = beat->response;
        *pins_.rlast = beat->last;
    }

    // Gives whether there was a handshake.
    bool sample(uint64_t cycle) {
        const bool requested = sample_address(cycle);
        return sample_data() || requested;
    }

private:
    // The payload of AR, as the hold check compares it.
    struct Address {
        uint64_t address;
        uint32_t id, length, size, burst;
    };

    void choose(const EmberMemory& choice) {
        choice_ = choice;
        if (choice.dram) {
            dram_ = *choice.dram;
            choice_.dram = &dram_;
        }
        memory_ = make_memory(port_, choice_);
    }

    bool sample_address(uint64_t cycle) {
        const bool valid = *pins_.arvalid;
        const bool ready = *pins_.arready;
        const auto payload = [&] {
            return Address{*pins_.araddr, *pins_.arid, *pins_.arlen, *pins_.arsize,
                           *pins_.arburst};
        };
        hold_.check(valid, ready, cycle, [&](uint8_t* bytes) {
            const Address held = payload();
            std::memcpy(bytes, &held, sizeof held);
        });
        counters_.refused_cycles += valid && !ready;
        if (!valid || !ready) return false;
        const Address read = payload();
        const BurstRequest request{read.address, read.id, read.length + 1, 1u << read.size};
        check_burst(std::string(pins_.name) + "_ar", pins_.bytes, request, read.burst, cycle);
        memory_->request(request, cycle);
        if (reads_.size() < recorded_most_) {
            reads_.push_back(EmberRead{cycle, request.address, request.id,
                                       static_cast<uint16_t>(request.beats),
                                       static_cast<uint16_t>(request.beat_bytes)});
        }
        counters_.read_requests++;
        outstanding_++;
        counters_.peak_outstanding_reads =
            std::max(counters_.peak_outstanding_reads, outstanding_);
        return true;
    }

    bool sample_data() {
        if (!*pins_.rvalid || !*pins_.rready) return false;
        memory_->taken();
        beat_on_pins_ = false;
        outstanding_ -= *pins_.rlast;
        counters_.read_beats++;
        counters_.read_bytes += beat_bytes_;
        counters_.read_errors += *pins_.rresp != OKAY;
        beats_by_id_[*pins_.rid]++;
        return true;
    }

    ChannelPins pins_;
    MemoryPort port_;
    HoldCheck<sizeof(Address)> hold_;
    EmberMemory choice_{};
    EmberDram dram_{};
    std::unique_ptr<Memory> memory_;
    uint64_t outstanding_ = 0;
    bool beat_on_pins_ = false;
    uint32_t beat_bytes_ = 0;  // of the beat on the pins
    EmberChannelCounters counters_{};
    std::vector<uint64_t> beats_by_id_;
    uint64_t recorded_most_ = 0;
    std::vector<EmberRead> reads_;
};

}  // namespace ember
