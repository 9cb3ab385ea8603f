// An SDR SDRAM as its pins see it: data, and every limit between commands.
//
// One call is one rising edge of the chip's clock. The model shares no state with the controller
// and reckons each limit from the clocks at which earlier commands came.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ember {

// The fields of SdramChip and SdramClocks (chip.py), in the order of their declaration.
struct SdramLimits {
    uint32_t row_bits, bank_bits, column_bits;
    uint32_t cl, trcd, trp, tras, trc, trrd, twr, trfc, trefi, tmrd, power_up, tras_most;
};

// What the chip finds at an edge; a bit is 1 where its pin is asserted.
struct SdramEdge {
    uint8_t command;  // ras, cas, we from the highest bit
    uint8_t bank;
    uint16_t address;
    uint8_t mask;
    uint8_t driven;  // the controller drives the data pins
    uint16_t data;
};

struct SdramViolation {
    const char* rule;
    uint64_t clock;
    std::string text;
};

struct SdramCommand {
    uint64_t clock;
    uint8_t command;
    uint8_t bank;
    uint16_t address;
};

class SdramChip {
public:
    explicit SdramChip(const SdramLimits& limits)
        : t(limits), memory_(size_t{1} << (t.row_bits + t.bank_bits + t.column_bits)) {}

    // Takes what the pins show and returns the data pins at this edge, with CL counted as JEDEC
    // does: a READ at edge n has its first word at edge n + CL. Where nothing drives them, noise.
    uint16_t edge(const SdramEdge& pins) {
        switch (pins.command) {
        case 0b000: break;
        case 0b100: activate(pins); break;
        case 0b010: read(pins); break;
        case 0b011: write(pins); break;
        case 0b101: precharge(pins); break;
        case 0b110: refresh(); break;
        case 0b111: load_mode(pins); break;
        default: violate("command", "must not be BURST TERMINATE");
        }
        if (pins.command && keep_trace)
            trace.push_back({clock_, pins.command, pins.bank, pins.address});
        if (pins.command) counts[pins.command]++;
        take_word(pins);
        const uint16_t shown = give_word(pins);
        masks_ = masks_ << 4 | pins.mask;
        if (mode_loaded_ && refreshes_ + 1 < (clock_ - mode_clock_) / t.trefi) {
            violate("trefi", "must be refreshed by now: " + std::to_string(refreshes_) + " of " +
                                 std::to_string((clock_ - mode_clock_) / t.trefi));
            refreshes_++;  // told once
        }
        clock_++;
        return shown;
    }

    bool keep_trace = false;
    std::vector<SdramCommand> trace;
    std::vector<SdramViolation> violations;  // the first ones
    uint64_t violation_count = 0;
    std::array<uint64_t, 8> counts{};  // by command

    uint64_t clock() const { return clock_; }
    uint16_t& word(uint64_t number) { return memory_.at(number); }
    uint64_t words() const { return memory_.size(); }

private:
    static constexpr uint64_t kNever = ~uint64_t{0};
    static constexpr uint32_t kBurst = 8;

    struct Bank {
        bool open = false;
        uint32_t row = 0;
        uint64_t activated = kNever, precharged = kNever, read = kNever, written = kNever;
    };
    struct Burst {
        uint64_t first_word;  // its edge
        uint32_t bank, row, column;
    };

    void violate(const char* rule, const std::string& text) {
        violation_count++;
        if (violations.size() < 100)
            violations.push_back({rule, clock_, "clock " + std::to_string(clock_) + ": " + text});
    }

    void least(const char* rule, const char* what, uint64_t since, uint64_t clocks) {
        if (since != kNever && clock_ < since + clocks)
            violate(rule, std::string(what) + " must come " + std::to_string(clocks) +
                              " clocks after, not " + std::to_string(clock_ - since));
    }

    // Rules of every command.
    void command(const char* what) {
        if (clock_ < t.power_up && !powered_) violate("power-up", std::string(what) + " too early");
        powered_ = true;
        least("tmrd", what, mode_clock_, t.tmrd);
        least("trfc", what, refreshed_, t.trfc);
    }

    Bank& bank(const SdramEdge& pins) { return banks_.at(pins.bank); }

    void activate(const SdramEdge& pins) {
        Bank& b = bank(pins);
        command("ACTIVATE");
        if (!mode_loaded_) violate("order", "ACTIVATE must follow LOAD MODE");
        if (b.open) violate("row", "ACTIVATE must find its bank closed");
        least("trp", "ACTIVATE", b.precharged, t.trp);
        least("trc", "ACTIVATE", b.activated, t.trc);
        least("trrd", "ACTIVATE", last_activate_, t.trrd);
        b.open = true;
        b.row = pins.address;
        b.activated = last_activate_ = clock_;
    }

    void access(const SdramEdge& pins, const char* what) {
        Bank& b = bank(pins);
        command(what);
        if (!b.open) violate("row", std::string(what) + " must find its bank open");
        least("trcd", what, b.activated, t.trcd);
        if (pins.address >> 10 & 1)
            violate("auto-precharge", std::string(what) + " must leave its row open");
        // A READ or WRITE within a burst ends that burst.
        least("burst", what, last_read_, kBurst);
        least("burst", what, last_write_, kBurst);
    }

