// One access unit in its environment: clock, reset, registers, reads, output streams, counters.
#pragma once

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "Vsimulation_top.h"
#include "harness.h"
#include "memory_model.hpp"
#include "ports.hpp"
#include "sinks.hpp"
#include "trace.hpp"
#include "verilated.h"

namespace ember {

constexpr size_t BUS_BYTES = EMBER_BUS_BYTES;
constexpr size_t BUNDLE_BYTES = EMBER_BUNDLE_BYTES;
constexpr uint64_t EVENT_MASK = (uint64_t{1} << EMBER_EVENT_BITS) - 1;
constexpr uint32_t READ_IDS = 1u << EMBER_ID_BITS;
constexpr uint32_t REGISTER_TIMEOUT_CYCLES = 10'000;
static_assert(EMBER_EVENT_BITS < 64 && std::has_single_bit(BUS_BYTES));

using AnyMemory = std::variant<IdealMemory, TestMemory>;
using AnySink = std::variant<IdealSink, CoreLikeSink, StallingSink>;

// The payload of AR, as the hold check compares it.
struct ReadAddress {
    uint64_t address;
    uint32_t id, length, size, burst;
};

class Simulation {
public:
    Simulation(VerilatedContext& context, const AnyMemory& memory, const AnySink& sink)
        : top_(&context), memory_(memory), sink_(sink), beats_by_id_(READ_IDS) {
        reset(8, memory, sink);
    }

    ~Simulation() {
        close_trace();
        top_.final();
    }

    // Reads in flight are lost with the memory's state; outputs not yet taken with the unit's.
    void reset(uint32_t cycles, const AnyMemory& memory, const AnySink& sink) {
        top_.s_axil_awvalid = top_.s_axil_wvalid = top_.s_axil_bready = 0;
        top_.s_axil_arvalid = top_.s_axil_rready = 0;
        top_.m_axi_arready = top_.m_axi_rvalid = 0;
        top_.m_axis_bundle_tready = top_.m_axis_row_tready = 0;
        top_.rst = 1;
        for (uint32_t n = 0; n < cycles; n++) begin_cycle();
        top_.rst = 0;
        memory_ = memory;
        sink_ = sink;
        beat_on_pins_ = irq_ = false;
        outstanding_reads_ = 0;
        read_hold_.release();
        bundle_hold_.release();
        row_hold_.release();
    }

    void set_sink(const AnySink& sink) { sink_ = sink; }

    // Refused while reads are outstanding: their beats would never come.
    bool set_memory(const AnyMemory& memory) {
        if (outstanding_reads_ == 0) memory_ = memory;
        return outstanding_reads_ == 0;
    }

    // Both channels are raised at once: a subordinate may wait for either. Gives BRESP.
    int write_register(uint32_t address, uint32_t value) {
        top_.s_axil_awaddr = address;
        top_.s_axil_awvalid = 1;
        top_.s_axil_wdata = value;
        top_.s_axil_wvalid = 1;
        top_.s_axil_bready = 1;
        for (uint32_t n = 0; n < REGISTER_TIMEOUT_CYCLES; n++) {
            step_without_output();
            if (fired_.write_address) top_.s_axil_awvalid = 0;
            if (fired_.write_data) top_.s_axil_wvalid = 0;
            if (fired_.write_response) {
                top_.s_axil_bready = 0;
                return fired_.response;
            }
        }
        throw SimulationError("a write to register " + std::to_string(address) +
                              " must be answered within 10000 cycles, and wasn't");
    }

    // Gives RRESP.
    int read_register(uint32_t address, uint32_t& value) {
        top_.s_axil_araddr = address;
        top_.s_axil_arvalid = 1;
        top_.s_axil_rready = 1;
        for (uint32_t n = 0; n < REGISTER_TIMEOUT_CYCLES; n++) {
            step_without_output();
            if (fired_.read_address) top_.s_axil_arvalid = 0;
            if (fired_.read_data) {
                top_.s_axil_rready = 0;
                value = fired_.data;
                return fired_.response;
            }
        }
        throw SimulationError("a read of register " + std::to_string(address) +
                              " must be answered within 10000 cycles, and wasn't");
    }

    EmberState run(EmberRun& run) {
        return std::visit([&](auto& memory, auto& sink) { return run_with(memory, sink, run); },
                          memory_, sink_);
    }

    EmberCounters counters() const { return counters_; }
    const std::vector<uint64_t>& read_beats_by_id() const { return beats_by_id_; }

    void clear_counters() {
        counters_ = EmberCounters{};
        std::fill(beats_by_id_.begin(), beats_by_id_.end(), 0);
    }

    bool open_trace(const char* path, uint64_t first_cycle, uint64_t end_cycle) {
        return trace_.open(top_, path, first_cycle, end_cycle);
    }
    void close_trace() { trace_.close(); }

private:
    // Handshakes of the register port in the latest cycle.
    struct Fired {
        bool write_address, write_data, write_response, read_address, read_data;
        uint8_t response;
        uint32_t data;
    };

