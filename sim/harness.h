/* The harness's C interface; sim/model.py mirrors the structures with ctypes.
 *
 * A call that returns int gives 0 or a positive result on success and EMBER_FAILED after a
 * simulation error, which ember_message describes; the model is then of no further use. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum EmberState {
    EMBER_FAILED = -1,
    EMBER_OUTPUT_FULL = 0,   /* a buffer is full: time stands still until the next run */
    EMBER_PROGRAM_ENDED = 1, /* irq is high, no read outstanding, no output waiting */
    EMBER_IDLE_TIMEOUT = 2,  /* no handshake on any channel for max_idle_cycles */
};

enum EmberMemoryKind { EMBER_IDEAL_MEMORY, EMBER_TEST_MEMORY };
enum EmberSinkKind { EMBER_IDEAL_SINK, EMBER_CORE_LIKE_SINK, EMBER_STALLING_SINK };

struct EmberShape {
    uint32_t bus_bytes;
    uint32_t bundle_bytes;
    uint32_t event_bits;
    uint32_t id_bits;
    uint32_t address_bits;
};

struct EmberMemory {
    uint32_t kind;
    uint32_t reorder;    /* from here on: test memory only, but for the latency */
    uint32_t interleave;
    uint64_t seed;
    uint64_t min_latency_cycles; /* ideal: the latency */
    uint64_t max_latency_cycles;
    double request_stall_probability;
    double beat_stall_probability;
    uint64_t error_base;
    uint64_t error_bytes;
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

struct EmberRun {
    uint8_t* bundle_data; /* bundle_bytes each, densely */
    size_t bundle_capacity;
    uint8_t* row_data; /* bus_bytes each, densely */
    size_t row_capacity;
    uint8_t* row_last;    /* one flag a row beat; may be null */
    uint64_t* row_cycles; /* cycle of each row beat's handshake; may be null */
    uint64_t max_idle_cycles;
    size_t bundles; /* results: bundles and beats written, cycles passed */
    size_t row_beats;
    uint64_t cycles;
};

struct EmberCounters {
    uint64_t cycles;
    uint64_t start_to_done_cycles; /* last register write before irq rose, to irq */
    uint64_t read_requests;
    uint64_t read_beats;
    uint64_t read_bytes;
    uint64_t read_errors;           /* beats that weren't OKAY */
    uint64_t peak_outstanding_reads; /* requests */
    uint64_t bundles;
    uint64_t row_beats;
    uint64_t row_bytes; /* by TKEEP */
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
void ember_map_region(void* model, uint64_t base, const uint8_t* data, uint64_t bytes);
void ember_unmap_regions(void* model);
int ember_set_memory(void* model, const EmberMemory* memory); /* 1: refused, reads outstanding */
int ember_set_sink(void* model, const EmberSink* sink);
int ember_run(void* model, EmberRun* run); /* gives an EmberState */
void ember_counters(void* model, EmberCounters* counters, uint64_t* read_beats_by_id);
void ember_clear_counters(void* model);
int ember_open_trace(void* model, const char* path, uint64_t first_cycle,
                     uint64_t end_cycle); /* 0: can't */
void ember_close_trace(void* model);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
