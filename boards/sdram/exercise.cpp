// Random accesses through the controller and its pads, all pins checked by the chip's model.
//
// Requests are served in order, so a shadow of the memory, updated as each request goes in, says
// what every beat must be.
#include "Vtop.h"
#include "sdram_chip.hpp"
#include "verilated.h"

#include <cstring>
#include <deque>
#include <memory>

namespace {

constexpr uint32_t kBeatWords = 8;

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

using Beat = std::array<uint16_t, kBeatWords>;
struct Expected {
    Beat data;
    uint32_t tag;
    bool last;
};
struct Written {
    Beat data;
    uint16_t bytes;
};

}  // namespace

extern "C" {

// The fields of `_Plan` in exercise.py; chances are in thousandths.
struct EmberPlan {
    uint64_t seed, requests;
    uint32_t tag_bits, most_beats, aligned, writes, partial, request_stall, response_stall,
        data_stall;
    uint64_t region_beats;  // requests fall within the first ones
};

struct EmberOutcome {
    uint64_t clocks, began, last_beat, beats, beats_written, wrong, violations;
    uint64_t commands[8];
    uint8_t hung;
    char first[200];
};

void ember_exercise(const ember::SdramLimits* limits, const EmberPlan* plan, EmberOutcome* out) {
    auto context = std::make_unique<VerilatedContext>();
    auto top = std::make_unique<Vtop>(context.get());
    auto chip = std::make_unique<ember::SdramChip>(*limits);
    Random random{plan->seed};
    std::vector<uint16_t> shadow(chip->words());
    for (uint64_t i = 0; i < chip->words(); i++) shadow[i] = chip->word(i) = uint16_t(random.next());
    std::deque<Expected> expected;
    std::deque<Written> to_write;
    std::memset(out, 0, sizeof *out);

    uint64_t requests = 0, idle = 0;
    bool asks = false, gives = false;
    auto edge = [&] {
        top->clk = 1;
        top->eval();
    };
    auto chip_sees_pins = [&] {
        ember::SdramEdge pins{};
        pins.command = uint8_t(top->ras << 2 | top->cas << 1 | top->we);
        pins.bank = top->ba;
        pins.address = top->a;
        pins.mask = top->dqm;
        pins.driven = top->dq_enable;
        pins.data = top->dq_out;
        top->dq_in = chip->edge(pins);
    };
    top->rst = 1;
    top->clk = 0;
    top->eval();
    edge();
    top->clk = 0;
    top->rst = 0;
    while (requests < plan->requests || asks || !expected.empty() || !to_write.empty()) {
        if (!asks && requests < plan->requests && !random.chance(plan->request_stall)) {
            asks = true;
            requests++;
            const uint32_t beats =
                plan->aligned ? plan->most_beats : 1 + uint32_t(random.below(plan->most_beats));
            uint64_t first = random.below(plan->region_beats - beats + 1);
            if (plan->aligned) first -= first % beats;
            top->request_beat = first;
            top->request_length = beats - 1;
            top->request_write = random.chance(plan->writes);
            top->request_tag = uint32_t(random.below(uint64_t{1} << plan->tag_bits));
            for (uint32_t i = 0; i < beats; i++) {
                uint16_t* place = &shadow[(first + i) * kBeatWords];
                if (top->request_write) {
                    Written w{};
                    w.bytes = random.chance(plan->partial) ? uint16_t(random.next()) : 0xFFFF;
                    for (uint32_t k = 0; k < kBeatWords; k++) {
                        w.data[k] = uint16_t(random.next());
                        const uint16_t lanes = w.bytes >> 2 * k & 3;
                        const uint16_t mask = (lanes & 1 ? 0xFF : 0) | (lanes & 2 ? 0xFF00 : 0);
                        place[k] = (place[k] & ~mask) | (w.data[k] & mask);
                    }
                    to_write.push_back(w);
                    out->beats_written++;
                } else {
                    Expected e{};
                    std::memcpy(e.data.data(), place, sizeof e.data);
                    e.tag = top->request_tag;
                    e.last = i == beats - 1;
                    expected.push_back(e);
                }
            }
        }
        top->request_valid = asks;
        if (!gives && !to_write.empty() && !random.chance(plan->data_stall)) gives = true;
        top->write_valid = gives;
        if (gives) {
            std::memcpy(&top->write_data, to_write.front().data.data(), 16);
            top->write_bytes = to_write.front().bytes;
        }
        top->response_ready = !random.chance(plan->response_stall);
        // What the pins show in this clock; what the chip shows is sampled at its end.
        top->eval();
        chip_sees_pins();
        top->eval();
        idle++;
        if (!out->began && top->initialised && requests) out->began = out->clocks;
        if (asks && top->request_ready) {
            asks = false;
            idle = 0;
        }
        if (gives && top->write_ready) {
            gives = false;
            to_write.pop_front();
            idle = 0;
        }
        if (top->response_valid && top->response_ready) {
            idle = 0;
            out->last_beat = out->clocks;
            out->beats++;
            bool good = !expected.empty();
            if (good) {
                const Expected& e = expected.front();
                good = !std::memcmp(&top->response_data, e.data.data(), 16) &&
                       top->response_tag == e.tag && top->response_last == e.last;
                expected.pop_front();
            }
            if (!good && !out->wrong++)
                std::snprintf(out->first, sizeof out->first, "beat %llu at clock %llu is wrong",
                              (unsigned long long)out->beats, (unsigned long long)out->clocks);
        }
        edge();
        top->clk = 0;
        top->eval();
        out->clocks++;
        if (idle > 200000) {
            out->hung = 1;
            break;
        }
    }
    out->violations = chip->violation_count;
    if (!chip->violations.empty() && !out->first[0])
        std::snprintf(out->first, sizeof out->first, "%s: %s", chip->violations[0].rule,
                      chip->violations[0].text.c_str());
    // What was written must be in the chip, and nothing else: the writes on their way come first.
    for (int i = 0; i < 2000 && !out->hung; i++) {
        chip_sees_pins();
        edge();
        top->clk = 0;
        top->eval();
    }
    for (uint64_t i = 0; i < chip->words() && !out->hung; i++)
        if (chip->word(i) != shadow[i] && !out->wrong++)
            std::snprintf(out->first, sizeof out->first, "word %llu of the chip is wrong",
                          (unsigned long long)i);
    for (int i = 0; i < 8; i++) out->commands[i] = chip->counts[i];
    top->final();
}
}
