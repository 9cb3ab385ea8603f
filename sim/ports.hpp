// Ports of the Verilated model as bytes, and the rule that a stalled stream holds its payload.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace ember {

static_assert(std::endian::native == std::endian::little, "ports are read as little-endian bytes");

// The hardware broke a rule of its interfaces, or one of its own assertions.
struct SimulationError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Verilator stores a port in an unsigned integer, or in VlWide, an array of 32-bit words from the
// lowest on. Both are read and written here as the first `Bytes` bytes, whatever the width.
template <size_t Bytes, typename Port>
inline void read_port(const Port& port, uint8_t* bytes) {
    static_assert(std::is_trivially_copyable_v<Port> && sizeof(Port) >= Bytes);
    std::memcpy(bytes, &port, Bytes);
}

template <size_t Bytes, typename Port>
inline void write_port(Port& port, const uint8_t* bytes) {
    static_assert(std::is_trivially_copyable_v<Port> && sizeof(Port) >= Bytes);
    std::memcpy(&port, bytes, Bytes);
}

// Once VALID is high, it and the payload must stay until READY (AXI4 A3.2.1, AXI4-Stream 2.2.1).
template <size_t Bytes>
class HoldCheck {
public:
    explicit HoldCheck(std::string channel) : channel_(std::move(channel)) {}

    void release() { stalled_ = false; }

    // `read` copies the payload, and is called only in and after cycles without a handshake.
    template <typename Read>
    void check(bool valid, bool ready, uint64_t cycle, Read read) {
        if (!stalled_ && (!valid || ready)) return;
        std::array<uint8_t, Bytes> payload;
        read(payload.data());
        if (stalled_) {
            if (!valid) fail("must keep VALID until READY, but dropped it", cycle);
            if (payload != held_) fail("must hold its payload until READY, but changed it", cycle);
        }
        stalled_ = !ready;
        held_ = payload;
    }

private:
    [[noreturn]] void fail(const char* rule, uint64_t cycle) const {
        throw SimulationError(channel_ + " " + rule + " in cycle " +
                              std::to_string(cycle));
    }

    std::string channel_;
    bool stalled_ = false;
    std::array<uint8_t, Bytes> held_{};
};

}  // namespace ember
