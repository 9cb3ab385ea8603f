// A VCD trace of a window of cycles; nothing in a model that was built without tracing.
#pragma once

#include <cstdint>
#include <memory>

#include "Vsimulation_top.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

namespace ember {

class Trace {
public:
    // Writes cycles [first_cycle, end_cycle). Gives false if the model has no trace or the file
    // can't be written.
    bool open(Vsimulation_top& top, const char* path, uint64_t first_cycle, uint64_t end_cycle) {
#if VM_TRACE
        close();
        file_ = std::make_unique<VerilatedVcdC>();
        top.trace(file_.get(), 99);
        file_->open(path);
        if (!file_->isOpen()) file_.reset();
        first_cycle_ = first_cycle;
        end_cycle_ = end_cycle;
        return file_ != nullptr;
#else
        (void)top, (void)path, (void)first_cycle, (void)end_cycle;
        return false;
#endif
    }

    // A cycle is two time units: its edge and everything that follows, and the falling clock.
    void dump(uint64_t cycle, uint64_t phase) {
#if VM_TRACE
        if (!file_ || cycle < first_cycle_) return;
        if (cycle >= end_cycle_) return close();
        file_->dump(2 * cycle + phase);
#else
        (void)cycle, (void)phase;
#endif
    }

    void close() {
#if VM_TRACE
        if (file_) file_->close();
        file_.reset();
#endif
    }

#if VM_TRACE
private:
    std::unique_ptr<VerilatedVcdC> file_;
    uint64_t first_cycle_ = 0;
    uint64_t end_cycle_ = 0;
#endif
};

}  // namespace ember