    // A cycle begins with the edge that hands its inputs to the unit; its outputs follow at once.
    void begin_cycle() {
        cycle_++;
        counters_.cycles++;
        top_.clk = 1;
        top_.eval();
        trace_.dump(cycle_, 0);
        top_.clk = 0;
        top_.eval();
        trace_.dump(cycle_, 1);
    }

    template <typename Memory, typename Sink>
    EmberState run_with(Memory& memory, Sink& sink, EmberRun& run) {
        const uint64_t begin = cycle_;
        uint64_t idle = 0;
        EmberState state = EMBER_OUTPUT_FULL;
        while (run.bundles < run.bundle_capacity && run.row_beats < run.row_capacity) {
            idle = step(memory, sink, &run) ? 0 : idle + 1;
            if (irq_ && !output_waits_ && !outstanding_reads_) {
                state = EMBER_PROGRAM_ENDED;
                break;
            }
            if (idle >= run.max_idle_cycles) {
                state = EMBER_IDLE_TIMEOUT;
                break;
            }
        }
        run.cycles = cycle_ - begin;
        return state;
    }

    void step_without_output() {
        std::visit([&](auto& memory, auto& sink) { step(memory, sink, nullptr); }, memory_, sink_);
    }

    // One cycle; gives whether any channel had a handshake. Without `run` both outputs wait.
    template <typename Memory, typename Sink>
    bool step(Memory& memory, Sink& sink, EmberRun* run) {
        const uint64_t next = cycle_ + 1;
        top_.m_axi_arready = memory.accepts(next);
        drive_beat(memory.offer(next));
        top_.m_axis_bundle_tready = run && sink.takes_bundle(next);
        top_.m_axis_row_tready = run && sink.takes_row(next);
        begin_cycle();

        if (!top_.m_axis_aresetn) reset_queues(sink);
        bool active = sample_registers();
        active |= sample_read_address(memory);
        active |= sample_read_data(memory);
        active |= sample_bundle(sink, run);
        active |= sample_row(sink, run);
        output_waits_ = top_.m_axis_bundle_tvalid || top_.m_axis_row_tvalid;
        if (top_.irq && !irq_) counters_.start_to_done_cycles = cycle_ - start_cycle_;
        irq_ = top_.irq;
        return active;
    }

    void drive_beat(const ReadBeat* beat) {
        top_.m_axi_rvalid = beat != nullptr;
        if (!beat || beat_on_pins_) return;
        beat_on_pins_ = true;
        beat_bytes_ = beat->beat_bytes;
        if (beat->data && beat->beat_bytes == BUS_BYTES) {
            write_port<BUS_BYTES>(top_.m_axi_rdata, beat->data);
        } else {
            // Lanes that carry nothing, and beats of an error, must not be used: make it show.
            uint8_t word[BUS_BYTES];
            std::fill_n(word, BUS_BYTES, uint8_t{0xa5});
            if (beat->data) std::copy_n(beat->data, beat->beat_bytes, word + beat->lane);
            write_port<BUS_BYTES>(top_.m_axi_rdata, word);
        }
        top_.m_axi_rid = beat->id;
        top_.m_axi_rresp = beat->response;
        top_.m_axi_rlast = beat->last;
    }

    bool sample_registers() {
        fired_.write_address = top_.s_axil_awvalid && top_.s_axil_awready;
        fired_.write_data = top_.s_axil_wvalid && top_.s_axil_wready;
        fired_.write_response = top_.s_axil_bvalid && top_.s_axil_bready;
        fired_.read_address = top_.s_axil_arvalid && top_.s_axil_arready;
        fired_.read_data = top_.s_axil_rvalid && top_.s_axil_rready;
        if (fired_.write_data) start_cycle_ = cycle_;
        if (fired_.write_response) fired_.response = top_.s_axil_bresp;
        if (fired_.read_data) {
            fired_.response = top_.s_axil_rresp;
            fired_.data = top_.s_axil_rdata;
        }
        return fired_.write_address || fired_.write_data || fired_.write_response ||
               fired_.read_address || fired_.read_data;
    }

    template <typename Memory>
    bool sample_read_address(Memory& memory) {
        const bool valid = top_.m_axi_arvalid;
        const bool ready = top_.m_axi_arready;
        const auto payload = [&] {
            return ReadAddress{top_.m_axi_araddr, top_.m_axi_arid, top_.m_axi_arlen,
                               top_.m_axi_arsize, top_.m_axi_arburst};
        };
        read_hold_.check(valid, ready, cycle_, [&](uint8_t* bytes) {
            const ReadAddress held = payload();
            std::memcpy(bytes, &held, sizeof held);
        });
        if (!valid || !ready) return false;
        const ReadAddress read = payload();
        const ReadRequest request{read.address, read.id, read.length + 1, 1u << read.size};
        check_burst(request, read.burst);
        memory.request(request, cycle_);
        counters_.read_requests++;
        outstanding_reads_++;
        counters_.peak_outstanding_reads =
            std::max(counters_.peak_outstanding_reads, outstanding_reads_);
        return true;
    }

