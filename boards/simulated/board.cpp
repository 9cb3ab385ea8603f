// The host's end of a simulated board: bytes in, bytes out, over its UART or a byte a cycle.
//
// EMBER_UART: the top has the pins rx and tx; otherwise the streams in_* and out_*.
// EMBER_SDRAM: it has the pins of an SDRAM, whose clock is twice the unit's.

#include <cstddef>
#include <cstdint>

#include "Vtop.h"
#include "verilated.h"
#ifdef EMBER_SDRAM
#include "sdram_chip.hpp"
#endif

namespace {

// Bits of a byte on the wire, with its start and stop bit.
constexpr int BITS = 10;

struct Board {
    VerilatedContext context;
    Vtop top{&context};
    uint64_t cycles = 0;
    double cycles_a_bit;
    // Host to board: what is on the wire, bits left of it, and the cycle of the next change.
    unsigned sending = 0;
    int sending_left = 0;
    double sending_next = 0;
    // Board to host.
    unsigned receiving = 0;
    int receiving_left = 0;
    double receiving_next = 0;
    uint64_t framing_errors = 0;
    // Chances of 256 that the host has no byte, or takes none, in a cycle.
    unsigned stall_in = 0, stall_out = 0;
    uint64_t random;

    Board(double cycles_a_bit, uint64_t seed) : cycles_a_bit(cycles_a_bit), random(seed | 1) {}

    bool stalls(unsigned chance) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return (random >> 20 & 255) < chance;
    }

    void edge() {
        fall();
        rise();
    }

    void fall() {
        top.clk = 0;
#ifdef EMBER_SDRAM
        top.sdram_clk = 0;
#endif
        top.eval();
    }

    void rise() {
        top.clk = 1;
#ifdef EMBER_SDRAM
        chip_edge();
        top.sdram_clk = 1;
        top.eval();
        top.sdram_clk = 0;
        top.eval();
        chip_edge();
        top.sdram_clk = 1;
#endif
        top.eval();
        cycles++;
    }

#ifdef EMBER_SDRAM
    ember::SdramChip* chip = nullptr;

    // The chip's clock rises amid a clock of the controller; what it shows is sampled at the end.
    void chip_edge() {
        ember::SdramEdge pins{};
        pins.command = uint8_t(top.sdram_ras << 2 | top.sdram_cas << 1 | top.sdram_we);
        pins.bank = top.sdram_ba;
        pins.address = top.sdram_a;
        pins.mask = top.sdram_dqm;
        pins.driven = top.sdram_dq_enable;
        pins.data = top.sdram_dq_out;
        top.sdram_dq_in = chip->edge(pins);
    }

    ~Board() { delete chip; }
#endif
};

}  // namespace

extern "C" {

// `limits` are those of the SDRAM's chip; without one they are not looked at.
Board* board_create(double cycles_a_bit, uint64_t seed, const void* chip_limits) {
#ifdef EMBER_SDRAM
    const auto* limits = static_cast<const ember::SdramLimits*>(chip_limits);
#else
    (void)chip_limits;
#endif
    auto* board = new Board(cycles_a_bit, seed);
    Vtop& top = board->top;
#ifdef EMBER_SDRAM
    board->chip = new ember::SdramChip(*limits);
    top.sdram_rst = 1;
#endif
#ifdef EMBER_UART
    top.rx = 1;
#else
    top.in_valid = 0;
    top.out_ready = 0;
#endif
    top.rst = 1;
    for (int i = 0; i < 8; i++) board->edge();
    top.rst = 0;
#ifdef EMBER_SDRAM
    top.sdram_rst = 0;
#endif
    return board;
}

void board_destroy(Board* board) { delete board; }

uint64_t board_cycles(Board* board) { return board->cycles; }

// Limits of the SDRAM's chip that were broken.
uint64_t board_violations(Board* board) {
#ifdef EMBER_SDRAM
    return board->chip->violation_count;
#else
    (void)board;
    return 0;
#endif
}

uint64_t board_framing_errors(Board* board) { return board->framing_errors; }

void board_stall(Board* board, unsigned in, unsigned out) {
    board->stall_in = in;
    board->stall_out = out;
}

// Runs for some cycles, or until `stop` came out; returns how many bytes did. `taken` bytes of the
// input have been put on the wire, the last of them perhaps in part.
size_t board_run(Board* board, uint64_t cycles, const uint8_t* in, size_t in_count, size_t* taken,
                 uint8_t* out, size_t out_capacity, int stop) {
    Vtop& top = board->top;
    size_t sent = 0, got = 0;
    const uint64_t end = board->cycles + cycles;
    while (board->cycles < end && got < out_capacity) {
        const size_t before = got;
#ifdef EMBER_UART
        const double now = double(board->cycles);
        if (board->sending_left == 0 && sent < in_count) {
            board->sending = in[sent++] << 1 | 1u << (BITS - 1);
            board->sending_left = BITS;
            // Bytes follow each other without a gap where there are more.
            if (board->sending_next < now) board->sending_next = now;
        }
        if (board->sending_left > 0 && now >= board->sending_next) {
            top.rx = board->sending & 1;
            board->sending >>= 1;
            board->sending_left--;
            board->sending_next += board->cycles_a_bit;
        }
        board->edge();
        if (board->receiving_left == 0) {
            if (!top.tx) {
                board->receiving_left = BITS;
                board->receiving_next = double(board->cycles) + board->cycles_a_bit / 2;
            }
        } else if (double(board->cycles) >= board->receiving_next) {
            board->receiving = board->receiving >> 1 | unsigned(top.tx) << (BITS - 1);
            board->receiving_next += board->cycles_a_bit;
            if (--board->receiving_left == 0) {
                if (board->receiving >> (BITS - 1))
                    out[got++] = board->receiving >> 1 & 0xff;
                else
                    board->framing_errors++;
            }
        }
#else
        if (!top.in_valid && sent < in_count && !board->stalls(board->stall_in)) {
            top.in_valid = 1;
            top.in_data = in[sent++];
        }
        top.out_ready = !board->stalls(board->stall_out);
        board->fall();
        const bool takes = top.in_valid && top.in_ready;
        if (top.out_valid && top.out_ready) out[got++] = top.out_data;
        board->rise();
        if (takes) top.in_valid = 0;
#endif
        if (got > before && out[got - 1] == stop) break;
    }
    *taken = sent;
    return got;
}

}  // extern "C"
