// The memory models behind one factory, and what they answer without an access unit.

#include "memories.hpp"

#include <algorithm>

#include "dram_memory.hpp"
#include "ideal_memory.hpp"
#include "random_memory.hpp"
#include "test_memory.hpp"

namespace ember {

std::unique_ptr<Memory> make_memory(const MemoryPort& port, const EmberMemory& choice) {
    switch (choice.kind) {
        case EMBER_TEST_MEMORY:
            return std::make_unique<TestMemory>(
                port, TestMemoryOptions{
                          .seed = choice.seed,
                          .min_latency_cycles = choice.min_latency_cycles,
                          .max_latency_cycles = choice.max_latency_cycles,
                          .min_write_latency_cycles = choice.min_write_latency_cycles,
                          .max_write_latency_cycles = choice.max_write_latency_cycles,
                          .request_stall_probability = choice.request_stall_probability,
                          .beat_stall_probability = choice.beat_stall_probability,
                          .reorder = choice.reorder != 0,
                          .interleave = choice.interleave != 0,
                          .error_base = choice.error_base,
                          .error_bytes = choice.error_bytes,
                          .decode_error_base = choice.decode_error_base,
                          .decode_error_bytes = choice.decode_error_bytes});
        case EMBER_RANDOM_MEMORY:
            return std::make_unique<RandomMemory>(port, choice.seed, choice.min_latency_cycles,
                                                  choice.max_latency_cycles);
        case EMBER_DRAM_MEMORY:
            return std::make_unique<DramMemory>(port, *choice.dram, choice.record_commands != 0);
        default:
            return std::make_unique<IdealMemory>(port, choice.min_latency_cycles,
                                                 choice.bytes_per_cycle);
    }
}

const std::vector<EmberDramCommand>* dram_commands(const Memory& memory) {
    const auto* dram = dynamic_cast<const DramMemory*>(&memory);
    return dram ? &dram->commands() : nullptr;
}

}  // namespace ember

using namespace ember;

uint64_t ember_replay(const EmberMemory* choice, uint32_t bus_bytes, const EmberRead* reads,
                      size_t count) {
    AddressMap map;  // empty: no data is looked at
    const auto memory =
        make_memory(MemoryPort{&map, bus_bytes, static_cast<uint32_t>(count)}, *choice);
    uint64_t beats = 0;
    memory->accepts(0);
    for (size_t n = 0; n < count; n++) {
        memory->request(BurstRequest{reads[n].address, static_cast<uint32_t>(n), reads[n].beats,
                                    reads[n].beat_bytes},
                        0);
        beats += reads[n].beats;
    }
    uint64_t cycle = 0;
    while (beats) {
        cycle++;
        memory->accepts(cycle);
        if (!memory->offer(cycle)) continue;
        memory->taken();
        beats--;
    }
    return cycle;
}

size_t ember_run_accesses(const EmberDram* dram, const uint64_t* addresses,
                          const uint8_t* is_write, const uint64_t* clocks, size_t count,
                          EmberAccessRun* run, EmberDramCommand* commands, size_t capacity) {
    DramChannel channel(*dram);
    std::vector<EmberDramCommand> issued;
    channel.record(&issued);
    *run = {};
    size_t next = 0, answered = 0;
    while (answered < count) {
        while (next < count && (!clocks || clocks[next] <= channel.clock())) {
            const bool writes = is_write && is_write[next];
            if (!channel.has_room(writes)) break;
            channel.enqueue(dram_place(*dram, addresses[next]), next, writes);
            next++;
        }
        channel.tick();
        for (auto& done = channel.done(); !done.empty(); done.pop_front()) {
            run->clocks = done.front().clock;
            run->latency_clocks += done.front().clock - done.front().queued_clock;
            answered++;
        }
    }
    run->activates = channel.activates();
    run->refreshes = channel.refreshes();
    std::copy_n(issued.begin(), std::min(issued.size(), capacity), commands);
    return issued.size();
}
