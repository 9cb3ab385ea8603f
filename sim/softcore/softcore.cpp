// One run of softcore_top: reads a plan, simulates until the firmware's last marker, writes what the
// core stored and prints what was counted as a line of JSON.
//
// A plan has one directive a line:
//   latency CYCLES               of both memory ports
//   limit CYCLES                 after which the run is given up
//   local ADDRESS FILE           bytes into the core's local memory
//   word ADDRESS VALUE           a word into the core's local memory
//   map ADDRESS FILE             bytes of memory, read-only
//   output ADDRESS BYTES FILE    memory that the core writes; FILE gets it at the end
//   last MARKER                  ends the run; others are only noted; may stand several times

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <list>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "Vsoftcore_top.h"
#include "memories/ideal_memory.hpp"
#include "ports.hpp"
#include "verilated.h"

using namespace ember;

namespace {

constexpr size_t BUS_BYTES = EMBER_BUS_BYTES;
constexpr uint32_t WORD_BYTES = 4;
constexpr uint32_t LINE_WORDS = 8;

using Bytes = std::vector<uint8_t>;

struct Output {
    uint64_t base;
    Bytes bytes;
    std::string file;
};

struct Plan {
    uint64_t latency_cycles = 1;
    uint64_t limit_cycles = 0;
    std::map<uint32_t, uint32_t> local_words;  // by address
    std::list<Bytes> files;
    AddressMap memory;
    Output output{};
    std::set<uint32_t> last_markers;
};

Bytes read_file(const std::string& name) {
    std::ifstream file(name, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + name);
    return Bytes(std::istreambuf_iterator<char>(file), {});
}

Plan read_plan(const char* name) {
    Plan plan;
    std::ifstream file(name);
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string directive, path;
        uint64_t first = 0, second = 0;
        words >> directive;
        if (directive == "latency") {
            words >> plan.latency_cycles;
        } else if (directive == "limit") {
            words >> plan.limit_cycles;
        } else if (directive == "local") {
            words >> first >> path;
            Bytes bytes = read_file(path);
            bytes.resize((bytes.size() + WORD_BYTES - 1) / WORD_BYTES * WORD_BYTES);
            for (size_t n = 0; n < bytes.size(); n += WORD_BYTES) {
                uint32_t word;
                std::memcpy(&word, &bytes[n], WORD_BYTES);
                plan.local_words[static_cast<uint32_t>(first + n)] = word;
            }
        } else if (directive == "word") {
            words >> first >> second;
            plan.local_words[static_cast<uint32_t>(first)] = static_cast<uint32_t>(second);
        } else if (directive == "map") {
            words >> first >> path;
            plan.files.push_back(read_file(path));
            plan.memory.map(first, plan.files.back().data(), plan.files.back().size(), false);
        } else if (directive == "output") {
            words >> first >> second >> plan.output.file;
            plan.output.base = first;
            plan.output.bytes.assign(second, 0);
        } else if (directive == "last") {
            words >> first;
            plan.last_markers.insert(static_cast<uint32_t>(first));
        } else {
            words.setstate(std::ios::failbit);
        }
        if (words.fail()) throw std::runtime_error("cannot read the directive '" + line + "'");
    }
    return plan;
}

class Run {
public:
    explicit Run(Plan& plan)
        : plan_(plan),
          core_memory_(MemoryPort{&plan.memory, WORD_BYTES, 1}, plan.latency_cycles, 0),
          unit_memory_(MemoryPort{&plan.memory, BUS_BYTES, 1u << EMBER_ID_BITS}, plan.latency_cycles,
                       0) {
        top_.rst = 1;
        top_.eval();  // the first evaluation sees no edge
        for (const auto& [address, word] : plan.local_words) {
            top_.load_valid = 1;
            top_.load_address = address;
            top_.load_data = word;
            edge();
        }
        top_.load_valid = 0;
        for (int n = 0; n < 8; n++) edge();
        top_.rst = 0;
    }

    ~Run() { top_.final(); }

    void until_last_marker() {
        while (!has_ended_) {
            if (cycle_ == plan_.limit_cycles) {
                fail("the firmware must end within " + std::to_string(cycle_) + " cycles");
            }
            cycle();
        }
    }

