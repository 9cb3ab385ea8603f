// Sinks: when the execute side takes a bundle or a row beat.
//
// A sink is a class with the five members below; the clock loop is compiled for each. Add one here,
// to `AnySink` and to `make_sink` in harness.cpp.
//
//   bool takes_bundle(cycle)          TREADY of the bundle stream in this cycle
//   bool takes_row(cycle)             TREADY of the row stream in this cycle
//   void bundle(events, cycle)        a bundle was handed over; its event bits
//   void row_beat(bytes, last, cycle) a row beat was handed over; its valid bytes, end of its row
//   void reset()                      the queues are reset: rows that are due won't come
//
// The first two are called once per cycle, in this order.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "random.hpp"

namespace ember {

// What a program pushes with which event; fixed while it runs.
struct PushShape {
    std::vector<uint32_t> scalars_per_event;  // by event bit
    std::vector<uint64_t> row_event_masks;    // by row entry

    uint64_t rows(uint64_t events) const {
        return static_cast<uint64_t>(
            std::count_if(row_event_masks.begin(), row_event_masks.end(),
                          [&](uint64_t mask) { return (mask & events) != 0; }));
    }

    uint64_t scalars(uint64_t events) const {
        uint64_t total = 0;
        for (; events; events &= events - 1) {
            const auto event = static_cast<size_t>(std::countr_zero(events));
            if (event < scalars_per_event.size()) total += scalars_per_event[event];
        }
        return total;
    }
};

// Never waits.
class IdealSink {
public:
    bool takes_bundle(uint64_t) { return true; }
    bool takes_row(uint64_t) { return true; }
    void bundle(uint64_t, uint64_t) {}
    void row_beat(uint32_t, bool, uint64_t) {}
    void reset() {}
};

// An in-order core: `token_cycles` for each control token of a bundle, then its operands, scalars
// first and then its rows, at `bytes_per_cycle`. A bundle thus takes
// token_cycles * tokens + ceil(operand bytes / bytes_per_cycle) cycles if its rows are there.
class CoreLikeSink {
public:
    CoreLikeSink(PushShape pushes, uint64_t token_cycles, uint64_t bytes_per_cycle)
        : pushes_(std::move(pushes)),
          token_cycles_(token_cycles),
          bytes_per_cycle_(bytes_per_cycle) {}

    bool takes_bundle(uint64_t cycle) { return rows_due_ == 0 && free_at_ <= now(cycle); }

    // A beat may start in the cycle in which the bytes before it end.
    bool takes_row(uint64_t cycle) { return rows_due_ > 0 && free_at_ < now(cycle + 1); }

    void bundle(uint64_t events, uint64_t cycle) {
        const auto tokens = static_cast<uint64_t>(std::popcount(events));
        rows_due_ = pushes_.rows(events);
        free_at_ = now(cycle + token_cycles_ * tokens) + 4 * pushes_.scalars(events);
    }

    void row_beat(uint32_t bytes, bool last, uint64_t cycle) {
        free_at_ = std::max(free_at_, now(cycle)) + bytes;
        if (last) rows_due_--;
    }

    void reset() { rows_due_ = free_at_ = 0; }

private:
    // Time is counted in bytes, so that the rest of a cycle isn't lost between two beats.
    uint64_t now(uint64_t cycle) const { return cycle * bytes_per_cycle_; }

    PushShape pushes_;
    uint64_t token_cycles_;
    uint64_t bytes_per_cycle_;
    uint64_t rows_due_ = 0;
    uint64_t free_at_ = 0;
};

struct StallingSinkOptions {
    uint64_t seed;
    double stall_probability;   // of a cycle with TREADY low, for each stream on its own
    double freeze_probability;  // of a cycle that begins a freeze of both streams
    uint64_t freeze_cycles;
    bool joint;                 // row beats only after the bundle that announces them
};

class StallingSink {
public:
    StallingSink(PushShape pushes, const StallingSinkOptions& options)
        : pushes_(std::move(pushes)), options_(options), random_(options.seed) {}

    bool takes_bundle(uint64_t cycle) {
        if (frozen_until_ <= cycle && random_.chance(options_.freeze_probability)) {
            frozen_until_ = cycle + options_.freeze_cycles;
        }
        return takes(cycle) && !(options_.joint && rows_due_ > 0);
    }

    bool takes_row(uint64_t cycle) { return takes(cycle) && !(options_.joint && rows_due_ == 0); }

    void bundle(uint64_t events, uint64_t) { rows_due_ += pushes_.rows(events); }

    void row_beat(uint32_t, bool last, uint64_t) { rows_due_ -= last && rows_due_ > 0; }

    void reset() { rows_due_ = 0; }

private:
    bool takes(uint64_t cycle) {
        return !random_.chance(options_.stall_probability) && frozen_until_ <= cycle;
    }

    PushShape pushes_;
    StallingSinkOptions options_;
    Random random_;
    uint64_t rows_due_ = 0;  // meaningful in joint mode only
    uint64_t frozen_until_ = 0;
};

}  // namespace ember
