/* The harness's C interface; sim/c_interface.py mirrors the structures with ctypes.
 *
 * A call that returns int gives 0 or a positive result on success and EMBER_FAILED after a
 * simulation error, which ember_message describes; the model is then of no further use.
 *
 * Channels are the read ports: the memory ports in order, then the index ports in order. With
 * results in memory the unit has a port for writes, too; the memory of channel 0 answers it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "memories/memories.h"

enum EmberState {
    EMBER_FAILED = -1,
    EMBER_OUTPUT_FULL = 0,   /* a buffer is full: time stands still until the next run */
    EMBER_PROGRAM_ENDED = 1, /* see ember_run */
    EMBER_IDLE_TIMEOUT = 2,  /* no handshake on any channel for max_idle_cycles */
    EMBER_CYCLE_LIMIT = 3,   /* max_cycles have passed */
};

enum EmberSinkKind { EMBER_IDEAL_SINK, EMBER_CORE_LIKE_SINK, EMBER_STALLING_SINK };

struct EmberShape {
    uint32_t bus_bytes;
    uint32_t bundle_bytes;
    uint32_t event_bits;
    uint32_t id_bits;
    uint32_t address_bits;
    uint32_t memory_ports;
    uint32_t index_port_bytes;
    uint32_t index_id_bits;
    uint32_t length_bits;
    uint32_t units;
    uint32_t input_bytes;
    uint32_t input_dest_bits;
    uint32_t reduces;
    uint32_t writes;
    uint32_t probed_streams;
};

struct EmberSink {
    uint32_t kind;
    uint32_t joint;
    uint32_t events;      /* entries of scalars_per_event */
    uint32_t row_entries; /* entries of row_event_masks */
    const uint32_t* scalars_per_event;
    const uint64_t* row_event_masks;
    uint64_t token_cycles;
    uint64_t bytes_per_cycle;
    uint64_t seed;
    double stall_probability;
    double freeze_probability;
    uint64_t freeze_cycles;
};

enum EmberAccessKind {
    EMBER_WRITE,   /* `value`; an answer that isn't OKAY abandons the rest of the list */
    EMBER_WAIT,    /* reads until the bits under `mask` are at most `value` */
    EMBER_STOP_IF, /* reads once; abandons the rest of the list if they are `value` */
};

struct EmberAccess {
    uint32_t kind;
    uint32_t address;
    uint32_t value;
    uint32_t mask;
};

/* What one unit delivers in a run. */
struct EmberOutput {
    uint8_t* bundle_data; /* bundle_bytes each, densely */
    size_t bundle_capacity;
    uint8_t* row_data; /* bus_bytes each, densely */
    size_t row_capacity;
    uint8_t* row_last;    /* one flag a row beat; may be null */
    uint64_t* row_cycles; /* cycle of each row beat's handshake; may be null */
    size_t bundles;       /* results: bundles and beats written */
    size_t row_beats;
};

struct EmberRun {
    struct EmberOutput* outputs; /* one a unit */
    uint64_t awaited;            /* bit u: unit u's end is awaited */
    uint64_t max_idle_cycles;
    uint64_t max_cycles;
    uint64_t cycles; /* result: cycles passed */
};

struct EmberCounters {
    uint64_t cycles;
    uint64_t start_to_done_cycles; /* last register write before irq rose, to irq */
    uint64_t read_requests;        /* sums over the channels, as the rest of the reads */
    uint64_t read_beats;
    uint64_t read_bytes;
    uint64_t read_errors;            /* beats that weren't OKAY */
    uint64_t peak_outstanding_reads; /* requests: the channel with the most */
    uint64_t bundles;                /* sums over the units */
    uint64_t row_beats;
    uint64_t row_bytes; /* by TKEEP */
};

struct EmberChannelCounters {
    uint64_t read_requests;
    uint64_t read_beats;
    uint64_t read_bytes;
    uint64_t read_errors;
    uint64_t peak_outstanding_reads;
    uint64_t refused_cycles; /* a request waited for the memory */
};

/* What was written; all are 0 without a port for writes. */
struct EmberWriteCounters {
    uint64_t write_requests;
    uint64_t write_beats;
    uint64_t write_bytes;  /* by WSTRB */
    uint64_t write_errors; /* bursts whose answer wasn't OKAY */
    uint64_t peak_outstanding_writes;
};

