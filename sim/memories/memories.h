/* The memory models' C interface; sim/memory_library.py mirrors the structures with ctypes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum EmberMemoryKind {
    EMBER_IDEAL_MEMORY,
    EMBER_TEST_MEMORY,
    EMBER_RANDOM_MEMORY,
    EMBER_DRAM_MEMORY,
};

enum { EMBER_ADDRESS_FIELDS = 16 };
enum EmberAddressField {
    EMBER_COLUMN,
    EMBER_BANK, /* within its group */
    EMBER_GROUP,
    EMBER_RANK,
    EMBER_ROW,
};

/* Timing is in memory clocks; the names are JEDEC's. 0 switches a limit off. */
struct EmberDram {
    uint32_t fields; /* entries of the two arrays, lowest address bits first */
    uint8_t field[EMBER_ADDRESS_FIELDS];
    uint8_t field_bits[EMBER_ADDRESS_FIELDS];
    uint32_t access_bytes;     /* of one READ or WRITE: burst length times data width */
    uint32_t dual_command_bus; /* HBM: a row command and a READ or WRITE in one clock */
    uint32_t queue_entries;    /* reads among which the scheduler chooses, and as many writes */
    uint32_t port_entries;     /* reads that wait for a place there, and as many writes */
    uint32_t front_cycles;     /* unit clock: from the port to the scheduler */
    uint32_t back_cycles;      /* unit clock: from the last data to the port */
    uint32_t memory_khz;
    uint32_t unit_khz;
    uint32_t burst; /* clocks that an access's data takes */
    uint32_t cl;
    uint32_t trcd;
    uint32_t trp;
    uint32_t tras;
    uint32_t trc;
    uint32_t trrd_s;
    uint32_t trrd_l;
    uint32_t tfaw;
    uint32_t tccd_s;
    uint32_t tccd_l;
    uint32_t trtp;
    uint32_t trfc;
    uint32_t trefi;
    uint32_t trtrs; /* clocks that the data bus rests between two ranks */
    uint32_t cwl;
    uint32_t twr;
    uint32_t twtr_s;
    uint32_t twtr_l;
    uint32_t trtw;
};

struct EmberMemory {
    uint32_t kind;
    uint32_t reorder; /* test memory */
    uint32_t interleave;
    uint32_t record_commands; /* DRAM */
    uint64_t seed;               /* random and test memory */
    uint64_t min_latency_cycles; /* ideal: the latency */
    uint64_t max_latency_cycles;
    uint64_t min_write_latency_cycles; /* test memory, as the rest but for the DRAM */
    uint64_t max_write_latency_cycles;
    uint64_t bytes_per_cycle; /* ideal: 0, or the link's rate */
    double request_stall_probability;
    double beat_stall_probability;
    uint64_t error_base;
    uint64_t error_bytes;
    uint64_t decode_error_base;
    uint64_t decode_error_bytes;
    const struct EmberDram* dram;
};

enum EmberDramCommandKind {
    EMBER_ACTIVATE,
    EMBER_READ,
    EMBER_PRECHARGE,
    EMBER_PRECHARGE_ALL, /* of a rank, as is REFRESH */
    EMBER_REFRESH,
    EMBER_DRAM_WRITE, /* EMBER_WRITE is an access to a register */
};

struct EmberDramCommand {
    uint64_t clock;
    uint32_t row;
    uint32_t column;
    uint8_t kind;
    uint8_t rank;
    uint8_t group;
    uint8_t bank; /* within its group */
    uint32_t reserved;
};

/* A read burst as the port saw it. */
struct EmberRead {
    uint64_t cycle;
    uint64_t address;
    uint32_t id;
    uint16_t beats;
    uint16_t beat_bytes;
};

struct EmberAccessRun {
    uint64_t clocks;         /* until the last data */
    uint64_t latency_clocks; /* sum over the accesses, from the scheduler's queue to the data */
    uint64_t activates;
    uint64_t refreshes;
};

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Cycles in which a memory answers these bursts if all of them wait from cycle 0 on, each with an
 * ID of its own, and no beat is ever refused. */
uint64_t ember_replay(const EmberMemory* memory, uint32_t bus_bytes, const EmberRead* reads,
                      size_t count);

/* Accesses of a DRAM in its own clock: each enters the scheduler's queue of reads or of writes
 * (null: all are reads) when there is room, behind those before it and not before its clock (null:
 * at once). Gives the commands issued, of which at most `capacity` are written. */
size_t ember_run_accesses(const EmberDram* dram, const uint64_t* addresses,
                          const uint8_t* is_write, const uint64_t* clocks, size_t count,
                          EmberAccessRun* run, EmberDramCommand* commands, size_t capacity);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
