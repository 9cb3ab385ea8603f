// A trace of a window of cycles, VCD or FST; nothing in a model that was built without tracing.
#pragma once

#include <cstdint>
#include <memory>

#include "Vsimulation_top.h"
#include "harness.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
#elif VM_TRACE
#include "verilated_vcd_c.h"
#endif

namespace ember {

class Trace {
public:
    // Begins a trace of a window. Gives false if the model has no trace or the file can't be
    // written.
    bool open(Vsimulation_top& top, const EmberTrace& window) {
#if VM_TRACE
        close();
        file_ = std::make_unique<File>();
        top.trace(file_.get(), 99);
        file_->open(window.path);
        if (!file_->isOpen()) file_.reset();
        window_ = window;
        cycles_ = 0;
        return file_ != nullptr;
#else
        (void)top, (void)window;
        return false;
#endif
    }

    // A cycle is two time units: its edge and everything that follows, and the falling clock. Rows
    // count from the opening of the window: asked for, and delivered.
    void dump(uint64_t cycle, uint64_t phase, uint64_t rows_asked, uint64_t rows_delivered) {
#if VM_TRACE
        if (!file_) return;
        const uint64_t begun = window_.by_rows ? rows_asked : cycle + 1;
        const uint64_t done = window_.by_rows ? rows_delivered : cycle;
        if (begun <= window_.first) return;
        if (done >= window_.end) return close();
        file_->dump(2 * cycle + phase);
        if (phase && ++cycles_ % FLUSHED_CYCLES == 0) file_->flush();
#else
        (void)cycle, (void)phase, (void)rows_asked, (void)rows_delivered;
#endif
    }

    void close() {
#if VM_TRACE
        if (file_) file_->close();
        file_.reset();
#endif
    }

    // Cycles written since the latest opening.
    uint64_t cycles() const {
#if VM_TRACE
        return cycles_;
#else
        return 0;
#endif
    }

#if VM_TRACE
private:
#if VM_TRACE_FST
    using File = VerilatedFstC;
#else
    using File = VerilatedVcdC;
#endif
    // A process that is killed loses no more than these.
    static constexpr uint64_t FLUSHED_CYCLES = 4096;

    std::unique_ptr<File> file_;
    EmberTrace window_{};
    uint64_t cycles_ = 0;
#endif
};

}  // namespace ember
