// A DDR3 chip as its controller sees it through a PHY of rate 1:2: keeps data, checks every command.
//
// Times count clocks of the chip, two a cycle of the controller. The PHY is as long as LiteDRAM's
// for the ECP5 says it is: what was read comes `read_latency` cycles after the command, what is
// written is taken `write_latency` cycles after it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace ember {

constexpr int kPhases = 2;
constexpr int64_t kLongAgo = -1'000'000;
constexpr int64_t kBurstClocks = 4;

using Beat = std::array<uint64_t, 2>;

// The fields of `_Limits` in exercise.py.
struct Ddr3Limits {
    uint32_t row_bits, bank_bits, page_beat_bits;
    uint32_t trcd, trp, tras, trrd, tfaw, twr, twtr, trtp, tccd, trfc, trefi, tzqcs;
    uint32_t cl, cwl, read_latency, write_latency;
};

// The pins of one phase; commands as JEDEC has them: RAS, CAS and WE, low where asserted.
struct Ddr3Phase {
    bool selected;
    uint8_t command;
    uint32_t bank, address;
};

struct Ddr3Cycle {  // what the controller shows in one of its cycles
    Ddr3Phase phases[kPhases];
    bool read_enable, write_enable;
    Beat write_data;
    uint16_t write_mask;
};

struct Ddr3Answer {
    bool valid;
    Beat data;
};

enum Ddr3Command : uint8_t {
    kModeRegister = 0b000,
    kRefresh = 0b001,
    kPrecharge = 0b010,
    kActivate = 0b011,
    kWrite = 0b100,
    kRead = 0b101,
    kCalibrate = 0b110,
    kNothing = 0b111,
};

class Ddr3Chip {
  public:
    explicit Ddr3Chip(const Ddr3Limits& limits)
        : l_(limits), banks_(size_t{1} << limits.bank_bits) {}

    uint64_t violation_count = 0;
    std::string first_violation;
    uint64_t counts[8] = {};

    // What a beat holds that was never written.
    static Beat original(uint64_t beat) {
        auto mix = [](uint64_t z) {
            z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
            z = (z ^ z >> 27) * 0x94D049BB133111EBull;
            return z ^ z >> 31;
        };
        return {mix(2 * beat + 1), mix(2 * beat + 2)};
    }

    Beat beat(uint64_t number) const {
        auto found = written_.find(number);
        return found == written_.end() ? original(number) : found->second;
    }

    // What the PHY brings in the coming cycle, before the controller's outputs of it are known.
    Ddr3Answer answer() const {
        if (reads_.empty() || reads_.front().first != cycle_) return {};
        return {true, reads_.front().second};
    }

    void cycle(const Ddr3Cycle& pins) {
        if (!reads_.empty() && reads_.front().first == cycle_) reads_.pop_front();
        bool reads = false, writes = false;
        for (int i = 0; i < kPhases; i++) {
            const Ddr3Phase& phase = pins.phases[i];
            if (!phase.selected || phase.command == kNothing) continue;
            counts[phase.command]++;
            command(kPhases * cycle_ + i, phase);
            reads |= phase.command == kRead;
            writes |= phase.command == kWrite;
        }
        expect(reads == pins.read_enable, "rddata_en", "must come with READ");
        expect(writes == pins.write_enable, "wrdata_en", "must come with WRITE");
        if (!writes_.empty() && writes_.front().first == cycle_) {
            Beat data = beat(writes_.front().second);
            for (int byte = 0; byte < 16; byte++) {
                if (pins.write_mask >> byte & 1) continue;
                const uint64_t lane = 0xFFull << 8 * (byte % 8);
                data[byte / 8] = (data[byte / 8] & ~lane) | (pins.write_data[byte / 8] & lane);
            }
            written_[writes_.front().second] = data;
            writes_.pop_front();
        }
        const int64_t late = kPhases * cycle_ - last_refresh_;
        expect(last_refresh_ < 0 || late <= 9 * int64_t{l_.trefi}, "trefi",
               "nine refreshes are late");
        cycle_++;
    }

    // At the end: as many refreshes as time asks for, less the eight that may be put off.
    void check_refreshes() {
        expect(int64_t(counts[kRefresh]) + 8 >= kPhases * cycle_ / int64_t{l_.trefi}, "trefi",
               "too few refreshes");
    }

  private:
    struct Bank {
        bool open = false;
        uint32_t row = 0;
        int64_t activated = kLongAgo, read = kLongAgo, write_end = kLongAgo, closed = kLongAgo;
    };

