/* Driver of the access unit; see ember_hw.h. */
#include "ember_hw.h"

static uint32_t read_register(const struct ember_hw *unit, uint32_t address) {
    return unit->registers[address / 4];
}

static void write_register(const struct ember_hw *unit, uint32_t address, uint32_t value) {
    unit->registers[address / 4] = value;
}

enum ember_hw_state ember_hw_state(const struct ember_hw *unit) {
    return (enum ember_hw_state)(read_register(unit, EMBER_HW_STATUS) & EMBER_HW_STATE_MASK);
}

enum ember_hw_result ember_hw_open(struct ember_hw *unit, volatile void *registers) {
    unit->registers = (volatile uint32_t *)registers;
    if (read_register(unit, EMBER_HW_MAGIC) != EMBER_HW_MAGIC_VALUE) return EMBER_HW_NO_UNIT;
    if (read_register(unit, EMBER_HW_ISA_VERSION) != EMBER_HW_ISA_VERSION_VALUE)
        return EMBER_HW_OTHER_ISA;
    if (read_register(unit, EMBER_HW_CONFIG_HASH) != EMBER_HW_CONFIG_HASH_VALUE)
        return EMBER_HW_OTHER_CONFIG;
    while (ember_hw_state(unit) == EMBER_HW_RESETTING) {}
    return EMBER_HW_OK;
}

enum ember_hw_result ember_hw_load(const struct ember_hw *unit, const uint32_t *words,
                                   uint32_t count) {
    if (count != EMBER_HW_MICROCODE_WORDS) return EMBER_HW_OTHER_CONFIG;
    const enum ember_hw_state state = ember_hw_state(unit);
    if (state == EMBER_HW_RUNNING || state == EMBER_HW_DRAINING) return EMBER_HW_BUSY;
    for (uint32_t n = 0; n < count; n++)
        write_register(unit, EMBER_HW_MICROCODE + 4 * n, words[n]);
    return EMBER_HW_OK;
}

enum ember_hw_result ember_hw_start(const struct ember_hw *unit, const uint32_t *arguments,
                                    uint32_t count) {
    if (count > EMBER_HW_ARGUMENTS_COUNT) return EMBER_HW_OTHER_CONFIG;
    const enum ember_hw_state state = ember_hw_state(unit);
    if (state != EMBER_HW_IDLE && state != EMBER_HW_DONE && state != EMBER_HW_FAULTED)
        return EMBER_HW_BUSY;
    for (uint32_t n = 0; n < count; n++)
        write_register(unit, EMBER_HW_ARGUMENTS + 4 * n, arguments[n]);
    write_register(unit, EMBER_HW_CONTROL, EMBER_HW_CONTROL_START);
    return EMBER_HW_OK;
}

enum ember_hw_result ember_hw_wait(const struct ember_hw *unit, struct ember_hw_fault *fault) {
    enum ember_hw_state state;
    do {
        state = ember_hw_state(unit);
    } while (state == EMBER_HW_RUNNING || state == EMBER_HW_DRAINING);
    if (state == EMBER_HW_DONE) return EMBER_HW_OK;
    if (fault) {
        const uint32_t word = read_register(unit, EMBER_HW_FAULT);
        fault->code = (enum ember_hw_fault_code)(word & EMBER_HW_FAULT_CODE_MASK);
        fault->unit = (uint8_t)(word >> 8);
        fault->stream = (uint8_t)(word >> 16);
        fault->address = (uint64_t)read_register(unit, EMBER_HW_FAULT_ADDRESS_HIGH) << 32 |
                         read_register(unit, EMBER_HW_FAULT_ADDRESS_LOW);
    }
    return EMBER_HW_FAULT_RESULT;
}

void ember_hw_abort(const struct ember_hw *unit) {
    write_register(unit, EMBER_HW_CONTROL, EMBER_HW_CONTROL_ABORT);
}

uint64_t ember_hw_counter(const struct ember_hw *unit, enum ember_hw_counter counter) {
    const uint32_t address = EMBER_HW_COUNTERS + 8 * (uint32_t)counter;
    const uint32_t low = read_register(unit, address);
    return (uint64_t)read_register(unit, address + 4) << 32 | low;
}
