// The two queues of one unit with the sink that drains them, and the stream that feeds it lines.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string>

#include "harness.h"
#include "pins.hpp"
#include "ports.hpp"
#include "sinks.hpp"

namespace ember {

constexpr size_t BUS_BYTES = EMBER_BUS_BYTES;
constexpr size_t BUNDLE_BYTES = EMBER_BUNDLE_BYTES;
constexpr uint64_t EVENT_MASK = (uint64_t{1} << EMBER_EVENT_BITS) - 1;
constexpr size_t LINE_BYTES = 64;
// Behind a reduce unit there are none, and rows are its results; unless it writes them.
constexpr bool HAS_BUNDLES = !EMBER_REDUCES;
constexpr bool HAS_ROWS = !EMBER_WRITES;
static_assert(EMBER_EVENT_BITS < 64 && std::has_single_bit(BUS_BYTES));

class UnitQueues {
public:
    struct Counts {
        uint64_t bundles, row_beats, row_bytes;
    };

    explicit UnitQueues(const UnitPins& pins)
        : pins_(pins), bundle_hold_(pins.bundle_name), row_hold_(pins.row_name) {
        choose({});
    }

    // Outputs not yet taken are lost with the unit's state.
    void reset() {
        if (HAS_BUNDLES) *pins_.bundle_tready = 0;
        if (HAS_ROWS) *pins_.row_tready = 0;
        sink_ = make_sink(choice_, pushes_);
        bundle_hold_.release();
        row_hold_.release();
        announced_ = false;
    }

    void choose(const EmberSink& choice) {
        choice_ = choice;
        pushes_ = {{choice.scalars_per_event, choice.scalars_per_event + choice.events},
                   {choice.row_event_masks, choice.row_event_masks + choice.row_entries}};
        sink_ = make_sink(choice_, pushes_);
    }

    bool waits() const { return waits_; }
    bool is_reset() const { return !(*pins_.aresetn >> pins_.number & 1); }
    bool irq() const { return *pins_.irq >> pins_.number & 1; }
    const Counts& counts() const { return counts_; }
    uint64_t rows() const { return rows_; }
    const Sink& sink() const { return *sink_; }
    void show(EmberStream streams[2]) const {
        streams[0] = {};
        if (HAS_BUNDLES) streams[0] = {*pins_.bundle_tvalid, *pins_.bundle_tready};
        streams[1] = {};
        if (HAS_ROWS) streams[1] = {*pins_.row_tvalid, *pins_.row_tready};
    }
    void clear_counters() { counts_ = {}; }

    // Without an output both queues wait.
    void drive(uint64_t cycle, const EmberOutput* output) {
        if (HAS_BUNDLES) *pins_.bundle_tready = output && sink_->takes_bundle(cycle);
        if (!HAS_ROWS) return;
        if (!HAS_BUNDLES && output) announce_result(cycle);
        *pins_.row_tready = output && sink_->takes_row(cycle);
    }

    // Gives whether there was a handshake.
    bool sample(uint64_t cycle, EmberOutput* output) {
        if (!(*pins_.aresetn >> pins_.number & 1)) {
            // The unit took back what it had shown, and the rows of the last bundles may never
            // come.
            bundle_hold_.release();
            row_hold_.release();
            announced_ = false;
            sink_->reset();
        }
        bool active = HAS_BUNDLES && sample_bundle(cycle, output);
        active |= HAS_ROWS && sample_row(cycle, output);
        waits_ = (HAS_BUNDLES && *pins_.bundle_tvalid) || (HAS_ROWS && *pins_.row_tvalid);
        return active;
    }

private:
    // A result is a token of its own to a sink: event 0, told when its first beat is there.
    void announce_result(uint64_t cycle) {
        if (announced_ || !*pins_.row_tvalid || !sink_->takes_bundle(cycle)) return;
        sink_->bundle(1, cycle);
        announced_ = true;
    }

    bool sample_bundle(uint64_t cycle, EmberOutput* output) {
        const bool valid = *pins_.bundle_tvalid;
        const bool ready = *pins_.bundle_tready;
        bundle_hold_.check(valid, ready, cycle, [&](uint8_t* bytes) {
            std::memcpy(bytes, pins_.bundle_tdata, BUNDLE_BYTES);
            bytes[BUNDLE_BYTES] = *pins_.bundle_tlast;
        });
        if (!valid || !ready) return false;
        uint8_t* bundle = output->bundle_data + output->bundles++ * BUNDLE_BYTES;
        std::memcpy(bundle, pins_.bundle_tdata, BUNDLE_BYTES);
        uint64_t events = 0;
        std::memcpy(&events, bundle, std::min(BUNDLE_BYTES, sizeof events));
        sink_->bundle(events & EVENT_MASK, cycle);
        counts_.bundles++;
        return true;
    }

    bool sample_row(uint64_t cycle, EmberOutput* output) {
        const bool valid = *pins_.row_tvalid;
        const bool ready = *pins_.row_tready;
        row_hold_.check(valid, ready, cycle, [&](uint8_t* bytes) {
            std::memcpy(bytes, pins_.row_tdata, BUS_BYTES);
            bytes[BUS_BYTES] = *pins_.row_tlast;
        });
        if (!valid || !ready) return false;
        const bool last = *pins_.row_tlast;
        const auto bytes = static_cast<uint32_t>(std::popcount(*pins_.row_tkeep));
        const size_t beat = output->row_beats++;
        std::memcpy(output->row_data + beat * BUS_BYTES, pins_.row_tdata, BUS_BYTES);
        if (output->row_last) output->row_last[beat] = last;
        if (output->row_cycles) output->row_cycles[beat] = cycle;
        sink_->row_beat(bytes, last, cycle);
        if (last) announced_ = false;
        counts_.row_beats++;
        counts_.row_bytes += bytes;
        rows_ += last;
        return true;
    }

    UnitPins pins_;
    EmberSink choice_{};
    PushShape pushes_;
    std::unique_ptr<Sink> sink_;
    bool announced_ = false;  // the result that comes next, to the sink
    bool waits_ = false;
    Counts counts_{};
    uint64_t rows_ = 0;  // delivered whole since the model was opened
    HoldCheck<BUNDLE_BYTES + 1> bundle_hold_;
    HoldCheck<BUS_BYTES + 1> row_hold_;
};

// Lines of memory streams that come over AXI4-Stream, in the caller's order, without a gap.
class InputStream {
public:
    explicit InputStream(const InputPins& pins) : pins_(pins) {}

    void set(const uint32_t* destinations, const uint8_t* lines, size_t count) {
        destinations_ = destinations;
        lines_ = lines;
        left_ = count;
        done_bytes_ = 0;
    }

    size_t lines_left() const { return left_; }

    void drive() {
        if (!pins_.tvalid) return;
        *pins_.tvalid = left_ != 0;
        if (!left_) return;
        *pins_.tdest = *destinations_;
        std::memcpy(pins_.tdata, lines_ + done_bytes_, pins_.bytes);
    }

    bool sample() {
        if (!pins_.tvalid || !*pins_.tvalid || !*pins_.tready) return false;
        done_bytes_ += pins_.bytes;
        if (done_bytes_ == LINE_BYTES) {
            done_bytes_ = 0;
            lines_ += LINE_BYTES;
            destinations_++;
            left_--;
        }
        return true;
    }

private:
    InputPins pins_;
    const uint32_t* destinations_ = nullptr;
    const uint8_t* lines_ = nullptr;
    size_t left_ = 0;
    size_t done_bytes_ = 0;  // of the current line
};

}  // namespace ember