/* A window of cycles from the model's opening on, or of rows from its own opening on: from the
 * cycle in which row `first` is asked for to that in which row `end - 1` has been delivered. */
struct EmberTrace {
    const char* path;
    uint64_t first;
    uint64_t end;
    uint32_t by_rows;
    uint32_t reserved;
};

/* What a unit with probes did while it ran, since the latest ember_clear_profile. */
struct EmberProfile {
    uint64_t running_cycles;
    uint64_t fill_cycles;    /* until the first row beat was delivered (bundle, without rows) */
    uint64_t drain_cycles;   /* from the last one to the end */
    uint64_t execute_cycles; /* that the sink needs for what it was given */
};

/* Handshakes of the moment, and what is on its way. */
struct EmberStream {
    uint32_t valid;
    uint32_t ready;
};

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

void ember_shape(EmberShape* shape);
void* ember_create(uint32_t seed);
void ember_destroy(void* model);
const char* ember_message(void* model);
int ember_reset(void* model, uint32_t cycles);
int ember_write_register(void* model, uint32_t address, uint32_t value); /* gives BRESP */
int ember_read_register(void* model, uint32_t address, uint32_t* value); /* gives RRESP */
/* Unless a region is writable, a write to it answers SLVERR. */
void ember_map_region(void* model, uint64_t base, uint8_t* data, uint64_t bytes,
                      uint32_t is_writable);
void ember_unmap_regions(void* model);
int ember_set_memory(void* model, uint32_t channel,
                     const EmberMemory* memory); /* 1: refused, bursts outstanding */
int ember_set_sink(void* model, uint32_t unit, const EmberSink* sink);

/* Register accesses that the next run makes, one after the other, while the units run. */
void ember_set_accesses(void* model, const EmberAccess* accesses, size_t count);
/* Accesses not made yet; abandoned ones count. */
size_t ember_accesses_left(void* model);

/* Lines that the input stream of a unit carries from now on, 64 bytes each; the caller keeps both
 * arrays. Without an input stream, it carries none. */
void ember_set_input(void* model, uint32_t unit, const uint32_t* destinations, const uint8_t* lines,
                     size_t count);
size_t ember_input_lines_left(void* model, uint32_t unit);

/* Ends when no read or write is outstanding, no output waits, and every awaited unit has raised irq since
 * the latest write to one of its registers; with a list of accesses, when that is done instead. */
int ember_run(void* model, EmberRun* run); /* gives an EmberState */
void ember_counters(void* model, EmberCounters* counters, uint64_t* read_beats_by_id);
void ember_channel_counters(void* model, uint32_t channel, EmberChannelCounters* counters);
void ember_write_counters(void* model, EmberWriteCounters* counters);
void ember_clear_counters(void* model);

/* Forget all read bursts, and keep so many of each channel from now on. */
void ember_record_reads(void* model, uint64_t limit);
/* Bursts kept, of which at most `capacity` are written. */
size_t ember_reads(void* model, uint32_t channel, EmberRead* reads, size_t capacity);
/* The same for the beats of writes: the cycle in which each was handed over. */
void ember_record_writes(void* model, uint64_t limit);
size_t ember_write_cycles(void* model, uint64_t* cycles, size_t capacity);
/* The same for the commands of a DRAM that records them. */
size_t ember_dram_commands(void* model, uint32_t channel, EmberDramCommand* commands,
                           size_t capacity);

int ember_open_trace(void* model, const EmberTrace* window); /* 0: can't */
void ember_close_trace(void* model);
uint64_t ember_traced_cycles(void* model);

void ember_clear_profile(void* model);
void ember_profile(void* model, uint32_t unit, EmberProfile* profile);
/* Cycles in which a queue of the unit held 0, 1, .. entries, in the order of the high-water
 * counters, of which at most `capacity` are written; what it holds now. */
size_t ember_occupancy(void* model, uint32_t unit, uint32_t queue, uint64_t* cycles,
                       size_t capacity);
uint32_t ember_level(void* model, uint32_t unit, uint32_t queue);
/* Bundles and rows of a unit, or AR and R of a channel; gives the channel's outstanding reads. */
void ember_unit_streams(void* model, uint32_t unit, EmberStream streams[2]);
uint64_t ember_channel_streams(void* model, uint32_t channel, EmberStream streams[2]);
/* AW, W and B, and the writes outstanding. */
uint64_t ember_write_streams(void* model, EmberStream streams[3]);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