    uint32_t column(const SdramEdge& pins) const { return pins.address & ((1u << t.column_bits) - 1); }

    void read(const SdramEdge& pins) {
        access(pins, "READ");
        bank(pins).read = last_read_ = clock_;
        reads_.push_back({clock_ + t.cl, pins.bank, bank(pins).row, column(pins)});
    }

    void write(const SdramEdge& pins) {
        access(pins, "WRITE");
        bank(pins).written = last_write_ = clock_;
        write_ = {clock_, pins.bank, bank(pins).row, column(pins)};
        writing_ = true;
    }

    void precharge(const SdramEdge& pins) {
        command("PRECHARGE");
        const bool all = pins.address >> 10 & 1;
        for (uint32_t i = 0; i < 1u << t.bank_bits; i++) {
            if (!all && i != pins.bank) continue;
            Bank& b = banks_[i];
            if (b.open) {
                least("tras", "PRECHARGE", b.activated, t.tras);
                if (clock_ > b.activated + t.tras_most)
                    violate("tras_most", "PRECHARGE must come " + std::to_string(t.tras_most) +
                                             " clocks after ACTIVATE at most");
                least("burst", "PRECHARGE", b.read, kBurst);
                least("twr", "PRECHARGE", b.written, kBurst - 1 + t.twr);
            }
            b.open = false;
            b.precharged = clock_;
        }
        if (all) precharged_ = true;
    }

    void all_closed(const char* what) {
        for (uint32_t i = 0; i < 1u << t.bank_bits; i++) {
            if (banks_[i].open) violate("row", std::string(what) + " must find all banks closed");
            least("trp", what, banks_[i].precharged, t.trp);
        }
    }

    void refresh() {
        command("REFRESH");
        if (!precharged_) violate("order", "REFRESH must follow PRECHARGE of all banks");
        all_closed("REFRESH");
        for (uint32_t i = 0; i < 1u << t.bank_bits; i++)
            least("trc", "REFRESH", banks_[i].activated, t.trc);
        refreshed_ = clock_;
        if (mode_loaded_) refreshes_++;
        else first_refreshes_++;
    }

    void load_mode(const SdramEdge& pins) {
        command("LOAD MODE");
        all_closed("LOAD MODE");
        if (first_refreshes_ < 2) violate("order", "LOAD MODE must follow two REFRESHes");
        const uint32_t wanted = 0b011 | t.cl << 4;
        if (pins.address != wanted || pins.bank)
            violate("mode", "mode must be " + std::to_string(wanted) + ", not " +
                                std::to_string(pins.address));
        mode_loaded_ = true;
        mode_clock_ = clock_;
    }

    uint64_t place(const Burst& burst, uint64_t word) const {
        const uint64_t base = uint64_t{burst.row} << t.bank_bits | burst.bank;
        // A burst wraps within its eight words.
        const uint32_t column = (burst.column & ~7u) | ((burst.column + word) & 7u);
        return base << t.column_bits | column;
    }

    void take_word(const SdramEdge& pins) {
        const bool due = writing_ && clock_ < write_.first_word + kBurst;
        if (due != bool(pins.driven))
            violate("data", due ? "the controller must drive the data pins"
                                : "the controller must not drive the data pins");
        if (!due) return;
        uint16_t& word = memory_.at(place(write_, clock_ - write_.first_word));
        const uint16_t kept = (pins.mask & 1 ? 0x00FF : 0) | (pins.mask & 2 ? 0xFF00 : 0);
        word = (word & kept) | (pins.data & ~kept);
    }

    uint16_t give_word(const SdramEdge& pins) {
        while (!reads_.empty() && clock_ >= reads_.front().first_word + kBurst)
            reads_.erase(reads_.begin());
        uint16_t noise = uint16_t(clock_ * 0x9E37u ^ 0x5A5Au);
        const bool drives = !reads_.empty() && clock_ >= reads_.front().first_word;
        // The chip lets go of the pins within a clock of its last word.
        const bool lets_go = last_word_ != kNever && clock_ == last_word_ + 1;
        if (pins.driven && (drives || lets_go))
            violate("contention", "chip and controller must not both drive the data pins");
        if (!drives) return noise;
        last_word_ = clock_;
        if (masks_ >> 4 & 3) return noise;  // masked two edges ago
        return memory_.at(place(reads_.front(), clock_ - reads_.front().first_word));
    }

    const SdramLimits t;
    std::vector<uint16_t> memory_;
    std::array<Bank, 4> banks_{};
    std::vector<Burst> reads_;
    Burst write_{};
    bool writing_ = false, powered_ = false, precharged_ = false, mode_loaded_ = false;
    uint32_t first_refreshes_ = 0, masks_ = 0;
    uint64_t refreshes_ = 0, clock_ = 0, mode_clock_ = kNever, refreshed_ = kNever;
    uint64_t last_activate_ = kNever, last_read_ = kNever, last_write_ = kNever;
    uint64_t last_word_ = kNever;
};

}  // namespace ember
