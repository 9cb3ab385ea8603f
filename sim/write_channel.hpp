// One AXI4 port for writes of a unit, with the memory that answers it: that of a read port.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "harness.h"
#include "memories/memories.hpp"
#include "pins.hpp"
#include "ports.hpp"
#include "read_channel.hpp"

namespace ember {

class WriteChannel {
public:
    // Addresses and beats are taken apart from each other, whichever is first.
    WriteChannel(const WritePins& pins, ReadChannel& behind, AddressMap& map)
        : pins_(pins),
          behind_(behind),
          map_(map),
          address_hold_(std::string(pins.name) + "_aw"),
          beat_hold_(std::string(pins.name) + "_w") {}

    // Writes in flight are lost; the memory is reset with its read port.
    void reset() {
        *pins_.awready = *pins_.wready = *pins_.bvalid = 0;
        addresses_.clear();
        beats_.clear();
        writes_.clear();
        answer_on_pins_ = false;
        outstanding_ = 0;
        address_hold_.release();
        beat_hold_.release();
    }

    // Bursts whose answer wasn't taken, and beats that wait for their address.
    uint64_t outstanding() const { return outstanding_; }
    bool is_idle() const { return !outstanding_ && beats_.empty(); }
    const EmberWriteCounters& counters() const { return counters_; }
    const std::vector<uint64_t>& beat_cycles() const { return beat_cycles_; }
    void show(EmberStream streams[3]) const {
        streams[0] = {*pins_.awvalid, *pins_.awready};
        streams[1] = {*pins_.wvalid, *pins_.wready};
        streams[2] = {*pins_.bvalid, *pins_.bready};
    }

    void clear_counters() { counters_ = {}; }

    void record(uint64_t limit) {
        recorded_most_ = limit;
        beat_cycles_ = {};
    }

    // Called behind the read port's, which the memory is driven by.
    void drive(uint64_t cycle) {
        Memory& memory = behind_.memory();
        *pins_.awready = memory.accepts_address(cycle);
        *pins_.wready = memory.accepts_beat(cycle);
        const WriteAnswer* answer = memory.answer(cycle);
        *pins_.bvalid = answer != nullptr;
        if (!answer || answer_on_pins_) return;
        answer_on_pins_ = true;
        *pins_.bid = answer->id;
        *pins_.bresp = answer->response;
        if (answer->response == OKAY) store(writes_.front());
        writes_.pop_front();
    }

    // Gives whether there was a handshake.
    bool sample(uint64_t cycle) {
        bool active = sample_address(cycle);
        active |= sample_beat(cycle);
        while (!addresses_.empty() && beats_.size() >= addresses_.front().beats) join(cycle);
        return sample_answer() || active;
    }

private:
    // The payload of AW, as the hold check compares it.
    struct Address {
        uint64_t address;
        uint32_t id, length, size, burst;
    };
    struct Beat {
        uint64_t strobes;
        std::array<uint8_t, EMBER_BUS_BYTES> data;
        bool last;
    };
    struct Write {
        BurstRequest request;
        std::vector<Beat> beats;
    };

    bool sample_address(uint64_t cycle) {
        const bool valid = *pins_.awvalid;
        const bool ready = *pins_.awready;
        const auto payload = [&] {
            return Address{*pins_.awaddr, *pins_.awid, *pins_.awlen, *pins_.awsize,
                           *pins_.awburst};
        };
        address_hold_.check(valid, ready, cycle, [&](uint8_t* bytes) {
            const Address held = payload();
            std::memcpy(bytes, &held, sizeof held);
        });
        if (!valid || !ready) return false;
        const Address write = payload();
        const BurstRequest request{write.address, write.id, write.length + 1, 1u << write.size};
        check_burst(std::string(pins_.name) + "_aw", pins_.bytes, request, write.burst, cycle);
        addresses_.push_back(request);
        counters_.write_requests++;
        outstanding_++;
        counters_.peak_outstanding_writes =
            std::max(counters_.peak_outstanding_writes, outstanding_);
        return true;
    }

