// One DRAM channel in its own clock: banks, their timing, refresh, and an FR-FCFS scheduler.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "memories.h"

namespace ember {

// Where an access lies. Bits above those that the mapping names are ignored.
struct DramPlace {
    uint32_t row = 0, column = 0;
    uint8_t rank = 0, group = 0, bank = 0;
};

inline DramPlace dram_place(const EmberDram& dram, uint64_t address) {
    uint32_t values[5] = {};
    uint32_t filled[5] = {};
    uint64_t rest = address / dram.access_bytes;
    for (uint32_t n = 0; n < dram.fields; n++) {
        const uint32_t bits = dram.field_bits[n];
        const uint8_t field = dram.field[n];
        values[field] |= static_cast<uint32_t>(rest & ((uint64_t{1} << bits) - 1)) << filled[field];
        filled[field] += bits;
        rest >>= bits;
    }
    return DramPlace{values[EMBER_ROW], values[EMBER_COLUMN],
                     static_cast<uint8_t>(values[EMBER_RANK]),
                     static_cast<uint8_t>(values[EMBER_GROUP]),
                     static_cast<uint8_t>(values[EMBER_BANK])};
}

inline uint32_t dram_count(const EmberDram& dram, EmberAddressField field) {
    uint32_t bits = 0;
    for (uint32_t n = 0; n < dram.fields; n++) {
        if (dram.field[n] == field) bits += dram.field_bits[n];
    }
    return 1u << bits;
}

// Policy. Open page. Reads wait in one queue, writes in another, and one of them is served at a
// time: the writes once they fill three quarters of their queue and a read was served since the last
// time, until a quarter is left; and while there are no reads. Of the commands that may be issued in a clock, a READ or WRITE goes before an
// ACTIVATE or PRECHARGE, an older access's before a younger one's. A row stays open as long as an
// access of the queue that is served hits it that is older than the one that wants another row, or
// that it was opened for. A refresh that is due stops its rank but for accesses whose row was opened
// for them.
class DramChannel {
public:
    explicit DramChannel(const EmberDram& dram)
        : dram_(dram),
          groups_per_rank_(dram_count(dram, EMBER_GROUP)),
          banks_per_group_(dram_count(dram, EMBER_BANK)),
          ranks_(dram_count(dram, EMBER_RANK)),
          groups_(ranks_.size() * groups_per_rank_),
          banks_(groups_.size() * banks_per_group_) {
        for (auto& queue : queues_) queue.reserve(dram.queue_entries);
        for (size_t n = 0; n < ranks_.size(); n++) {
            ranks_[n].refresh_due =
                dram.trefi ? dram.trefi * (n + 1) / ranks_.size() : NEVER;
            next_refresh_ = std::min(next_refresh_, ranks_[n].refresh_due);
        }
    }

    uint64_t clock() const { return clock_; }
    bool has_room(bool is_write) const { return queues_[is_write].size() < dram_.queue_entries; }

    // An access that is scheduled from this clock on; `tag` comes back with its data.
    void enqueue(const DramPlace& place, uint64_t tag, bool is_write) {
        const uint32_t group = place.rank * groups_per_rank_ + place.group;
        queues_[is_write].push_back(
            Access{tag, clock_, group * banks_per_group_ + place.bank, group, place, false});
        wake_ = clock_;
    }

    struct Done {
        uint64_t clock;  // after the last data
        uint64_t tag;
        uint64_t queued_clock;
        bool is_write;
    };

    // Accesses whose READ or WRITE was issued, in the order of their data.
    std::deque<Done>& done() { return done_; }

    // One clock.
    void tick() {
        if (clock_ >= wake_ || clock_ >= next_refresh_) issue();
        clock_++;
    }

    uint64_t activates() const { return activates_; }
    uint64_t refreshes() const { return refreshes_; }

    // Every command from now on is written there, too.
    void record(std::vector<EmberDramCommand>* commands) { commands_ = commands; }

private:
    static constexpr uint64_t NEVER = std::numeric_limits<uint64_t>::max();
    static constexpr uint64_t CLOSED = NEVER;

    struct Access {
        uint64_t tag;
        uint64_t queued_clock;
        uint32_t bank, group;  // numbered over all ranks
        DramPlace place;
        bool has_opened;  // the bank's row was opened for it
    };
    // Each holds the first clock in which a command may come, as far as it depends on what went
    // before in this bank, bank group or rank.
    struct Bank {
        uint64_t row = CLOSED;
        uint64_t activate = 0, column = 0, precharge = 0;
        uint32_t openers = 0;      // accesses in the queue that the row was opened for
        uint64_t latest_hit = 0;   // scan in which an access hit the row
    };
    struct Group {
        uint64_t activate = 0;
        uint64_t column[2] = {};  // READ, WRITE
    };
    struct Rank {
        uint64_t activate = 0;
        uint64_t column[2] = {};
        uint64_t latest_activates[4] = {};  // plus tFAW: a ring
        uint32_t next_activate = 0;
        uint64_t refresh_due = NEVER;
    };