    void print() const {
        std::printf("{\"core_reads\": %llu, \"core_words\": %llu, \"unit_reads\": %llu, "
                    "\"unit_bytes\": %llu, \"markers\": [",
                    count(core_reads_), count(core_words_), count(unit_reads_),
                    count(unit_beats_ * BUS_BYTES));
        const char* comma = "";
        for (const auto& [marker, cycle] : markers_) {
            std::printf("%s[%u, %llu]", comma, marker, count(cycle));
            comma = ", ";
        }
        std::printf("]}\n");
    }

private:
    static unsigned long long count(uint64_t value) { return value; }

    [[noreturn]] void fail(const std::string& rule) const {
        throw SimulationError(rule + ", and didn't (cycle " + std::to_string(cycle_) + ")");
    }

    void edge() {
        top_.clk = 1;
        top_.eval();
        top_.clk = 0;
        top_.eval();
    }

    // Inputs of the cycle settle before its handshakes are sampled; the edge ends it.
    void cycle() {
        const ReadBeat* word = core_memory_.offer(cycle_);
        top_.core_data_valid = word != nullptr;
        if (word) top_.core_data = word_of(*word);
        const ReadBeat* beat = unit_memory_.offer(cycle_);
        top_.m_axi_rvalid = beat != nullptr;
        if (beat) drive_beat(*beat);
        top_.m_axi_arready = 1;
        top_.eval();

        if (top_.core_stopped) fail("the core must run on without a trap");
        if (top_.core_read) read_for_core();
        if (top_.core_write) write_for_core();
        if (word) {
            core_memory_.taken();
            core_words_++;
        }
        if (top_.m_axi_arvalid) {
            unit_memory_.request(BurstRequest{top_.m_axi_araddr, top_.m_axi_arid,
                                             top_.m_axi_arlen + 1u, 1u << top_.m_axi_arsize},
                                 cycle_);
            unit_reads_++;
        }
        if (beat && top_.m_axi_rready) {
            unit_memory_.taken();
            unit_beats_++;
        }
        if (top_.marker_valid) {
            markers_.emplace_back(top_.marker, cycle_);
            has_ended_ = plan_.last_markers.count(top_.marker) != 0;
        }
        edge();
        cycle_++;
    }

    uint32_t word_of(const ReadBeat& beat) const {
        if (!beat.data) fail("the core must read where there is memory");
        uint32_t word;
        std::memcpy(&word, beat.data, WORD_BYTES);
        return word;
    }

    void drive_beat(const ReadBeat& beat) {
        uint8_t bytes[BUS_BYTES] = {};
        if (beat.data) std::copy_n(beat.data, beat.beat_bytes, bytes + beat.lane);
        write_port<BUS_BYTES>(top_.m_axi_rdata, bytes);
        top_.m_axi_rid = beat.id;
        top_.m_axi_rresp = beat.response;
        top_.m_axi_rlast = beat.last;
    }

    void read_for_core() {
        const uint32_t words = top_.core_line ? LINE_WORDS : 1;
        const uint64_t address = top_.core_address & ~uint64_t{words * WORD_BYTES - 1};
        core_memory_.request(BurstRequest{address, 0, words, WORD_BYTES}, cycle_);
        core_reads_++;
    }

    void write_for_core() {
        const uint64_t address = top_.core_address & ~uint64_t{WORD_BYTES - 1};
        Output& output = plan_.output;
        if (address < output.base || address - output.base + WORD_BYTES > output.bytes.size()) {
            fail("the core must write to its output, not to " + std::to_string(address));
        }
        for (uint32_t n = 0; n < WORD_BYTES; n++) {
            if (top_.core_write_strobe >> n & 1) {
                output.bytes[address - output.base + n] =
                    static_cast<uint8_t>(top_.core_write_data >> 8 * n);
            }
        }
    }

    Vsoftcore_top top_;
    Plan& plan_;
    IdealMemory core_memory_;
    IdealMemory unit_memory_;
    uint64_t cycle_ = 0;
    uint64_t core_reads_ = 0, core_words_ = 0, unit_reads_ = 0, unit_beats_ = 0;
    std::vector<std::pair<uint32_t, uint64_t>> markers_;
    bool has_ended_ = false;
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::cerr << "softcore takes one argument, the file of the plan\n";
        return 2;
    }
    try {
        Plan plan = read_plan(arguments[1]);
        Run run(plan);
        run.until_last_marker();
        const Output& output = plan.output;
        std::ofstream file(output.file, std::ios::binary);
        file.write(reinterpret_cast<const char*>(output.bytes.data()),
                   static_cast<std::streamsize>(output.bytes.size()));
        if (!file.flush()) throw std::runtime_error("cannot write " + output.file);
        run.print();
        return 0;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