    void check_burst(const ReadRequest& read, uint32_t burst) const {
        const auto fail = [&](const std::string& rule) {
            throw SimulationError("m_axi_ar " + rule + " (address " + std::to_string(read.address) +
                                  ", cycle " + std::to_string(cycle_) + ")");
        };
        if (burst != 1) fail("must ask for INCR bursts, not ARBURST " + std::to_string(burst));
        if (read.beat_bytes > BUS_BYTES) {
            fail("must ask for beats of at most " + std::to_string(BUS_BYTES) + " bytes, not " +
                 std::to_string(read.beat_bytes));
        }
        const uint64_t first = read.address & ~uint64_t{read.beat_bytes - 1};
        const uint64_t end = first + uint64_t{read.beats} * read.beat_bytes;
        if ((first ^ (end - 1)) >> 12) fail("must not cross a 4 KB boundary");
    }

    template <typename Memory>
    bool sample_read_data(Memory& memory) {
        if (!top_.m_axi_rvalid || !top_.m_axi_rready) return false;
        memory.taken();
        beat_on_pins_ = false;
        outstanding_reads_ -= top_.m_axi_rlast;
        counters_.read_beats++;
        counters_.read_bytes += beat_bytes_;
        counters_.read_errors += top_.m_axi_rresp != OKAY;
        beats_by_id_[top_.m_axi_rid]++;
        return true;
    }

    // The unit took back what it had shown, and the rows of the last bundles may never come.
    template <typename Sink>
    void reset_queues(Sink& sink) {
        bundle_hold_.release();
        row_hold_.release();
        sink.reset();
    }

    template <typename Sink>
    bool sample_bundle(Sink& sink, EmberRun* run) {
        const bool valid = top_.m_axis_bundle_tvalid;
        const bool ready = top_.m_axis_bundle_tready;
        bundle_hold_.check(valid, ready, cycle_, [&](uint8_t* bytes) {
            read_port<BUNDLE_BYTES>(top_.m_axis_bundle_tdata, bytes);
            bytes[BUNDLE_BYTES] = top_.m_axis_bundle_tlast;
        });
        if (!valid || !ready) return false;
        uint8_t* bundle = run->bundle_data + run->bundles++ * BUNDLE_BYTES;
        read_port<BUNDLE_BYTES>(top_.m_axis_bundle_tdata, bundle);
        uint64_t events = 0;
        std::copy_n(bundle, std::min(BUNDLE_BYTES, sizeof events),
                    reinterpret_cast<uint8_t*>(&events));
        sink.bundle(events & EVENT_MASK, cycle_);
        counters_.bundles++;
        return true;
    }

    template <typename Sink>
    bool sample_row(Sink& sink, EmberRun* run) {
        const bool valid = top_.m_axis_row_tvalid;
        const bool ready = top_.m_axis_row_tready;
        row_hold_.check(valid, ready, cycle_, [&](uint8_t* bytes) {
            read_port<BUS_BYTES>(top_.m_axis_row_tdata, bytes);
            bytes[BUS_BYTES] = top_.m_axis_row_tlast;
        });
        if (!valid || !ready) return false;
        const bool last = top_.m_axis_row_tlast;
        const auto bytes = static_cast<uint32_t>(std::popcount(uint64_t{top_.m_axis_row_tkeep}));
        read_port<BUS_BYTES>(top_.m_axis_row_tdata, run->row_data + run->row_beats * BUS_BYTES);
        if (run->row_last) run->row_last[run->row_beats] = last;
        if (run->row_cycles) run->row_cycles[run->row_beats] = cycle_;
        run->row_beats++;
        sink.row_beat(bytes, last, cycle_);
        counters_.row_beats++;
        counters_.row_bytes += bytes;
        return true;
    }

    Vsimulation_top top_;
    AnyMemory memory_;
    AnySink sink_;
    Trace trace_;
    uint64_t cycle_ = 0;
    uint64_t start_cycle_ = 0;
    uint64_t outstanding_reads_ = 0;
    bool beat_on_pins_ = false;
    uint32_t beat_bytes_ = 0;  // of the beat on the pins
    bool output_waits_ = false;
    bool irq_ = false;
    Fired fired_{};
    HoldCheck<sizeof(ReadAddress)> read_hold_{"m_axi_ar"};
    HoldCheck<BUNDLE_BYTES + 1> bundle_hold_{"m_axis_bundle"};
    HoldCheck<BUS_BYTES + 1> row_hold_{"m_axis_row"};
    EmberCounters counters_{};
    std::vector<uint64_t> beats_by_id_;
};

}  // namespace ember
