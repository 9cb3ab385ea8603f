// A DRAM channel behind AXI4 ports: clock ratio, bus width, bursts in parts, IDs in order.
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
//
// Writes wait in a queue of their own, and are answered, in order, when all their data have been on
// the DRAM's bus. An access that a write fills in part costs as much as a whole one.
class DramMemory final : public Memory {
public:
    DramMemory(const MemoryPort& port, const EmberDram& dram, bool record_commands)
        : port_(port),
          dram_(dram),
          channel_(dram),
          oldest_(port.ids, NONE),
          latest_(port.ids),
          answers_(port) {
        if (record_commands) channel_.record(&commands_);
    }

    const std::vector<EmberDramCommand>& commands() const { return commands_; }

    bool accepts(uint64_t cycle) override {
        advance(cycle);
        return port_queues_[0].size() < dram_.port_entries;
    }

    void request(const BurstRequest& read, uint64_t cycle) override {
        uint32_t slot;
        if (free_slots_.empty()) {
            slot = static_cast<uint32_t>(bursts_.size());
            bursts_.emplace_back();
        } else {
            slot = free_slots_.back();
            free_slots_.pop_back();
        }
        Burst& burst = bursts_[slot];
        burst.read = read;
        burst.arrived.assign(accesses(read), 0);
        burst.accesses_ready = burst.beats_done = 0;
        burst.is_offering = false;
        burst.next = NONE;
        if (oldest_[read.id] == NONE) {
            oldest_[read.id] = slot;
        } else {
            bursts_[latest_[read.id]].next = slot;
        }
        latest_[read.id] = slot;
        for (uint32_t n = 0; n < burst.arrived.size(); n++) {
            ask(read, n, uint64_t{slot} << 32 | n, false, cycle);
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

    bool accepts_address(uint64_t) override {
        return port_queues_[1].size() < dram_.port_entries;
    }

    bool accepts_beat(uint64_t cycle) override { return accepts_address(cycle); }

    void write(const BurstRequest& write, uint64_t cycle) override {
        writes_.push_back(Write{write, accesses(write)});
        for (uint32_t n = 0; n < writes_.back().accesses_left; n++) {
            ask(write, n, first_write_ + writes_.size() - 1, true, cycle);
        }
    }

    const WriteAnswer* answer(uint64_t cycle) override {
        advance(cycle);
        return answers_.answer(cycle);
    }

    void answered() override { answers_.answered(); }

private:
    static constexpr uint32_t NONE = 0xffffffff;

    struct Burst {
        BurstRequest read;
        std::vector<uint8_t> arrived;  // by access
        uint32_t accesses_ready;       // accesses before the first that hasn't arrived
        uint32_t beats_done;
        uint32_t next;     // slot of the next burst of the ID
        bool is_offering;  // it is in ready_
    };
    struct PortAccess {
        uint64_t cycle;  // first cycle in which it may be scheduled
        uint64_t address;
        uint64_t tag;  // of a read: slot, number of the access in its burst; number of the write
    };
    struct Write {
        BurstRequest write;
        uint32_t accesses_left;
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
                for (const bool is_write : {false, true}) schedule(is_write);
                channel_.tick();
            }
            auto& done = channel_.done();
            for (; !done.empty() && done.front().clock <= channel_.clock(); done.pop_front()) {
                const uint64_t cycle_back = next_cycle_ + dram_.back_cycles;
                if (done.front().is_write) {
                    writes_[done.front().tag - first_write_].accesses_left--;
                    release_writes(cycle_back);
                } else {
                    returning_.push_back(Returning{cycle_back, done.front().tag});
                }
            }
        }
    }

    // Brings accesses that are due into the scheduler's queue.
    void schedule(bool is_write) {
        auto& waiting = port_queues_[is_write];
        while (!waiting.empty() && waiting.front().cycle <= next_cycle_ &&
               channel_.has_room(is_write)) {
            const PortAccess& access = waiting.front();
            channel_.enqueue(dram_place(dram_, access.address), access.tag, is_write);
            waiting.pop_front();
        }
    }

    // Hands on the answers of writes that are done, up to the first that isn't.
    void release_writes(uint64_t cycle) {
        for (; !writes_.empty() && !writes_.front().accesses_left; writes_.pop_front()) {
            answers_.push(writes_.front().write, cycle);
            first_write_++;
        }
    }

    // Accesses of a burst.
    uint32_t accesses(const BurstRequest& burst) const {
        const uint64_t first = beat_address(burst, 0) / dram_.access_bytes;
        const uint64_t last = (beat_address(burst, burst.beats) - 1) / dram_.access_bytes;
        return static_cast<uint32_t>(last - first + 1);
    }

    void ask(const BurstRequest& burst, uint32_t number, uint64_t tag, bool is_write,
             uint64_t cycle) {
        const uint64_t first = beat_address(burst, 0) / dram_.access_bytes;
        port_queues_[is_write].push_back(
            PortAccess{cycle + dram_.front_cycles, (first + number) * dram_.access_bytes, tag});
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

    MemoryPort port_;
    EmberDram dram_;
    DramChannel channel_;
    std::deque<PortAccess> port_queues_[2];  // reads, writes
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
    std::deque<Write> writes_;  // whose accesses aren't all done, or whose predecessors' aren't
    uint64_t first_write_ = 0;  // number of the first of them
    WritesInOrder answers_;
    std::vector<EmberDramCommand> commands_;
};

}  // namespace ember