    void expect(bool holds, const char* rule, const char* text) {
        if (holds || violation_count++) return;
        char line[160];
        std::snprintf(line, sizeof line, "%s: clock %lld: %s", rule,
                      (long long)(kPhases * cycle_), text);
        first_violation = line;
    }

    void close(Bank& bank, int64_t at) {
        bank.open = false;
        bank.closed = at;
    }

    void command(int64_t now, const Ddr3Phase& pins) {
        Bank& bank = banks_[pins.bank];
        expect(now >= refreshed_ + l_.trfc, "trfc", "a command came during a refresh");
        expect(now >= calibrated_ + l_.tzqcs, "tzqcs", "a command came during a calibration");
        switch (pins.command) {
            case kActivate:
                expect(!bank.open, "state", "ACTIVATE of a bank that has an open row");
                expect(now >= bank.closed + l_.trp, "trp", "ACTIVATE too soon after PRECHARGE");
                expect(now >= bank.activated + l_.tras + l_.trp, "trc",
                       "ACTIVATE too soon after ACTIVATE");
                expect(activates_.empty() || now >= activates_.back() + l_.trrd, "trrd",
                       "ACTIVATE too soon after that of another bank");
                expect(activates_.size() < 4 || now >= activates_.front() + l_.tfaw, "tfaw",
                       "a fifth ACTIVATE too soon");
                activates_.push_back(now);
                if (activates_.size() > 4) activates_.pop_front();
                bank.open = true;
                bank.row = pins.address;
                bank.activated = now;
                break;
            case kRead:
            case kWrite:
                access(now, bank, pins);
                break;
            case kPrecharge:
                for (size_t i = 0; i < banks_.size(); i++) {
                    Bank& one = banks_[i];
                    if (!(pins.address >> 10 & 1) && i != pins.bank) continue;
                    if (!one.open) continue;
                    expect(now >= one.activated + l_.tras, "tras", "PRECHARGE too soon");
                    expect(now >= one.read + l_.trtp, "trtp", "PRECHARGE too soon after READ");
                    expect(now >= one.write_end + l_.twr, "twr", "PRECHARGE too soon after WRITE");
                    close(one, now);
                }
                break;
            case kRefresh:
                for (const Bank& one : banks_) {
                    expect(!one.open, "state", "REFRESH with an open row");
                    expect(now >= one.closed + l_.trp, "trp", "REFRESH too soon after PRECHARGE");
                }
                refreshed_ = last_refresh_ = now;
                break;
            case kCalibrate:
                calibrated_ = now;
                break;
            default:
                break;
        }
    }

    void access(int64_t now, Bank& bank, const Ddr3Phase& pins) {
        const bool is_read = pins.command == kRead;
        expect(bank.open, "state", "READ or WRITE without an open row");
        expect(now >= bank.activated + l_.trcd, "trcd", "READ or WRITE too soon after ACTIVATE");
        expect(now >= last_read_ + l_.tccd && now >= last_write_ + l_.tccd, "tccd",
               "bursts overlap");
        const uint64_t column = (pins.address & 0x3FF) >> 3;
        const uint64_t number =
            ((uint64_t{bank.row} << l_.bank_bits | pins.bank) << l_.page_beat_bits) | column;
        int64_t closes;
        if (is_read) {
            expect(now >= last_write_ + l_.cwl + kBurstClocks + l_.twtr, "twtr",
                   "READ too soon after WRITE");
            last_read_ = bank.read = now;
            reads_.emplace_back(cycle_ + l_.read_latency, beat(number));
            closes = now + l_.trtp;
        } else {
            expect(now >= last_read_ + l_.cl + l_.tccd + 2 - l_.cwl, "trtw",
                   "WRITE too soon after READ");
            last_write_ = now;
            bank.write_end = now + l_.cwl + kBurstClocks;
            writes_.emplace_back(cycle_ + l_.write_latency, number);
            closes = bank.write_end + l_.twr;
        }
        if (pins.address >> 10 & 1)  // with automatic PRECHARGE
            close(bank, std::max(closes, bank.activated + int64_t{l_.tras}));
    }

    Ddr3Limits l_;
    std::vector<Bank> banks_;
    std::unordered_map<uint64_t, Beat> written_;
    std::deque<std::pair<int64_t, Beat>> reads_;
    std::deque<std::pair<int64_t, uint64_t>> writes_;
    std::deque<int64_t> activates_;
    int64_t cycle_ = 0, last_read_ = kLongAgo, last_write_ = kLongAgo;
    int64_t refreshed_ = kLongAgo, last_refresh_ = kLongAgo, calibrated_ = kLongAgo;
};

}  // namespace ember
