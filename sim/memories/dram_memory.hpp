// A DRAM channel behind an AXI4 read port: clock ratio, bus width, bursts in parts, IDs in order.
#pragma once

#include <deque>
#include <vector>

#include "dram_channel.hpp"
#include "memory.hpp"

namespace ember {

// A burst is split into the DRAM's accesses, which wait in order for a place in the scheduler's
// queue. A beat can be offered once all its accesses are back and the beats before it, of its burst
// and of the bursts of its ID, were taken. A burst goes on as long as its beats are there; then the
// one goes on whose next beat has been there longest, so bursts of different IDs may interleave.
class DramMemory final : public Memory {
public:
    DramMemory(const ReadPort& port, const EmberDram& dram, bool record_commands)
        : port_(port), dram_(dram), channel_(dram), oldest_(port.ids, NONE), latest_(port.ids) {
        if (record_commands) channel_.record(&commands_);
    }

    const std::vector<EmberDramCommand>& commands() const { return commands_; }

    bool accepts(uint64_t cycle) override {
        advance(cycle);
        return port_queue_.size() < dram_.port_entries;
    }

    void request(const ReadRequest& read, uint64_t cycle) override {
        uint32_t slot;
        if (free_slots_.empty()) {
            slot = static_cast<uint32_t>(bursts_.size());
            bursts_.emplace_back();
        } else {
            slot = free_slots_.back();
            free_slots_.pop_back();
        }
        const uint64_t first = beat_address(read, 0) / dram_.access_bytes;
        const uint64_t end_byte = beat_address(read, read.beats);
        const uint64_t end = (end_byte + dram_.access_bytes - 1) / dram_.access_bytes;
        Burst& burst = bursts_[slot];
        burst.read = read;
        burst.arrived.assign(end - first, 0);
        burst.accesses_ready = burst.beats_done = 0;
        burst.is_offering = false;
        burst.next = NONE;
        if (oldest_[read.id] == NONE) {
            oldest_[read.id] = slot;
        } else {
            bursts_[latest_[read.id]].next = slot;
        }
        latest_[read.id] = slot;
        for (uint64_t n = first; n < end; n++) {
            port_queue_.push_back(PortAccess{cycle + dram_.front_cycles, n * dram_.access_bytes,
                                             uint64_t{slot} << 32 | (n - first)});
        }
    }

    const ReadBeat* offer(uint64_t cycle) override {
        advance(cycle);
        while (!returning_.empty() && returning_.front().cycle <= cycle) {
            arrive(returning_.front().tag);
            returning_.pop_front();
        }
        if (offered_) return &beat_;
        if (ready_.empty()) return nullptr;
        const Burst& burst = bursts_[ready_.front()];
        beat_ = make_beat(port_, burst.read, burst.beats_done);
        offered_ = true;
        return &beat_;
    }

    void taken() override {
        offered_ = false;
        const uint32_t slot = ready_.front();
        Burst& burst = bursts_[slot];
        burst.beats_done++;
        if (!beat_.last) {
            if (has_beat(burst)) return;
            burst.is_offering = false;
            ready_.pop_front();
            return;
        }
        ready_.pop_front();
        const uint32_t next = burst.next;
        oldest_[burst.read.id] = next;
        free_slots_.push_back(slot);
        if (next != NONE) offer_from(next);
    }

private:
    static constexpr uint32_t NONE = 0xffffffff;

    struct Burst {
        ReadRequest read;
        std::vector<uint8_t> arrived;  // by access
        uint32_t accesses_ready;       // accesses before the first that hasn't arrived
        uint32_t beats_done;
        uint32_t next;     // slot of the next burst of the ID
        bool is_offering;  // it is in ready_
    };
    struct PortAccess {
        uint64_t cycle;  // first cycle in which it may be scheduled
        uint64_t address;
        uint64_t tag;  // slot, number of the access in its burst
    };
    struct Returning {
        uint64_t cycle;  // first cycle in which it may be offered
        uint64_t tag;
    };

    // Runs the channel's clock up to this unit cycle.
    void advance(uint64_t cycle) {
        if (!started_) next_cycle_ = cycle;
        started_ = true;
        for (; next_cycle_ <= cycle; next_cycle_++) {
            phase_ += dram_.memory_khz;
            for (; phase_ >= dram_.unit_khz; phase_ -= dram_.unit_khz) {
                while (!port_queue_.empty() && port_queue_.front().cycle <= next_cycle_ &&
                       channel_.has_room()) {
                    channel_.enqueue(dram_place(dram_, port_queue_.front().address),
                                     port_queue_.front().tag);
                    port_queue_.pop_front();
                }
                channel_.tick();
            }
            auto& done = channel_.done();
            while (!done.empty() && done.front().clock <= channel_.clock()) {
                returning_.push_back(
                    Returning{next_cycle_ + dram_.back_cycles, done.front().tag});
                done.pop_front();
            }
        }
    }

    void arrive(uint64_t tag) {
        const auto slot = static_cast<uint32_t>(tag >> 32);
        Burst& burst = bursts_[slot];
        burst.arrived[static_cast<uint32_t>(tag)] = 1;
        while (burst.accesses_ready < burst.arrived.size() &&
               burst.arrived[burst.accesses_ready]) {
            burst.accesses_ready++;
        }
        if (oldest_[burst.read.id] == slot) offer_from(slot);
    }

    void offer_from(uint32_t slot) {
        Burst& burst = bursts_[slot];
        if (burst.is_offering || !has_beat(burst)) return;
        burst.is_offering = true;
        ready_.push_back(slot);
    }

    bool has_beat(const Burst& burst) const {
        const uint64_t last_byte = beat_address(burst.read, burst.beats_done + 1) - 1;
        const uint64_t first = beat_address(burst.read, 0) / dram_.access_bytes;
        return last_byte / dram_.access_bytes - first < burst.accesses_ready;
    }

    ReadPort port_;
    EmberDram dram_;
    DramChannel channel_;
    std::deque<PortAccess> port_queue_;
    std::deque<Returning> returning_;
    std::vector<Burst> bursts_;  // by slot
    std::vector<uint32_t> free_slots_;
    std::vector<uint32_t> oldest_, latest_;  // slot by ID
    std::deque<uint32_t> ready_;             // slots with a beat to offer
    uint64_t next_cycle_ = 0;
    uint64_t phase_ = 0;
    bool started_ = false;
    ReadBeat beat_{};
    bool offered_ = false;
    std::vector<EmberDramCommand> commands_;
};

}  // namespace ember
