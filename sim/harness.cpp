// The C interface of harness.h over one `Simulation`.

#include "harness.h"

#include <cstdio>
#include <memory>
#include <string>

#include "simulation.hpp"

using namespace ember;

// Verilator is built with VL_USER_*: a failed assertion or $fatal must reach the caller as an
// error, not end the process. What the design printed about it goes to standard output first.
namespace {

[[noreturn]] void stop(const char* what, const char* file, int line) {
    std::fflush(stdout);
    throw SimulationError(std::string(what) + " at " + file + ":" + std::to_string(line));
}

}  // namespace

void vl_finish(const char* file, int line, const char*) {
    stop("the design called $finish", file, line);
}

void vl_stop(const char* file, int line, const char*) { stop("an assertion failed", file, line); }

void vl_fatal(const char* file, int line, const char*, const char* message) {
    stop(message, file, line);
}

namespace {

struct Model {
    VerilatedContext context;
    AddressMap map;
    AnyMemory memory = IdealMemory(map, BUS_BYTES, 100);
    AnySink sink;
    std::string message;
    std::unique_ptr<Simulation> simulation;
};

Model& model_of(void* handle) { return *static_cast<Model*>(handle); }

// Errors stop at the C boundary; the trace is closed so that its last cycles are on disk.
template <typename Action>
int guarded(void* handle, Action action) {
    Model& model = model_of(handle);
    if (!model.message.empty()) return EMBER_FAILED;
    // Verilator's runtime looks the context up by thread, and another model may have been here.
    Verilated::threadContextp(&model.context);
    try {
        return action(model);
    } catch (const std::exception& error) {
        model.message = error.what();
        if (model.simulation) model.simulation->close_trace();
        return EMBER_FAILED;
    }
}

AnyMemory make_memory(AddressMap& map, const EmberMemory& choice) {
    if (choice.kind == EMBER_TEST_MEMORY) {
        return TestMemory(map, BUS_BYTES, READ_IDS,
                          {.seed = choice.seed,
                           .min_latency_cycles = choice.min_latency_cycles,
                           .max_latency_cycles = choice.max_latency_cycles,
                           .request_stall_probability = choice.request_stall_probability,
                           .beat_stall_probability = choice.beat_stall_probability,
                           .reorder = choice.reorder != 0,
                           .interleave = choice.interleave != 0,
                           .error_base = choice.error_base,
                           .error_bytes = choice.error_bytes});
    }
    return IdealMemory(map, BUS_BYTES, choice.min_latency_cycles);
}

AnySink make_sink(const EmberSink& choice) {
    const PushShape pushes{
        {choice.scalars_per_event, choice.scalars_per_event + choice.events},
        {choice.row_event_masks, choice.row_event_masks + choice.row_entries}};
    if (choice.kind == EMBER_CORE_LIKE_SINK) {
        return CoreLikeSink(pushes, choice.token_cycles, choice.bytes_per_cycle);
    }
    if (choice.kind == EMBER_STALLING_SINK) {
        return StallingSink(pushes, {.seed = choice.seed,
                                     .stall_probability = choice.stall_probability,
                                     .freeze_probability = choice.freeze_probability,
                                     .freeze_cycles = choice.freeze_cycles,
                                     .joint = choice.joint != 0});
    }
    return IdealSink();
}

}  // namespace

void ember_shape(EmberShape* shape) {
    *shape = {EMBER_BUS_BYTES, EMBER_BUNDLE_BYTES, EMBER_EVENT_BITS, EMBER_ID_BITS,
              EMBER_ADDRESS_BITS};
}

void* ember_create(uint32_t seed) {
    auto model = std::make_unique<Model>();
    model->context.randReset(2);  // registers without an initial value start at random
    model->context.randSeed(static_cast<int>(seed));
#if VM_TRACE
    model->context.traceEverOn(true);
#endif
    Model* handle = model.release();
    guarded(handle, [](Model& self) {
        self.simulation = std::make_unique<Simulation>(self.context, self.memory, self.sink);
        return 0;
    });
    return handle;
}

void ember_destroy(void* handle) { delete &model_of(handle); }

const char* ember_message(void* handle) { return model_of(handle).message.c_str(); }

int ember_reset(void* handle, uint32_t cycles) {
    return guarded(handle, [&](Model& model) {
        model.simulation->reset(cycles, model.memory, model.sink);
        return 0;
    });
}

int ember_write_register(void* handle, uint32_t address, uint32_t value) {
    return guarded(handle,
                   [&](Model& model) { return model.simulation->write_register(address, value); });
}

int ember_read_register(void* handle, uint32_t address, uint32_t* value) {
    return guarded(handle,
                   [&](Model& model) { return model.simulation->read_register(address, *value); });
}

void ember_map_region(void* handle, uint64_t base, const uint8_t* data, uint64_t bytes) {
    model_of(handle).map.map(base, data, bytes);
}

void ember_unmap_regions(void* handle) { model_of(handle).map.clear(); }

int ember_set_memory(void* handle, const EmberMemory* choice) {
    return guarded(handle, [&](Model& model) {
        const AnyMemory memory = make_memory(model.map, *choice);
        if (!model.simulation->set_memory(memory)) return 1;
        model.memory = memory;
        return 0;
    });
}

int ember_set_sink(void* handle, const EmberSink* choice) {
    return guarded(handle, [&](Model& model) {
        model.sink = make_sink(*choice);
        model.simulation->set_sink(model.sink);
        return 0;
    });
}

int ember_run(void* handle, EmberRun* run) {
    run->bundles = run->row_beats = run->cycles = 0;
    return guarded(handle, [&](Model& model) { return model.simulation->run(*run); });
}

void ember_counters(void* handle, EmberCounters* counters, uint64_t* read_beats_by_id) {
    const Simulation& simulation = *model_of(handle).simulation;
    *counters = simulation.counters();
    std::copy_n(simulation.read_beats_by_id().begin(), READ_IDS, read_beats_by_id);
}

void ember_clear_counters(void* handle) { model_of(handle).simulation->clear_counters(); }

int ember_open_trace(void* handle, const char* path, uint64_t first_cycle, uint64_t end_cycle) {
    return guarded(handle, [&](Model& model) {
        return model.simulation->open_trace(path, first_cycle, end_cycle) ? 1 : 0;
    });
}

void ember_close_trace(void* handle) { model_of(handle).simulation->close_trace(); }
