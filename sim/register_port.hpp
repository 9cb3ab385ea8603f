// The AXI4-Lite port: single accesses, and a list of them that is worked off while the units run.
#pragma once

#include <string>
#include <vector>

#include "Vsimulation_top.h"
#include "harness.h"
#include "memories/memory.hpp"
#include "ports.hpp"

namespace ember {

class RegisterPort {
public:
    explicit RegisterPort(Vsimulation_top& top) : top_(top) {}

    void reset() {
        top_.s_axil_awvalid = top_.s_axil_wvalid = top_.s_axil_bready = 0;
        top_.s_axil_arvalid = top_.s_axil_rready = 0;
        is_busy_ = false;
        set_list(nullptr, 0);
    }

    // Both channels are raised at once: a subordinate may wait for either.
    void begin_write(uint32_t address, uint32_t value) {
        top_.s_axil_awaddr = address;
        top_.s_axil_awvalid = 1;
        top_.s_axil_wdata = value;
        top_.s_axil_wvalid = 1;
        top_.s_axil_bready = 1;
        is_busy_ = true;
    }

    void begin_read(uint32_t address) {
        top_.s_axil_araddr = address;
        top_.s_axil_arvalid = 1;
        top_.s_axil_rready = 1;
        is_busy_ = true;
    }

    bool is_busy() const { return is_busy_; }
    uint8_t response() const { return response_; }
    uint32_t data() const { return data_; }

    // Whether a write's data was handed over in the latest cycle.
    bool has_written() const { return has_written_; }
    uint32_t address() const { return top_.s_axil_awaddr; }

    void set_list(const EmberAccess* accesses, size_t count) {
        list_.assign(accesses, accesses + count);
        next_ = abandoned_ = 0;
        has_list_ = count != 0;
    }

    // The list is done; what it left undone is still known.
    void end_list() { has_list_ = false; }

    bool has_list() const { return has_list_; }
    bool list_is_done() const { return !has_list_ || (next_ == list_.size() && !is_busy_); }
    size_t left() const { return list_.size() - next_ + abandoned_; }

    // Begins the list's next access; called before each cycle of a run.
    void drive() {
        if (is_busy_ || next_ == list_.size()) return;
        const EmberAccess& access = list_[next_];
        if (access.kind == EMBER_WRITE) {
            begin_write(access.address, access.value);
        } else {
            begin_read(access.address);
        }
        is_of_list_ = true;
    }

    // Gives whether there was a handshake; those of the list's reads don't count, as a list may
    // wait for what never comes.
    bool sample() {
        const bool is_read = top_.s_axil_arvalid || top_.s_axil_rready;
        bool active = false;
        has_written_ = top_.s_axil_wvalid && top_.s_axil_wready;
        if (top_.s_axil_awvalid && top_.s_axil_awready) {
            top_.s_axil_awvalid = 0;
            active = true;
        }
        if (has_written_) {
            top_.s_axil_wvalid = 0;
            active = true;
        }
        if (top_.s_axil_bvalid && top_.s_axil_bready) {
            top_.s_axil_bready = 0;
            finish(top_.s_axil_bresp);
            active = true;
        }
        if (top_.s_axil_arvalid && top_.s_axil_arready) {
            top_.s_axil_arvalid = 0;
            active = true;
        }
        if (top_.s_axil_rvalid && top_.s_axil_rready) {
            top_.s_axil_rready = 0;
            data_ = top_.s_axil_rdata;
            finish(top_.s_axil_rresp);
            active = true;
        }
        return active && !(is_read && has_list_);
    }

private:
    void finish(uint8_t response) {
        response_ = response;
        is_busy_ = false;
        if (!is_of_list_) return;
        is_of_list_ = false;
        const EmberAccess& access = list_[next_];
        const uint32_t value = data_ & access.mask;
        if (response != OKAY || (access.kind == EMBER_STOP_IF && value == access.value)) {
            abandoned_ = list_.size() - next_;
            list_.clear();
            next_ = 0;
        } else if (access.kind != EMBER_WAIT || value <= access.value) {
            next_++;
        }
    }

    Vsimulation_top& top_;
    bool is_busy_ = false;
    bool has_written_ = false;
    uint8_t response_ = 0;
    uint32_t data_ = 0;
    std::vector<EmberAccess> list_;
    size_t next_ = 0;
    size_t abandoned_ = 0;
    bool has_list_ = false;
    bool is_of_list_ = false;  // the access under way
};

}  // namespace ember
