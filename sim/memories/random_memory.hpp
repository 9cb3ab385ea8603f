// Random latency with everything out of order that AXI4 allows, at one beat a cycle.
#pragma once

#include <deque>
#include <queue>
#include <utility>
#include <vector>

#include "memory.hpp"
#include "random.hpp"

namespace ember {

// Each burst draws its latency. Of all IDs whose oldest burst is due, a random one gives the next
// beat, so bursts overtake each other and beats interleave; those of one ID stay in order. So does
// each write, which is answered so long after its last beat, or behind the write before it.
class RandomMemory final : public Memory {
public:
    RandomMemory(const MemoryPort& port, uint64_t seed, uint64_t min_latency_cycles,
                 uint64_t max_latency_cycles)
        : port_(port),
          random_(seed),
          min_latency_cycles_(min_latency_cycles),
          max_latency_cycles_(max_latency_cycles),
          queues_(port.ids),
          writes_(port) {}

    bool accepts(uint64_t) override { return true; }

    void request(const BurstRequest& read, uint64_t cycle) override {
        const uint64_t due = cycle + random_.between(min_latency_cycles_, max_latency_cycles_);
        auto& queue = queues_[read.id];
        queue.push_back(Burst{read, due, 0});
        if (queue.size() == 1) waiting_.emplace(due, read.id);
    }

    const ReadBeat* offer(uint64_t cycle) override {
        while (!waiting_.empty() && waiting_.top().first <= cycle) {
            due_ids_.push_back(waiting_.top().second);
            waiting_.pop();
        }
        if (offered_) return &beat_;
        if (due_ids_.empty()) return nullptr;
        chosen_ = random_.between(0, due_ids_.size() - 1);
        const Burst& burst = queues_[due_ids_[chosen_]].front();
        beat_ = make_beat(port_, burst.read, burst.beats_done);
        offered_ = true;
        return &beat_;
    }

    void taken() override {
        offered_ = false;
        auto& queue = queues_[beat_.id];
        queue.front().beats_done++;
        if (!beat_.last) return;
        queue.pop_front();
        std::swap(due_ids_[chosen_], due_ids_.back());
        due_ids_.pop_back();
        if (!queue.empty()) waiting_.emplace(queue.front().due_cycle, beat_.id);
    }

    void write(const BurstRequest& write, uint64_t cycle) override {
        writes_.push(write, cycle + random_.between(min_latency_cycles_, max_latency_cycles_));
    }

    const WriteAnswer* answer(uint64_t cycle) override { return writes_.answer(cycle); }

    void answered() override { writes_.answered(); }

private:
    struct Burst {
        BurstRequest read;
        uint64_t due_cycle;
        uint32_t beats_done;
    };
    using Due = std::pair<uint64_t, uint32_t>;  // cycle, ID

    MemoryPort port_;
    Random random_;
    uint64_t min_latency_cycles_;
    uint64_t max_latency_cycles_;
    std::vector<std::deque<Burst>> queues_;  // by ID
    std::priority_queue<Due, std::vector<Due>, std::greater<>> waiting_;  // IDs not due yet
    std::vector<uint32_t> due_ids_;
    size_t chosen_ = 0;  // place in due_ids_ of the offered beat's ID
    ReadBeat beat_{};
    bool offered_ = false;
    WritesInOrder writes_;
};

}  // namespace ember
