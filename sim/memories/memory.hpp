// What every memory model is: it takes the access unit's read bursts and gives their beats.
#pragma once

#include <cstdint>

#include "address_map.hpp"

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

// `accepts` and `offer` are called once per cycle, in this order, with rising cycle numbers.
class Memory {
public:
    virtual ~Memory() = default;

    // ARREADY in this cycle.
    virtual bool accepts(uint64_t cycle) = 0;

    // A read that was handed over in this cycle.
    virtual void request(const ReadRequest& read, uint64_t cycle) = 0;

    // What the R channel carries in this cycle, or null. Once offered, a beat stays until it is
    // taken.
    virtual const ReadBeat* offer(uint64_t cycle) = 0;

    // The offered beat was handed over.
    virtual void taken() = 0;
};

// The port that a memory answers.
struct ReadPort {
    AddressMap* map;
    uint32_t bus_bytes;
    uint32_t ids;  // AXI4 IDs, numbered from 0
};

// Byte address of a beat; the first one of an unaligned burst starts at its bus lane all the same.
inline uint64_t beat_address(const ReadRequest& read, uint32_t beat) {
    return (read.address & ~uint64_t{read.beat_bytes - 1}) + uint64_t{beat} * read.beat_bytes;
}

// A beat of a burst. A beat that no region holds as a whole is a decode error.
inline ReadBeat make_beat(const ReadPort& port, const ReadRequest& read, uint32_t beat) {
    const uint64_t address = beat_address(read, beat);
    const uint8_t* data = port.map->find(address, read.beat_bytes);
    return ReadBeat{data,
                    static_cast<uint32_t>(address & (port.bus_bytes - 1)),
                    read.beat_bytes,
                    read.id,
                    data ? OKAY : DECERR,
                    beat + 1 == read.beats};
}

}  // namespace ember
