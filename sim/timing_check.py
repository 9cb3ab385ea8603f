"""Holds the commands of a DRAM model to every limit of the device, by rules of its own.

The scheduler keeps first-allowed times per bank, group and rank; here each limit is a rule between
two commands of the finished trace, and nothing is shared but the parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dram import DramMemory
from .memory_library import COMMANDS

_ACTIVATE, _READ, _PRECHARGE, _PRECHARGE_ALL, _REFRESH, _WRITE = range(len(COMMANDS))


@dataclass(frozen=True)
class Violation:
    """A command that came too early, too late, or to a bank in the wrong state.

    Attributes
    ----------
    rule : str
        The limit: a field of `DramTiming`, "row", "command bus" or "order".
    clock : int
        Memory clock of the command.
    command : int
        Its place in the trace.
    text : str
        What must hold, and what was found.
    """

    rule: str
    clock: int
    command: int
    text: str


def check_commands(
    dram: DramMemory, commands: NDArray[Any], *, end_clock: int | None = None
) -> list[Violation]:
    """Return every violation of a trace, in the order of the rules.

    Parameters
    ----------
    dram : DramMemory
        The device.
    commands : COMMAND_DTYPE (N,)
        In the order of their clocks, from clock 0 on with all banks closed.
    end_clock : int, optional
        Until when refreshes are due; the last command's clock if absent.
    """
    trace = _Trace(dram, commands)
    end = trace.clock[-1] if end_clock is None and len(commands) else end_clock or 0
    found = [*trace.order(), *trace.rows(), *trace.limits(), *trace.activate_window()]
    return [*found, *trace.refreshes(int(end))]


class _Trace:
    def __init__(self, dram: DramMemory, commands: NDArray[Any]) -> None:
        bits = dram.field_bits
        self.dram = dram
        self.clock = commands["clock"].astype(np.int64)
        self.kind = commands["kind"]
        self.has_data = np.isin(self.kind, (_READ, _WRITE))
        self.row = commands["row"].astype(np.int64)
        self.rank = commands["rank"].astype(np.int64)
        self.group = (self.rank << bits["group"]) + commands["group"]
        self.bank = (self.group << bits["bank"]) + commands["bank"]
        self.banks = 1 << (bits["rank"] + bits["group"] + bits["bank"])
        self.banks_per_rank = 1 << (bits["group"] + bits["bank"])

    def _violation(self, rule: str, command: int, text: str) -> Violation:
        clock = int(self.clock[command])
        name = COMMANDS[self.kind[command]]
        return Violation(rule, clock, int(command), f"{name} at clock {clock}: {text}")

    def order(self) -> Iterator[Violation]:
        """Find clocks that fall, and buses that carry two commands at once."""
        for place in (np.flatnonzero(np.diff(self.clock) < 0) + 1).tolist():
            yield self._violation("order", place, "must not come before the command before it")
        if self.dram.dual_command_bus:
            buses = (self.has_data, ~self.has_data)
        else:
            buses = (np.ones(len(self.kind), np.bool_),)
        for bus in buses:
            places = np.flatnonzero(bus)
            for place in places[1:][np.diff(self.clock[places]) == 0]:
                yield self._violation("command bus", place, "must have its clock for itself")

    def rows(self) -> Iterator[Violation]:
        """Find READs and WRITEs that miss the open row, and commands that find a row open.

        ACTIVATEs must find their bank closed, REFRESHes all banks of their rank.
        """
        open_row: dict[int, int] = {}
        for place, kind in enumerate(self.kind):
            bank = int(self.bank[place])
            of_rank = range(
                int(self.rank[place]) * self.banks_per_rank,
                (int(self.rank[place]) + 1) * self.banks_per_rank,
            )
            if kind == _ACTIVATE:
                if bank in open_row:
                    yield self._violation("row", place, f"must find bank {bank} closed")
                open_row[bank] = int(self.row[place])
            elif kind in (_READ, _WRITE):
                if open_row.get(bank) != self.row[place]:
                    text = f"must find row {self.row[place]} open, not {open_row.get(bank)}"
                    yield self._violation("row", place, text)
            elif kind == _PRECHARGE:
                open_row.pop(bank, None)
            elif kind == _PRECHARGE_ALL:
                for each in of_rank:
                    open_row.pop(each, None)
            elif any(each in open_row for each in of_rank):
                yield self._violation("row", place, "must find all banks of its rank closed")

    def limits(self) -> Iterator[Violation]:
        """Find commands too early after another of their bank, group, rank or channel."""
        timing = self.dram.timing
        activate, read, write = (_ACTIVATE,), (_READ,), (_WRITE,)
        wrote = timing.cwl + timing.burst  # WRITE to the end of its data
        precharge = (_PRECHARGE, _PRECHARGE_ALL)
        channel = np.zeros(len(self.kind), np.int64)
        bank = None
        rules: list[tuple[str, int, tuple[int, ...], tuple[int, ...], NDArray[np.int64] | None]] = [
            ("trcd", timing.trcd, activate, (*read, *write), bank),
            ("tras", timing.tras, activate, precharge, bank),
            ("trc", timing.trc, activate, activate, bank),
            ("trc", timing.trc, activate, (_REFRESH,), bank),
            ("trp", timing.trp, precharge, activate, bank),
            ("trp", timing.trp, precharge, (_REFRESH,), bank),
            ("trtp", timing.trtp, read, precharge, bank),
            ("twr", wrote + timing.twr, write, precharge, bank),
            ("trrd_l", timing.trrd_l, activate, activate, self.group),
            ("trrd_s", timing.trrd_s, activate, activate, self.rank),
            ("tccd_l", timing.tccd_l, read, read, self.group),
            ("tccd_s", timing.tccd_s, read, read, self.rank),
            ("tccd_l", timing.tccd_l, write, write, self.group),
            ("tccd_s", timing.tccd_s, write, write, self.rank),
            ("twtr_l", wrote + timing.twtr_l, write, read, self.group),
            ("twtr_s", wrote + timing.twtr_s, write, read, self.rank),
            ("trtw", timing.trtw, read, write, channel),
            ("trfc", timing.trfc, (_REFRESH,), tuple(range(len(COMMANDS))), self.rank),
        ]
        for name, limit, before, after, scope in rules:
            yield from self._limit(name, before, after, scope, limit)
        yield from self._data_bus()

    def _limit(
        self,
        name: str,
        before: tuple[int, ...],
        after: tuple[int, ...],
        scope: NDArray[np.int64] | None,
        limit: int,
    ) -> Iterator[Violation]:
        """Hold one rule; without a scope it is a bank's, and a whole rank counts for each."""
        if not len(self.kind):
            return
        place = np.arange(len(self.kind))
        if scope is None:
            is_whole = np.isin(self.kind, (_PRECHARGE_ALL, _REFRESH))
            whole = np.flatnonzero(is_whole)
            first = self.rank[whole] * self.banks_per_rank
            of_banks = (first[:, None] + np.arange(self.banks_per_rank)).reshape(-1)
            single = np.flatnonzero(~is_whole)
            place = np.concatenate((single, np.repeat(whole, self.banks_per_rank)))
            scope = np.concatenate((self.bank[single], of_banks))
        by_scope = np.lexsort((place, scope))
        place, scope = place[by_scope], scope[by_scope]
        kind = self.kind[place]
        # For each entry: the latest earlier one of a kind in `before`, by its number.
        number = np.where(np.isin(kind, before), np.arange(len(place)), -1)
        latest = np.concatenate(([-1], np.maximum.accumulate(number)[:-1]))
        follows = np.isin(kind, after) & (latest >= 0)
        follows &= scope[latest] == scope
        gap = self.clock[place] - self.clock[place[latest]]
        for each in np.unique(place[follows & (gap < limit)]):
            earlier = COMMANDS[before[0]]
            shortest = int(gap[follows & (place == each)].min())
            text = f"must come {limit} clocks after {earlier} ({name}), not {shortest}"
            yield self._violation(name, each, text)

    def _data_bus(self) -> Iterator[Violation]:
        """Find data that meet on the bus, and those of two ranks without the gap between them."""
        timing = self.dram.timing
        places = np.flatnonzero(self.has_data)
        delay = np.where(self.kind[places] == _WRITE, timing.cwl, timing.cl)
        gap = np.diff(self.clock[places] + delay)
        changes = np.diff(self.rank[places]) != 0
        for rule, least, matters in (
            ("burst", timing.burst, np.ones(len(gap), np.bool_)),
            ("trtrs", timing.burst + timing.trtrs, changes),
        ):
            for place in places[1:][matters & (gap < least)]:
                text = f"must have its data {least} clocks behind the data before them"
                yield self._violation(rule, place, text)

    def activate_window(self) -> Iterator[Violation]:
        """Find five ACTIVATEs of a rank within tFAW."""
        limit = self.dram.timing.tfaw
        activates = np.flatnonzero(self.kind == _ACTIVATE)
        for rank in np.unique(self.rank):
            places = activates[self.rank[activates] == rank]
            gap = self.clock[places[4:]] - self.clock[places[:-4]]
            for place, clocks in zip(places[4:][gap < limit], gap[gap < limit], strict=True):
                text = f"must come {limit} clocks after the fourth before it, not {clocks}"
                yield self._violation("tfaw", place, text)

    def refreshes(self, end_clock: int) -> Iterator[Violation]:
        """Find REFRESHes later than one interval after they are due, and those that never came."""
        interval = self.dram.timing.trefi
        if not interval:
            return
        for rank in range(self.banks // self.banks_per_rank):
            places = np.flatnonzero((self.kind == _REFRESH) & (self.rank == rank))
            latest = (np.arange(len(places)) + 2) * interval
            for place, clock in zip(places.tolist(), latest.tolist(), strict=True):
                if self.clock[place] > clock:
                    yield self._violation("trefi", place, f"must come by clock {clock}")
            if end_clock > (len(places) + 2) * interval:
                yield Violation(
                    "trefi",
                    end_clock,
                    len(self.kind),
                    f"rank {rank} must have been refreshed {end_clock // interval - 1} times by "
                    f"clock {end_clock}, not {len(places)}",
                )
