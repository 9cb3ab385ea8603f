// How full the queues inside a unit were, cycle by cycle, and when it delivered.
//
// The levels are registers of the unit's block of counters, which its high-water marks come from,
// seen through ports of simulation_top: the hardware has no counter more for it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "pins.hpp"
#include "unit_queues.hpp"

namespace ember {

constexpr size_t LEVELS = 4;

class Profile {
public:
    explicit Profile(const ProbePins& pins) : pins_(pins) {}

    // Forgets what was seen.
    void clear() {
        for (auto& cycles : cycles_) cycles.clear();
        rows_ = {.seen = rows_.seen};
        bundles_ = {.seen = bundles_.seen};
        running_cycles_ = rows_asked_ = 0;
    }

    bool has_pins() const { return pins_.running != nullptr; }
    uint32_t level(size_t queue) const { return has_pins() ? *pins_.levels[queue] : 0; }
    const std::vector<uint64_t>& cycles(size_t queue) const { return cycles_[queue]; }
    uint64_t running_cycles() const { return running_cycles_; }
    uint64_t rows_asked() const { return rows_asked_; }

    // Cycles until the first delivery and from the last one on: of row beats, or of bundles where
    // there were none.
    uint64_t fill_cycles() const { return deliveries().first; }
    uint64_t drain_cycles() const {
        return deliveries().count ? running_cycles_ - deliveries().last : 0;
    }

    // Called after each cycle with all that the queues have delivered so far.
    void sample(const UnitQueues::Counts& counts) {
        if (!has_pins()) return;
        if (*pins_.running) {
            running_cycles_++;
            rows_asked_ += *pins_.row_asked;
            for (size_t queue = 0; queue < LEVELS; queue++) {
                const size_t level = *pins_.levels[queue];
                if (level >= cycles_[queue].size()) cycles_[queue].resize(level + 1);
                cycles_[queue][level]++;
            }
        }
        rows_.sample(counts.row_beats, running_cycles_);
        bundles_.sample(counts.bundles, running_cycles_);
    }

private:
    struct Deliveries {
        uint64_t count = 0, first = 0, last = 0, seen = 0;

        void sample(uint64_t delivered, uint64_t cycle) {
            if (delivered == seen) return;
            // Counters that were cleared begin anew.
            if (delivered > seen) {
                if (!count++) first = cycle;
                last = cycle;
            }
            seen = delivered;
        }
    };

    const Deliveries& deliveries() const { return rows_.count ? rows_ : bundles_; }

    ProbePins pins_;
    std::array<std::vector<uint64_t>, LEVELS> cycles_;
    Deliveries rows_, bundles_;
    uint64_t running_cycles_ = 0;
    uint64_t rows_asked_ = 0;
};

}  // namespace ember
