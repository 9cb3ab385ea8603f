// The chip's model for Python, by way of ctypes.
#include "sdram_chip.hpp"

#include <cstring>

using ember::SdramChip;

extern "C" {

SdramChip* ember_sdram_create(const ember::SdramLimits* limits, int keep_trace) {
    auto* chip = new SdramChip(*limits);
    chip->keep_trace = keep_trace;
    return chip;
}

void ember_sdram_destroy(SdramChip* chip) { delete chip; }

uint16_t ember_sdram_edge(SdramChip* chip, const ember::SdramEdge* pins) { return chip->edge(*pins); }

uint64_t ember_sdram_violations(const SdramChip* chip) { return chip->violation_count; }

// Copies rule and text of a violation, ended by NUL; false if there is none of that number.
int ember_sdram_violation(const SdramChip* chip, uint64_t number, char* rule, char* text, int room) {
    if (number >= chip->violations.size()) return 0;
    std::strncpy(rule, chip->violations[number].rule, room - 1);
    std::strncpy(text, chip->violations[number].text.c_str(), room - 1);
    return 1;
}

uint64_t ember_sdram_trace(const SdramChip* chip, ember::SdramCommand* commands, uint64_t room) {
    for (uint64_t i = 0; i < room && i < chip->trace.size(); i++) commands[i] = chip->trace[i];
    return chip->trace.size();
}

uint16_t* ember_sdram_words(SdramChip* chip) { return &chip->word(0); }
}