    // Issues what may be issued in this clock, and finds the next one in which anything may be.
    void issue() {
        if (turns()) turn();
        next_event_ = NEVER;
        scan_++;
        bool row_bus_taken = false;
        if (clock_ >= next_refresh_) row_bus_taken = refresh();
        constexpr size_t NONE = std::numeric_limits<size_t>::max();
        size_t column = NONE, row_command = NONE;
        std::vector<Access>& queue = queues_[is_writing_];
        for (size_t n = 0; n < queue.size(); n++) {
            const Access& access = queue[n];
            Bank& bank = banks_[access.bank];
            const bool is_refreshing = ranks_[access.place.rank].refresh_due <= clock_;
            if (bank.row == access.place.row) {
                bank.latest_hit = scan_;
                if (is_refreshing && !access.has_opened) continue;
                if (is_ready(earliest_column(access)) && column == NONE) column = n;
            } else if (is_refreshing) {
                continue;
            } else if (bank.row == CLOSED) {
                if (is_ready(earliest_activate(access)) && row_command == NONE) row_command = n;
            } else if (bank.latest_hit != scan_ && !bank.openers) {
                if (is_ready(bank.precharge) && row_command == NONE) row_command = n;
            }
        }
        const bool has_column = column != NONE && (dram_.dual_command_bus || !row_bus_taken);
        row_bus_taken |= has_column && !dram_.dual_command_bus;
        // With two buses: not the row that is being used.
        if (has_column && row_command != NONE && queue[column].bank == queue[row_command].bank) {
            row_bus_taken = true;
        }
        if (row_command != NONE && !row_bus_taken) issue_row_command(queue[row_command]);
        if (has_column) issue_column(column);
        wake_ = turns() ? clock_ + 1 : std::max(clock_ + 1, next_event_);
    }

    // Whether the other queue is to be served.
    bool turns() const {
        const auto &reads = queues_[0], &writes = queues_[1];
        const size_t quarter = dram_.queue_entries / 4;
        if (is_writing_) return writes.empty() || (writes.size() <= quarter && !reads.empty());
        if (writes.empty() || reads.empty()) return !writes.empty();
        return has_served_ && writes.size() >= dram_.queue_entries - quarter;
    }

    // Serves the other queue; rows that were opened for accesses of this one are anybody's.
    void turn() {
        for (Access& access : queues_[is_writing_]) {
            banks_[access.bank].openers -= access.has_opened;
            access.has_opened = false;
        }
        is_writing_ = !is_writing_;
        has_served_ = false;
    }

    // Whether a command may be issued now; if not, its clock is one to come back at.
    bool is_ready(uint64_t earliest) {
        next_event_ = std::min(next_event_, std::max(earliest, clock_ + 1));
        return earliest <= clock_;
    }

    uint64_t earliest_activate(const Access& access) const {
        const Rank& rank = ranks_[access.place.rank];
        return std::max({banks_[access.bank].activate, groups_[access.group].activate,
                         rank.activate, rank.latest_activates[rank.next_activate]});
    }

    // Data of two ranks have a gap between them, and so has a READ from the WRITE behind it.
    uint64_t earliest_column(const Access& access) const {
        uint64_t earliest =
            std::max({banks_[access.bank].column, groups_[access.group].column[is_writing_],
                      ranks_[access.place.rank].column[is_writing_]});
        if (is_writing_) earliest = std::max(earliest, channel_write_);
        if (access.place.rank == latest_rank_) return earliest;
        const uint64_t data = data_bus_free_ + dram_.trtrs;
        return std::max(earliest, data - std::min<uint64_t>(data, data_delay()));
    }

    // Clocks from a command of the queue that is served to its first data.
    uint64_t data_delay() const { return is_writing_ ? dram_.cwl : dram_.cl; }

    void issue_row_command(Access& access) {
        Bank& bank = banks_[access.bank];
        if (bank.row != CLOSED) {
            bank.row = CLOSED;
            bank.activate = std::max(bank.activate, clock_ + dram_.trp);
            note(EMBER_PRECHARGE, access.place);
            return;
        }
        Rank& rank = ranks_[access.place.rank];
        Group& group = groups_[access.group];
        bank.row = access.place.row;
        bank.column = clock_ + dram_.trcd;
        bank.precharge = clock_ + dram_.tras;
        bank.activate = clock_ + dram_.trc;
        bank.openers = 1;
        access.has_opened = true;
        group.activate = clock_ + dram_.trrd_l;
        rank.activate = clock_ + dram_.trrd_s;
        rank.latest_activates[rank.next_activate] = clock_ + dram_.tfaw;
        rank.next_activate = (rank.next_activate + 1) % 4;
        activates_++;
        note(EMBER_ACTIVATE, access.place);
    }

