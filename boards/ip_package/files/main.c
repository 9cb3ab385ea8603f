/* Runs the lookups of program.h on the access unit and checks what leaves its queues: the rows of
   each bag, summed, against the sums of the rows that the core gathers itself. */
#include "ember_hw.h"
#include "program.h"

/* The address map of softcore_top.v. */
#define BUNDLE_QUEUE (*(const volatile uint32_t *)0x80000000)
#define ROW_QUEUE (*(const volatile uint32_t *)0x80001000)
#define REGISTERS ((volatile void *)0x80002000)
#define MARKER (*(volatile uint32_t *)0x80003000)

enum { PASSED = 4, FAILED = 5 };

static uint32_t popped[COLUMNS], gathered[COLUMNS];

static void clear(uint32_t *sums) {
    for (uint32_t d = 0; d < COLUMNS; d++) sums[d] = 0;
}

static int bag_is_right(uint32_t bag) {
    clear(gathered);
    const uint32_t end = bag + 1 < BAGS ? OFFSETS[bag + 1] : LOOKUPS;
    for (uint32_t n = OFFSETS[bag]; n < end; n++)
        for (uint32_t d = 0; d < COLUMNS; d++) gathered[d] += TABLE[INDICES[n] * PITCH + d];
    for (uint32_t d = 0; d < COLUMNS; d++)
        if (gathered[d] != popped[d]) return 0;
    return 1;
}

static int run(const struct ember_hw *unit) {
    uint32_t bag = 0, events;
    if (ember_hw_load(unit, MICROCODE, EMBER_HW_MICROCODE_WORDS) != EMBER_HW_OK) return 0;
    if (ember_hw_start(unit, ARGUMENTS, ARGUMENTS_COUNT) != EMBER_HW_OK) return 0;
    clear(popped);
    do {
        events = BUNDLE_QUEUE;
        if (events & ROW_EVENTS)
            for (uint32_t d = 0; d < COLUMNS; d++) popped[d] += ROW_QUEUE;
        if (events & BAG_EVENTS) {
            if (!bag_is_right(bag++)) return 0;
            clear(popped);
        }
    } while (!(events & LAST_EVENTS));
    return bag == BAGS && ember_hw_wait(unit, 0) == EMBER_HW_OK &&
           ember_hw_counter(unit, EMBER_HW_ROWS) == LOOKUPS;
}

int main(void) {
    struct ember_hw unit;
    /* Twice: the unit is ready for the next program without a reset. */
    const int is_right = ember_hw_open(&unit, REGISTERS) == EMBER_HW_OK && run(&unit) && run(&unit);
    MARKER = is_right ? PASSED : FAILED;
    return 0;
}
