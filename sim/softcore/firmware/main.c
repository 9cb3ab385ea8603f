/* Sums of int32 rows by bag, four ways. The core gathers, or the access unit does and the core pops
   its queues; a row at a time with the sums in memory, or a part of the columns at a time (of all
   rows of a bag) with the sums in registers.

   COLUMNS, and the registers' addresses and values, come from the command line. */
#include <stdint.h>

#define BUNDLE_QUEUE (*(const volatile uint32_t *)0x80000000)
#define REGISTER(address) (*(volatile uint32_t *)(0x80002000 + (address)))
#define MARKER (*(volatile uint32_t *)0x80003000)

#define UNROLLED _Pragma("clang loop unroll(full)")
#define PART_COLUMNS 16 /* columns whose sums the core's registers hold */
_Static_assert(COLUMNS % PART_COLUMNS == 0 && COLUMNS <= 512, "see link.ld");

enum { BEGIN = 1, END = 2, STARTED = 3, PASSED = 4, FAILED = 5 };
enum { GATHER_ROWS, GATHER_PARTS, POP_ROWS, POP_PARTS };

struct Arguments {
    uint32_t kernel, bags;
    const int32_t *offsets; /* bags + 1 of them */
    const int32_t *indices;
    const int32_t *table; /* rows of COLUMNS */
    int32_t *sums;        /* bags x COLUMNS */
    uint32_t row_events, sum_events, program_events;
    /* Where the row queue is read, rows in turn here and there. One place serves a core without a
       data cache. Two that share the lines of a direct-mapped cache make every access miss, so that
       every line comes from the queue. */
    const volatile int32_t *row_queue, *row_queue_in_turn;
    uint32_t registers; /* how many are written before the start */
    struct {
        uint32_t address, value;
    } writes[];
};
extern const volatile struct Arguments arguments;

/* Volatile keeps each batch of loads together: spilled to the stack instead, the sums were loaded
   right before their use, for 100 cycles more a row of 64. */
static volatile int32_t sums[COLUMNS];

/* Adds elements to sums, `batch` loads of each ahead of their use: a pipelined core would wait for
   each load otherwise. Sums in memory do best with 8; sums in registers leave room for 4. */
#define ADD(count, batch, sums, elements)                                                  \
    UNROLLED for (int first = 0; first < (count); first += (batch)) {                      \
        int32_t element[batch], sum_before[batch];                                         \
        UNROLLED for (int d = 0; d < (batch); d++) element[d] = (elements)[first + d];     \
        UNROLLED for (int d = 0; d < (batch); d++) sum_before[d] = (sums)[first + d];      \
        UNROLLED for (int d = 0; d < (batch); d++)                                         \
            (sums)[first + d] = element[d] + sum_before[d];                                \
    }

static inline void store_sums(int32_t *out) {
    UNROLLED for (int d = 0; d < COLUMNS; d++) {
        out[d] = sums[d];
        sums[d] = 0;
    }
}

static void gather_rows(void) {
    const int32_t *offsets = arguments.offsets, *indices = arguments.indices;
    const int32_t *table = arguments.table;
    const uint32_t bags = arguments.bags;
    int32_t *out = arguments.sums, n = offsets[0];
    for (uint32_t bag = 0; bag < bags; bag++, out += COLUMNS) {
        for (const int32_t end = offsets[bag + 1]; n < end; n++) {
            const int32_t *row = table + indices[n] * COLUMNS;
            ADD(COLUMNS, 8, sums, row)
        }
        store_sums(out);
    }
}

/* Reads each index COLUMNS / PART_COLUMNS times. */
static void gather_parts(void) {
    const int32_t *offsets = arguments.offsets, *indices = arguments.indices;
    const int32_t *table = arguments.table;
    const uint32_t bags = arguments.bags;
    int32_t *out = arguments.sums, begin = offsets[0];
    for (uint32_t bag = 0; bag < bags; bag++) {
        const int32_t end = offsets[bag + 1];
        for (int first = 0; first < COLUMNS; first += PART_COLUMNS, out += PART_COLUMNS) {
            int32_t sum[PART_COLUMNS] = {0};
            for (int32_t n = begin; n < end; n++) {
                const int32_t *part = table + indices[n] * COLUMNS + first;
                ADD(PART_COLUMNS, 4, sum, part)
            }
            UNROLLED for (int d = 0; d < PART_COLUMNS; d++) out[d] = sum[d];
        }
        begin = end;
    }
}

static void pop_rows(void) {
    const uint32_t row_events = arguments.row_events, sum_events = arguments.sum_events;
    const uint32_t program_events = arguments.program_events;
    const volatile int32_t *row = arguments.row_queue, *next = arguments.row_queue_in_turn;
    int32_t *out = arguments.sums;
    uint32_t events;
    do {
        events = BUNDLE_QUEUE;
        if (events & row_events) {
            ADD(COLUMNS, 8, sums, row)
            const volatile int32_t *used = row;
            row = next;
            next = used;
        }
        if (events & sum_events) {
            store_sums(out);
            out += COLUMNS;
        }
    } while (!(events & program_events));
}

static void pop_parts(void) {
    const uint32_t row_events = arguments.row_events, sum_events = arguments.sum_events;
    const uint32_t program_events = arguments.program_events;
    const volatile int32_t *part = arguments.row_queue, *next = arguments.row_queue_in_turn;
    int32_t *out = arguments.sums;
    int32_t sum[PART_COLUMNS] = {0};
    uint32_t events;
    do {
        events = BUNDLE_QUEUE;
        if (events & row_events) {
            ADD(PART_COLUMNS, 4, sum, part)
            const volatile int32_t *used = part;
            part = next;
            next = used;
        }
        if (events & sum_events) {
            UNROLLED for (int d = 0; d < PART_COLUMNS; d++) {
                out[d] = sum[d];
                sum[d] = 0;
            }
            out += PART_COLUMNS;
        }
    } while (!(events & program_events));
}

static void write_program(void) {
    for (uint32_t n = 0; n < arguments.registers; n++) {
        REGISTER(arguments.writes[n].address) = arguments.writes[n].value;
    }
}

int main(void) {
    const uint32_t kernel = arguments.kernel;
    const int uses_unit = kernel == POP_ROWS || kernel == POP_PARTS;
    for (int d = 0; d < COLUMNS; d++) sums[d] = 0;
    if (uses_unit) {
        while ((REGISTER(STATUS_ADDRESS) & STATE_MASK) != STATE_IDLE) {}
    }
    MARKER = STARTED;
    if (uses_unit) write_program();
    MARKER = BEGIN;
    if (uses_unit) REGISTER(CONTROL_ADDRESS) = CONTROL_START;
    if (kernel == GATHER_ROWS) gather_rows();
    if (kernel == GATHER_PARTS) gather_parts();
    if (kernel == POP_ROWS) pop_rows();
    if (kernel == POP_PARTS) pop_parts();
    MARKER = END;
    /* The last bundle may be out before the unit has seen its own end. */
    uint32_t state = STATE_DONE;
    if (uses_unit) {
        do {
            state = REGISTER(STATUS_ADDRESS) & STATE_MASK;
        } while (state == STATE_RUNNING);
    }
    MARKER = state == STATE_DONE ? PASSED : FAILED;
    return 0;
}