    void issue_column(size_t number) {
        std::vector<Access>& queue = queues_[is_writing_];
        const Access access = queue[number];
        queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(number));
        Bank& bank = banks_[access.bank];
        Group& group = groups_[access.group];
        Rank& rank = ranks_[access.place.rank];
        const uint64_t end = clock_ + data_delay() + dram_.burst;  // of its data
        bank.openers -= access.has_opened;
        group.column[is_writing_] = clock_ + dram_.tccd_l;
        rank.column[is_writing_] = clock_ + std::max(dram_.tccd_s, dram_.burst);
        if (is_writing_) {
            bank.precharge = std::max(bank.precharge, end + dram_.twr);
            group.column[0] = std::max(group.column[0], end + dram_.twtr_l);
            rank.column[0] = std::max(rank.column[0], end + dram_.twtr_s);
        } else {
            bank.precharge = std::max(bank.precharge, clock_ + dram_.trtp);
            channel_write_ = clock_ + dram_.trtw;
        }
        has_served_ = true;
        data_bus_free_ = end;
        latest_rank_ = access.place.rank;
        done_.push_back(Done{end, access.tag, access.queued_clock, is_writing_});
        note(is_writing_ ? EMBER_DRAM_WRITE : EMBER_READ, access.place);
    }

    // Brings ranks that are due towards their refresh; gives whether a command was issued.
    bool refresh() {
        for (uint8_t n = 0; n < ranks_.size(); n++) {
            if (ranks_[n].refresh_due > clock_) continue;
            if (refresh_rank(n)) return true;
        }
        return false;
    }

    bool refresh_rank(uint8_t number) {
        const size_t count = groups_per_rank_ * banks_per_group_;
        Bank* banks = &banks_[number * count];
        bool any_open = false, any_opener = false;
        uint64_t precharge = 0, activate = 0;
        for (size_t n = 0; n < count; n++) {
            any_opener |= banks[n].openers != 0;
            activate = std::max(activate, banks[n].activate);
            if (banks[n].row == CLOSED) continue;
            any_open = true;
            precharge = std::max(precharge, banks[n].precharge);
        }
        if (any_opener) return false;  // its READ or WRITE wakes us
        DramPlace place;
        place.rank = number;
        if (any_open) {
            if (!is_ready(precharge)) return false;
            for (size_t n = 0; n < count; n++) {
                if (banks[n].row == CLOSED) continue;
                banks[n].row = CLOSED;
                banks[n].activate = std::max(banks[n].activate, clock_ + dram_.trp);
            }
            note(EMBER_PRECHARGE_ALL, place);
            next_event_ = clock_ + 1;
            return true;
        }
        if (!is_ready(activate)) return false;
        for (size_t n = 0; n < count; n++) {
            banks[n].activate = std::max(banks[n].activate, clock_ + dram_.trfc);
        }
        ranks_[number].refresh_due += dram_.trefi;
        next_refresh_ = NEVER;
        for (const Rank& rank : ranks_) next_refresh_ = std::min(next_refresh_, rank.refresh_due);
        refreshes_++;
        note(EMBER_REFRESH, place);
        next_event_ = clock_ + 1;
        return true;
    }

    void note(EmberDramCommandKind kind, const DramPlace& place) {
        if (!commands_) return;
        commands_->push_back(EmberDramCommand{clock_, place.row, place.column,
                                              static_cast<uint8_t>(kind), place.rank, place.group,
                                              place.bank, 0});
    }

    EmberDram dram_;
    uint32_t groups_per_rank_;
    uint32_t banks_per_group_;
    std::vector<Rank> ranks_;
    std::vector<Group> groups_;
    std::vector<Bank> banks_;
    std::vector<Access> queues_[2];  // reads, writes; each oldest first
    bool is_writing_ = false;        // writes are served
    bool has_served_ = false;        // one of them was, since the turn
    std::deque<Done> done_;
    uint64_t clock_ = 0;
    uint64_t wake_ = 0;         // nothing may be issued before, but for a refresh
    uint64_t next_event_ = 0;   // the same, while it is being found
    uint64_t next_refresh_ = NEVER;
    uint64_t scan_ = 0;
    uint64_t data_bus_free_ = 0;   // clock after the last data
    uint64_t channel_write_ = 0;   // first WRITE behind the READs so far
    uint8_t latest_rank_ = 0;      // whose data these are
    uint64_t activates_ = 0;
    uint64_t refreshes_ = 0;
    std::vector<EmberDramCommand>* commands_ = nullptr;
};

}  // namespace ember
