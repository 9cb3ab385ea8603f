// The C interface of harness.h over one `Simulation`.

#include "harness.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

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

template <typename Entry>
size_t copied(const std::vector<Entry>& entries, Entry* target, size_t capacity) {
    std::copy_n(entries.begin(), std::min(entries.size(), capacity), target);
    return entries.size();
}

}  // namespace

void ember_shape(EmberShape* shape) {
    *shape = {EMBER_BUS_BYTES,   EMBER_BUNDLE_BYTES,     EMBER_EVENT_BITS,    EMBER_ID_BITS,
              EMBER_ADDRESS_BITS, EMBER_MEMORY_PORTS,     EMBER_INDEX_PORT_BYTES,
              EMBER_INDEX_ID_BITS, EMBER_LENGTH_BITS,     EMBER_UNITS,
              EMBER_INPUT_BYTES,  EMBER_INPUT_DEST_BITS,  EMBER_REDUCES,
              EMBER_WRITES,       EMBER_PROBED_STREAMS};
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
        self.simulation = std::make_unique<Simulation>(self.context, self.map);
        return 0;
    });
    return handle;
}

void ember_destroy(void* handle) { delete &model_of(handle); }

const char* ember_message(void* handle) { return model_of(handle).message.c_str(); }

int ember_reset(void* handle, uint32_t cycles) {
    return guarded(handle, [&](Model& model) {
        model.simulation->reset(cycles);
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

void ember_map_region(void* handle, uint64_t base, uint8_t* data, uint64_t bytes,
                      uint32_t is_writable) {
    model_of(handle).map.map(base, data, bytes, is_writable != 0);
}

void ember_unmap_regions(void* handle) { model_of(handle).map.clear(); }

int ember_set_memory(void* handle, uint32_t channel, const EmberMemory* choice) {
    return guarded(handle, [&](Model& model) {
        return model.simulation->set_memory(channel, *choice) ? 0 : 1;
    });
}

int ember_set_sink(void* handle, uint32_t unit, const EmberSink* choice) {
    return guarded(handle, [&](Model& model) {
        model.simulation->queues()[unit].choose(*choice);
        return 0;
    });
}

void ember_set_accesses(void* handle, const EmberAccess* accesses, size_t count) {
    model_of(handle).simulation->registers().set_list(accesses, count);
}

size_t ember_accesses_left(void* handle) {
    return model_of(handle).simulation->registers().left();
}

void ember_set_input(void* handle, uint32_t unit, const uint32_t* destinations,
                     const uint8_t* lines, size_t count) {
    model_of(handle).simulation->inputs()[unit].set(destinations, lines, count);
}

size_t ember_input_lines_left(void* handle, uint32_t unit) {
    return model_of(handle).simulation->inputs()[unit].lines_left();
}

int ember_run(void* handle, EmberRun* run) {
    run->cycles = 0;
    for (size_t n = 0; n < UNITS; n++) run->outputs[n].bundles = run->outputs[n].row_beats = 0;
    return guarded(handle, [&](Model& model) { return model.simulation->run(*run); });
}

void ember_counters(void* handle, EmberCounters* counters, uint64_t* read_beats_by_id) {
    Simulation& simulation = *model_of(handle).simulation;
    *counters = simulation.counters();
    for (const ReadChannel& channel : simulation.channels()) {
        for (size_t id = 0; id < channel.beats_by_id().size(); id++) {
            read_beats_by_id[id] += channel.beats_by_id()[id];
        }
    }
}

void ember_channel_counters(void* handle, uint32_t channel, EmberChannelCounters* counters) {
    *counters = model_of(handle).simulation->channels()[channel].counters();
}

void ember_write_counters(void* handle, EmberWriteCounters* counters) {
    const auto& writes = model_of(handle).simulation->writes();
    *counters = {};
    if (writes) *counters = writes->counters();
}

void ember_record_reads(void* handle, uint64_t limit) {
    for (ReadChannel& channel : model_of(handle).simulation->channels()) channel.record(limit);
}

size_t ember_reads(void* handle, uint32_t channel, EmberRead* reads, size_t capacity) {
    return copied(model_of(handle).simulation->channels()[channel].reads(), reads, capacity);
}

void ember_record_writes(void* handle, uint64_t limit) {
    if (auto& writes = model_of(handle).simulation->writes()) writes->record(limit);
}

size_t ember_write_cycles(void* handle, uint64_t* cycles, size_t capacity) {
    const auto& writes = model_of(handle).simulation->writes();
    return writes ? copied(writes->beat_cycles(), cycles, capacity) : 0;
}

size_t ember_dram_commands(void* handle, uint32_t channel, EmberDramCommand* commands,
                           size_t capacity) {
    const auto* issued =
        dram_commands(model_of(handle).simulation->channels()[channel].memory());
    return issued ? copied(*issued, commands, capacity) : 0;
}

void ember_clear_counters(void* handle) { model_of(handle).simulation->clear_counters(); }

int ember_open_trace(void* handle, const EmberTrace* window) {
    return guarded(handle,
                   [&](Model& model) { return model.simulation->open_trace(*window) ? 1 : 0; });
}

void ember_close_trace(void* handle) { model_of(handle).simulation->close_trace(); }

uint64_t ember_traced_cycles(void* handle) {
    return model_of(handle).simulation->traced_cycles();
}

void ember_clear_profile(void* handle) { model_of(handle).simulation->clear_profile(); }

void ember_profile(void* handle, uint32_t unit, EmberProfile* result) {
    Simulation& simulation = *model_of(handle).simulation;
    const Profile& profile = simulation.profiles()[unit];
    *result = {profile.running_cycles(), profile.fill_cycles(), profile.drain_cycles(),
               simulation.queues()[unit].sink().busy_cycles()};
}

size_t ember_occupancy(void* handle, uint32_t unit, uint32_t queue, uint64_t* cycles,
                       size_t capacity) {
    return copied(model_of(handle).simulation->profiles()[unit].cycles(queue), cycles, capacity);
}

uint32_t ember_level(void* handle, uint32_t unit, uint32_t queue) {
    return model_of(handle).simulation->profiles()[unit].level(queue);
}

void ember_unit_streams(void* handle, uint32_t unit, EmberStream streams[2]) {
    model_of(handle).simulation->queues()[unit].show(streams);
}

uint64_t ember_channel_streams(void* handle, uint32_t channel, EmberStream streams[2]) {
    ReadChannel& port = model_of(handle).simulation->channels()[channel];
    port.show(streams);
    return port.outstanding();
}

uint64_t ember_write_streams(void* handle, EmberStream streams[3]) {
    const auto& writes = model_of(handle).simulation->writes();
    std::fill_n(streams, 3, EmberStream{});
    if (!writes) return 0;
    writes->show(streams);
    return writes->outstanding();
}
