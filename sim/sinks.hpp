// Sinks: when the execute side takes a bundle or a row beat.
//
// Add one here, to `make_sink` and to `EmberSinkKind`.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "harness.h"
#include "memories/random.hpp"

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

// The first two are called once per cycle, in this order.
class Sink {
public:
    virtual ~Sink() = default;

    // TREADY of the streams in this cycle.
    virtual bool takes_bundle(uint64_t cycle) = 0;
    virtual bool takes_row(uint64_t cycle) = 0;

    // A bundle was handed over, with these event bits.
    virtual void bundle(uint64_t events, uint64_t cycle) = 0;

    // A row beat was handed over: its valid bytes, whether it ends its row.
    virtual void row_beat(uint32_t bytes, bool last, uint64_t cycle) = 0;

    // The queues are reset: rows that are due won't come.
    virtual void reset() = 0;

    // Cycles that it needs for all it was given since it was chosen, were nothing ever late.
    virtual uint64_t busy_cycles() const { return 0; }
};

// Never waits.
class IdealSink final : public Sink {
public:
    bool takes_bundle(uint64_t) override { return true; }
    bool takes_row(uint64_t) override { return true; }
    void bundle(uint64_t, uint64_t) override {}
    void row_beat(uint32_t, bool, uint64_t) override {}
    void reset() override {}
};

// An in-order core: `token_cycles` for each control token of a bundle, then its operands, scalars
// first and then its rows, at `bytes_per_cycle`. A bundle thus takes
// token_cycles * tokens + ceil(operand bytes / bytes_per_cycle) cycles if its rows are there.
class CoreLikeSink final : public Sink {
public:
    CoreLikeSink(PushShape pushes, uint64_t token_cycles, uint64_t bytes_per_cycle)
        : pushes_(std::move(pushes)),
          token_cycles_(token_cycles),
          bytes_per_cycle_(bytes_per_cycle) {}

    bool takes_bundle(uint64_t cycle) override { return rows_due_ == 0 && free_at_ <= now(cycle); }

    // A beat may start in the cycle in which the bytes before it end.
    bool takes_row(uint64_t cycle) override { return rows_due_ > 0 && free_at_ < now(cycle + 1); }

    void bundle(uint64_t events, uint64_t cycle) override {
        const auto tokens = static_cast<uint64_t>(std::popcount(events));
        rows_due_ = pushes_.rows(events);
        free_at_ = now(cycle + token_cycles_ * tokens) + 4 * pushes_.scalars(events);
        busy_ += free_at_ - now(cycle);
    }

    void row_beat(uint32_t bytes, bool last, uint64_t cycle) override {
        free_at_ = std::max(free_at_, now(cycle)) + bytes;
        busy_ += bytes;
        if (last) rows_due_--;
    }

    void reset() override { rows_due_ = free_at_ = 0; }

    uint64_t busy_cycles() const override { return busy_ / bytes_per_cycle_; }

private:
    // Time is counted in bytes, so that the rest of a cycle isn't lost between two beats.
    uint64_t now(uint64_t cycle) const { return cycle * bytes_per_cycle_; }

    PushShape pushes_;
    uint64_t token_cycles_;
    uint64_t bytes_per_cycle_;
    uint64_t rows_due_ = 0;
    uint64_t free_at_ = 0;
    uint64_t busy_ = 0;
};

struct StallingSinkOptions {
    uint64_t seed;
    double stall_probability;   // of a cycle with TREADY low, for each stream on its own
    double freeze_probability;  // of a cycle that begins a freeze of both streams
    uint64_t freeze_cycles;
    bool joint;                 // row beats only after the bundle that announces them
};

class StallingSink final : public Sink {
public:
    StallingSink(PushShape pushes, const StallingSinkOptions& options)
        : pushes_(std::move(pushes)), options_(options), random_(options.seed) {}

    bool takes_bundle(uint64_t cycle) override {
        if (frozen_until_ <= cycle && random_.chance(options_.freeze_probability)) {
            frozen_until_ = cycle + options_.freeze_cycles;
        }
        return takes(cycle) && !(options_.joint && rows_due_ > 0);
    }

    bool takes_row(uint64_t cycle) override { return takes(cycle) && !(options_.joint && rows_due_ == 0); }

    void bundle(uint64_t events, uint64_t) override { rows_due_ += pushes_.rows(events); }

    void row_beat(uint32_t, bool last, uint64_t) override { rows_due_ -= last && rows_due_ > 0; }

    void reset() override { rows_due_ = 0; }

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

inline std::unique_ptr<Sink> make_sink(const EmberSink& choice, const PushShape& pushes) {
    switch (choice.kind) {
        case EMBER_CORE_LIKE_SINK:
            return std::make_unique<CoreLikeSink>(pushes, choice.token_cycles,
                                                  choice.bytes_per_cycle);
        case EMBER_STALLING_SINK:
            return std::make_unique<StallingSink>(
                pushes, StallingSinkOptions{.seed = choice.seed,
                                            .stall_probability = choice.stall_probability,
                                            .freeze_probability = choice.freeze_probability,
                                            .freeze_cycles = choice.freeze_cycles,
                                            .joint = choice.joint != 0});
        default:
            return std::make_unique<IdealSink>();
    }
}

}  // namespace ember
