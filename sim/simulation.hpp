// Access units in their environment: clock, reset, and the parts that surround them, cycle by cycle.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "Vsimulation_top.h"
#include "harness.h"
#include "pins.hpp"
#include "ports.hpp"
#include "profile.hpp"
#include "read_channel.hpp"
#include "register_port.hpp"
#include "trace.hpp"
#include "unit_queues.hpp"
#include "verilated.h"
#include "write_channel.hpp"

namespace ember {

constexpr uint32_t REGISTER_TIMEOUT_CYCLES = 10'000;
// Registers of a unit lie in a window of this many address bits.
constexpr uint32_t UNIT_WINDOW_BITS = 12;

class Simulation {
public:
    Simulation(VerilatedContext& context, AddressMap& map) : top_(&context), registers_(top_) {
        channels_.reserve(CHANNELS);
        for (size_t n = 0; n < CHANNELS; n++) channels_.emplace_back(channel_pins(top_, n), map);
        if (EMBER_WRITES) writes_.emplace(write_pins(top_), channels_[0], map);
        for (size_t n = 0; n < UNITS; n++) {
            queues_.emplace_back(unit_pins(top_, n));
            inputs_.emplace_back(input_pins(top_, n));
            profiles_.emplace_back(probe_pins(top_));
        }
        has_ended_.resize(UNITS);
        reset(8);
    }

    ~Simulation() {
        close_trace();
        top_.final();
    }

    void reset(uint32_t cycles) {
        registers_.reset();
        for (ReadChannel& channel : channels_) channel.reset();
        if (writes_) writes_->reset();
        for (UnitQueues& queues : queues_) queues.reset();
        for (InputStream& input : inputs_) {
            input.set(nullptr, nullptr, 0);
            input.drive();
        }
        top_.rst = 1;
        for (uint32_t n = 0; n < cycles; n++) begin_cycle();
        top_.rst = 0;
        irq_ = false;
        std::fill(has_ended_.begin(), has_ended_.end(), false);
    }

    // Gives BRESP.
    int write_register(uint32_t address, uint32_t value) {
        await_list_access();
        registers_.begin_write(address, value);
        await_registers("a write to register ", address);
        return registers_.response();
    }

    // Gives RRESP.
    int read_register(uint32_t address, uint32_t& value) {
        await_list_access();
        registers_.begin_read(address);
        await_registers("a read of register ", address);
        value = registers_.data();
        return registers_.response();
    }

    EmberState run(EmberRun& run) {
        const uint64_t begin = cycle_;
        uint64_t idle = 0;
        EmberState state = EMBER_OUTPUT_FULL;
        while (have_room(run)) {
            registers_.drive();
            idle = step(&run) ? 0 : idle + 1;
            if (is_ended(run)) {
                state = EMBER_PROGRAM_ENDED;
                registers_.end_list();
                std::fill(has_ended_.begin(), has_ended_.end(), false);
                break;
            }
            if (idle >= run.max_idle_cycles) {
                state = EMBER_IDLE_TIMEOUT;
                break;
            }
            if (cycle_ - begin >= run.max_cycles) {
                state = EMBER_CYCLE_LIMIT;
                break;
            }
        }
        run.cycles = cycle_ - begin;
        return state;
    }

    // Gives false while bursts are outstanding: their beats and answers would never come.
    bool set_memory(uint32_t channel, const EmberMemory& choice) {
        if (channel == 0 && writes_ && !writes_->is_idle()) return false;
        return channels_[channel].set_memory(choice);
    }

    RegisterPort& registers() { return registers_; }
    std::vector<ReadChannel>& channels() { return channels_; }
    std::optional<WriteChannel>& writes() { return writes_; }
    std::vector<UnitQueues>& queues() { return queues_; }
    std::vector<InputStream>& inputs() { return inputs_; }
    std::vector<Profile>& profiles() { return profiles_; }

    EmberCounters counters() const {
        EmberCounters sum = counters_;
        for (const ReadChannel& channel : channels_) {
            const EmberChannelCounters& part = channel.counters();
            sum.read_requests += part.read_requests;
            sum.read_beats += part.read_beats;
            sum.read_bytes += part.read_bytes;
            sum.read_errors += part.read_errors;
            sum.peak_outstanding_reads =
                std::max(sum.peak_outstanding_reads, part.peak_outstanding_reads);
        }
        for (const UnitQueues& queues : queues_) {
            sum.bundles += queues.counts().bundles;
            sum.row_beats += queues.counts().row_beats;
            sum.row_bytes += queues.counts().row_bytes;
        }
        return sum;
    }

    void clear_counters() {
        counters_ = {};
        for (ReadChannel& channel : channels_) channel.clear_counters();
        if (writes_) writes_->clear_counters();
        for (UnitQueues& queues : queues_) queues.clear_counters();
    }

