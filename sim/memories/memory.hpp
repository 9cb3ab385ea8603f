// What every memory model is: it takes the access unit's bursts, gives the beats of reads, and
// answers writes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "address_map.hpp"

namespace ember {

enum Response : uint8_t { OKAY = 0, EXOKAY = 1, SLVERR = 2, DECERR = 3 };

// A burst of reads or of writes.
struct BurstRequest {
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

// Of a whole burst.
struct WriteAnswer {
    uint32_t id;
    uint8_t response;
};

// `accepts` and `offer` are called once per cycle, in this order, with rising cycle numbers; behind
// them, where the memory has a port for writes, `accepts_address`, `accepts_beat` and `answer`.
//
// Writes. A memory only says when it answers a burst and with what; the bytes are moved for it when
// the answer is first offered, so whoever reads before that finds what was there before. Of a burst
// whose answer is an error nothing is written. All answers come in the order of the addresses.
class Memory {
public:
    virtual ~Memory() = default;

    // ARREADY in this cycle.
    virtual bool accepts(uint64_t cycle) = 0;

    // A read that was handed over in this cycle.
    virtual void request(const BurstRequest& read, uint64_t cycle) = 0;

    // What the R channel carries in this cycle, or null. Once offered, a beat stays until it is
    // taken.
    virtual const ReadBeat* offer(uint64_t cycle) = 0;

    // The offered beat was handed over.
    virtual void taken() = 0;

    // AWREADY and WREADY in this cycle.
    virtual bool accepts_address(uint64_t) { return true; }
    virtual bool accepts_beat(uint64_t) { return true; }

    // A write whose address and last beat were handed over by this cycle.
    virtual void write(const BurstRequest& write, uint64_t cycle) = 0;

    // What the B channel carries in this cycle, or null. Once offered, it stays until it is taken.
    virtual const WriteAnswer* answer(uint64_t cycle) = 0;

    // The offered answer was handed over.
    virtual void answered() = 0;
};

// The port that a memory answers.
struct MemoryPort {
    AddressMap* map;
    uint32_t bus_bytes;
    uint32_t ids;  // AXI4 IDs of reads, numbered from 0
};

// Byte address of a beat; the first one of an unaligned burst starts at its bus lane all the same.
inline uint64_t beat_address(const BurstRequest& burst, uint32_t beat) {
    return (burst.address & ~uint64_t{burst.beat_bytes - 1}) + uint64_t{beat} * burst.beat_bytes;
}

// A beat of a burst. A beat that no region holds as a whole is a decode error.
inline ReadBeat make_beat(const MemoryPort& port, const BurstRequest& read, uint32_t beat) {
    const uint64_t address = beat_address(read, beat);
    const uint8_t* data = port.map->find(address, read.beat_bytes);
    return ReadBeat{data,
                    static_cast<uint32_t>(address & (port.bus_bytes - 1)),
                    read.beat_bytes,
                    read.id,
                    data ? OKAY : DECERR,
                    beat + 1 == read.beats};
}

// The answer to a burst of writes: a decode error if no region holds one of its beats as a whole,
// else a slave error if one of the regions is only read.
inline WriteAnswer make_answer(const MemoryPort& port, const BurstRequest& write) {
    uint8_t response = OKAY;
    for (uint32_t beat = 0; beat < write.beats; beat++) {
        const uint64_t address = beat_address(write, beat);
        uint8_t of_beat = OKAY;
        if (!port.map->find(address, write.beat_bytes)) {
            of_beat = DECERR;
        } else if (!port.map->find_writable(address, write.beat_bytes)) {
            of_beat = SLVERR;
        }
        response = std::max(response, of_beat);
    }
    return WriteAnswer{write.id, response};
}

// Writes that wait for their answers, in order.
class WritesInOrder {
public:
    explicit WritesInOrder(const MemoryPort& port) : port_(port) {}

    // A write that is answered in `due_cycle` at the earliest, and behind those before it.
    void push(const BurstRequest& write, uint64_t due_cycle) {
        writes_.push_back(Write{write, due_cycle});
    }

    // The oldest write, if it is due or its answer is offered already; else null.
    const BurstRequest* due(uint64_t cycle) const {
        const bool is_due = !writes_.empty() && (offered_ || writes_.front().due_cycle <= cycle);
        return is_due ? &writes_.front().write : nullptr;
    }

    bool is_offered() const { return offered_; }

    // The answer to the write that is due, or null; `fault` is what is worse than its regions say.
    const WriteAnswer* answer(uint64_t cycle, uint8_t fault = OKAY) {
        const BurstRequest* write = due(cycle);
        if (!write) return nullptr;
        if (!offered_) answer_ = make_answer(port_, *write);
        answer_.response = std::max(answer_.response, fault);
        offered_ = true;
        return &answer_;
    }

    void answered() {
        offered_ = false;
        writes_.pop_front();
    }

private:
    struct Write {
        BurstRequest write;
        uint64_t due_cycle;
    };

    MemoryPort port_;
    std::deque<Write> writes_;
    WriteAnswer answer_{};
    bool offered_ = false;
};

}  // namespace ember
