// Reads of the unit and accesses of the host through memory and controller, against the chip.
//
// Requests are taken one after the other, and a bank keeps their order, so a shadow of the memory,
// updated as each is taken, says what every beat must be.
#include "Vtop.h"
#include "ddr3_chip.hpp"
#include "verilated.h"

#include <cstring>
#include <memory>

namespace {

constexpr uint64_t kBeatBytes = 16;
constexpr uint64_t kRestCycles = 600;  // after the reset: the buffer of the answers is cleared
constexpr uint64_t kHungCycles = 20000;

struct Random {  // splitmix64
    uint64_t state;
    uint64_t next() {
        uint64_t z = state += 0x9E3779B97F4A7C15ull;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ z >> 27) * 0x94D049BB133111EBull;
        return z ^ z >> 31;
    }
    uint64_t below(uint64_t limit) { return next() % limit; }
    bool chance(uint32_t per_thousand) { return below(1000) < per_thousand; }
};

struct Expected {
    ember::Beat data;
    uint32_t id;
    bool last;
};

template <typename Wide>
ember::Beat to_beat(const Wide& wide) {
    ember::Beat beat;
    std::memcpy(beat.data(), &wide, sizeof beat);
    return beat;
}

}  // namespace

extern "C" {

// The fields of `_Plan` and `_Outcome` in exercise.py; chances are in thousandths.
struct EmberPlan {
    uint64_t seed, requests, region_beats;
    uint32_t most_beats, aligned, request_stall, response_stall, host_accesses;
};

struct EmberOutcome {
    uint64_t began, last_beat, beats, host_accesses, wrong, violations;
    uint64_t commands[8];
    uint8_t hung;
    char first[200];
};

void ember_exercise(const ember::Ddr3Limits* limits, const EmberPlan* plan, EmberOutcome* out) {
    auto context = std::make_unique<VerilatedContext>();
    auto top = std::make_unique<Vtop>(context.get());
    ember::Ddr3Chip chip(*limits);
    Random random{plan->seed};
    std::unordered_map<uint64_t, ember::Beat> shadow;
    auto known = [&](uint64_t beat) {
        auto found = shadow.find(beat);
        return found == shadow.end() ? ember::Ddr3Chip::original(beat) : found->second;
    };
    std::deque<Expected> expected;
    std::memset(out, 0, sizeof *out);
    auto wrong = [&](const char* what, uint64_t cycle) {
        if (!out->wrong++)
            std::snprintf(out->first, sizeof out->first, "%s at cycle %llu is wrong", what,
                          (unsigned long long)cycle);
    };

    uint64_t requests = 0, first = 0, idle = 0, host_beat = 0;
    uint32_t beats = 0;
    bool asks = false, host_asks = false, host_waits = false;
    ember::Beat host_data{}, host_expected{};
    top->rst = 1;
    top->clk = 0;
    top->eval();
    top->clk = 1;
    top->eval();
    top->clk = 0;
    top->rst = 0;
    top->initialised = 1;
    for (uint64_t cycle = 0;; cycle++) {
        const bool all_asked = requests == plan->requests && !asks;
        if (all_asked && expected.empty() && !host_asks && !host_waits) break;
        if (cycle >= kRestCycles && !asks && requests < plan->requests &&
            !random.chance(plan->request_stall)) {
            asks = true;
            if (!requests++) out->began = cycle;
            beats = plan->aligned ? plan->most_beats : 1 + uint32_t(random.below(plan->most_beats));
            first = random.below(plan->region_beats - beats + 1);
            if (plan->aligned) first -= first % beats;
            top->araddr = first * kBeatBytes;
            top->arlen = beats - 1;
            top->arid = uint32_t(random.below(16));
        }
        top->arvalid = asks;
        top->rready = !random.chance(plan->response_stall);
        if (cycle >= kRestCycles && !all_asked && !host_asks && !host_waits &&
            random.chance(plan->host_accesses)) {
            host_asks = true;
            host_beat = random.below(plan->region_beats);
            host_data = {random.next(), random.next()};
            top->link_is_write = random.chance(500);
            top->link_address = host_beat * kBeatBytes;
            std::memcpy(&top->link_data, host_data.data(), kBeatBytes);
        }
        top->link_valid = host_asks;
        const ember::Ddr3Answer answer = chip.answer();
        top->dfi_read_valid = answer.valid;
        const ember::Beat noise = {random.next(), random.next()};
        std::memcpy(&top->dfi_read_data, (answer.valid ? answer.data : noise).data(), kBeatBytes);
        top->eval();

        ember::Ddr3Cycle pins{};
        pins.phases[0] = {top->dfi_p0_selected != 0, uint8_t(top->dfi_p0_command),
                          top->dfi_p0_bank, top->dfi_p0_address};
        pins.phases[1] = {top->dfi_p1_selected != 0, uint8_t(top->dfi_p1_command),
                          top->dfi_p1_bank, top->dfi_p1_address};
        pins.read_enable = top->dfi_read_enable;
        pins.write_enable = top->dfi_write_enable;
        pins.write_data = to_beat(top->dfi_write_data);
        pins.write_mask = top->dfi_write_mask;
        chip.cycle(pins);

        idle++;
        if (asks && top->arready) {
            asks = false;
            idle = 0;
            for (uint32_t i = 0; i < beats; i++)
                expected.push_back({known(first + i), top->arid, i == beats - 1});
        }
        if (host_asks && top->link_ready) {
            host_asks = false;
            host_waits = true;
            idle = 0;
            host_expected = known(host_beat);
            if (top->link_is_write) shadow[host_beat] = host_data;
        }
        if (top->rvalid && top->rready) {
            idle = 0;
            out->last_beat = cycle;
            out->beats++;
            if (expected.empty() || to_beat(top->rdata) != expected.front().data ||
                top->rid != expected.front().id || top->rlast != expected.front().last ||
                top->rresp)
                wrong("beat", cycle);
            if (!expected.empty()) expected.pop_front();
        }
        if (top->link_answer_valid) {
            idle = 0;
            out->host_accesses++;
            if (!host_waits || top->link_answer_error ||
                (!top->link_is_write && to_beat(top->link_answer_data) != host_expected))
                wrong("the host's access", cycle);
            host_waits = false;
        }
        top->clk = 1;
        top->eval();
        top->clk = 0;
        top->eval();
        if (idle > kHungCycles) {
            out->hung = 1;
            break;
        }
    }
    chip.check_refreshes();
    out->violations = chip.violation_count;
    if (chip.violation_count && !out->first[0])
        std::snprintf(out->first, sizeof out->first, "%s", chip.first_violation.c_str());
    for (int i = 0; i < 8; i++) out->commands[i] = chip.counts[i];
    top->final();
}
}