    bool sample_beat(uint64_t cycle) {
        const bool valid = *pins_.wvalid;
        const bool ready = *pins_.wready;
        beat_hold_.check(valid, ready, cycle, [&](uint8_t* bytes) {
            std::memcpy(bytes, pins_.wdata, pins_.bytes);
            std::memcpy(bytes + pins_.bytes, pins_.wstrb, sizeof(uint64_t));
            bytes[pins_.bytes + sizeof(uint64_t)] = *pins_.wlast;
        });
        if (!valid || !ready) return false;
        Beat& beat = beats_.emplace_back();
        beat.strobes = *pins_.wstrb;
        beat.last = *pins_.wlast;
        std::memcpy(beat.data.data(), pins_.wdata, pins_.bytes);
        counters_.write_beats++;
        counters_.write_bytes += static_cast<uint64_t>(std::popcount(beat.strobes));
        if (beat_cycles_.size() < recorded_most_) beat_cycles_.push_back(cycle);
        return true;
    }

    bool sample_answer() {
        if (!*pins_.bvalid || !*pins_.bready) return false;
        behind_.memory().answered();
        answer_on_pins_ = false;
        outstanding_--;
        counters_.write_errors += *pins_.bresp != OKAY;
        return true;
    }

    // Makes a write of the oldest address and its beats, and gives it to the memory.
    void join(uint64_t cycle) {
        const BurstRequest request = addresses_.front();
        addresses_.pop_front();
        const auto end = beats_.begin() + static_cast<std::ptrdiff_t>(request.beats);
        writes_.push_back(Write{request, {beats_.begin(), end}});
        beats_.erase(beats_.begin(), end);
        for (uint32_t n = 0; n < request.beats; n++) check_beat(writes_.back(), n, cycle);
        behind_.memory().write(request, cycle);
    }

    // The lanes of a beat: those of its bytes, from the burst's address on.
    uint64_t lanes(const BurstRequest& request, uint32_t beat) const {
        const uint64_t begin = std::max(beat_address(request, beat), request.address);
        const uint64_t first = begin & (pins_.bytes - 1);
        const uint64_t end = (beat_address(request, beat) & (pins_.bytes - 1)) + request.beat_bytes;
        return ~uint64_t{0} >> (64 - (end - first)) << first;
    }

    void check_beat(const Write& write, uint32_t number, uint64_t cycle) const {
        const auto fail = [&](const std::string& rule) {
            throw SimulationError(std::string(pins_.name) + "_w " + rule + " (beat " +
                                  std::to_string(number) + " of the burst at " +
                                  std::to_string(write.request.address) + ", cycle " +
                                  std::to_string(cycle) + ")");
        };
        const Beat& beat = write.beats[number];
        if (beat.last != (number + 1 == write.request.beats)) {
            fail("must have WLAST with the last beat of a burst, and only there");
        }
        if (beat.strobes & ~lanes(write.request, number)) {
            fail("must have strobes in the lanes of its beats alone");
        }
    }

    // Moves the bytes of a write that is answered with OKAY.
    void store(const Write& write) {
        for (uint32_t n = 0; n < write.request.beats; n++) {
            const uint64_t address = beat_address(write.request, n);
            uint8_t* bytes = map_.find_writable(address, write.request.beat_bytes);
            const uint64_t lane = address & (pins_.bytes - 1);
            for (uint64_t byte = 0; byte < write.request.beat_bytes; byte++) {
                if (write.beats[n].strobes >> (lane + byte) & 1) {
                    bytes[byte] = write.beats[n].data[lane + byte];
                }
            }
        }
    }

    WritePins pins_;
    ReadChannel& behind_;
    AddressMap& map_;
    HoldCheck<sizeof(Address)> address_hold_;
    HoldCheck<EMBER_BUS_BYTES + sizeof(uint64_t) + 1> beat_hold_;
    std::deque<BurstRequest> addresses_;  // whose beats aren't all here
    std::deque<Beat> beats_;              // that belong to no write yet
    std::deque<Write> writes_;            // that the memory hasn't answered
    bool answer_on_pins_ = false;
    uint64_t outstanding_ = 0;
    EmberWriteCounters counters_{};
    uint64_t recorded_most_ = 0;
    std::vector<uint64_t> beat_cycles_;
};

}  // namespace ember