    void clear_profile() {
        for (Profile& profile : profiles_) profile.clear();
    }

    bool open_trace(const EmberTrace& window) {
        rows_asked_before_ = rows_asked();
        rows_before_ = queues_[0].rows();
        return trace_.open(top_, window);
    }
    void close_trace() { trace_.close(); }
    uint64_t traced_cycles() const { return trace_.cycles(); }

private:
    // A cycle begins with the edge that hands its inputs to the units; their outputs follow at once.
    void begin_cycle() {
        cycle_++;
        counters_.cycles++;
        top_.clk = 1;
        top_.eval();
        dump(0);
        top_.clk = 0;
        top_.eval();
        dump(1);
    }

    // The window of a trace by rows is one of the first unit.
    void dump(uint64_t phase) {
        trace_.dump(cycle_, phase, rows_asked() - rows_asked_before_,
                    queues_[0].rows() - rows_before_);
    }

    uint64_t rows_asked() const { return profiles_[0].rows_asked(); }

    // One cycle; gives whether any channel had a handshake. Without `run` all outputs wait.
    bool step(EmberRun* run) {
        const uint64_t next = cycle_ + 1;
        for (ReadChannel& channel : channels_) channel.drive(next);
        if (writes_) writes_->drive(next);
        for (size_t n = 0; n < UNITS; n++) {
            queues_[n].drive(next, run ? &run->outputs[n] : nullptr);
            inputs_[n].drive();
        }
        begin_cycle();

        bool active = registers_.sample();
        if (registers_.has_written()) {
            start_cycle_ = cycle_;
            const uint32_t unit = registers_.address() >> UNIT_WINDOW_BITS;
            if (unit < UNITS) has_ended_[unit] = false;
        }
        for (ReadChannel& channel : channels_) active |= channel.sample(cycle_);
        if (writes_) active |= writes_->sample(cycle_);
        bool irq = false;
        for (size_t n = 0; n < UNITS; n++) {
            active |= queues_[n].sample(cycle_, run ? &run->outputs[n] : nullptr);
            active |= inputs_[n].sample();
            UnitQueues::Counts counts = queues_[n].counts();
            if (writes_) counts.row_beats = writes_->counters().write_beats;
            profiles_[n].sample(counts);
            // The reset of the queues reaches what feeds the unit, too.
            if (queues_[n].is_reset()) inputs_[n].set(nullptr, nullptr, 0);
            if (!queues_[n].irq()) continue;
            irq = true;
            has_ended_[n] = true;
        }
        if (irq && !irq_) counters_.start_to_done_cycles = cycle_ - start_cycle_;
        irq_ = irq;
        return active;
    }

    bool have_room(const EmberRun& run) const {
        for (size_t n = 0; n < UNITS; n++) {
            const EmberOutput& output = run.outputs[n];
            if (output.bundles == output.bundle_capacity ||
                output.row_beats == output.row_capacity) {
                return false;
            }
        }
        return true;
    }

    bool is_ended(const EmberRun& run) const {
        if (!registers_.list_is_done()) return false;
        for (size_t n = 0; n < UNITS; n++) {
            const bool awaited = run.awaited >> n & 1 && !registers_.has_list();
            if (queues_[n].waits() || (awaited && !has_ended_[n])) return false;
        }
        if (writes_ && !writes_->is_idle()) return false;
        return std::all_of(channels_.begin(), channels_.end(),
                           [](const ReadChannel& channel) { return !channel.outstanding(); });
    }

    // A run may return in the middle of an access of its list.
    void await_list_access() {
        if (registers_.is_busy()) await_registers("an access to register ", registers_.address());
    }

    void await_registers(const char* access, uint32_t address) {
        for (uint32_t n = 0; n < REGISTER_TIMEOUT_CYCLES; n++) {
            step(nullptr);
            if (!registers_.is_busy()) return;
        }
        throw SimulationError(access + std::to_string(address) +
                              " must be answered within 10000 cycles, and wasn't");
    }

    Vsimulation_top top_;
    RegisterPort registers_;
    std::vector<ReadChannel> channels_;
    std::optional<WriteChannel> writes_;
    std::vector<UnitQueues> queues_;
    std::vector<InputStream> inputs_;
    std::vector<Profile> profiles_;
    Trace trace_;
    uint64_t rows_asked_before_ = 0;  // before the trace was opened
    uint64_t rows_before_ = 0;
    uint64_t cycle_ = 0;
    uint64_t start_cycle_ = 0;
    bool irq_ = false;
    std::vector<uint8_t> has_ended_;  // by unit: irq since the latest write to its registers
    EmberCounters counters_{};        // what isn't a channel's or a unit's
};

}  // namespace ember
