"""What a run did and how well: cycles, bytes, stalls, high-water marks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ember_hw.config import AcceleratorConfig
from ember_hw.registers import Counter

#: Clock at which reports turn cycles into time. Stated, not measured: nothing here ran on silicon.
CLOCK_MHZ = 100.0

#: Reason of each stall: its counter, and what it means.
STALLS = {
    "execute": (Counter.STALL_EXECUTE, "the execute side holds a full queue"),
    "outstanding": (Counter.STALL_OUTSTANDING, "all outstanding reads are in use"),
    "reorder": (Counter.STALL_REORDER, "the reorder buffer is full"),
    "request": (Counter.STALL_REQUEST, "memory takes no request"),
    "memory": (Counter.STALL_MEMORY, "reads are in flight, nothing else to ask for"),
    "front": (Counter.STALL_FRONT, "the loops are filling or draining"),
}
#: Each high-water mark: its counter, and what waits.
HIGH_WATER = {
    "bundles": (Counter.HIGH_BUNDLES, "bundles waiting"),
    "row_beats": (Counter.HIGH_ROW_BEATS, "beats in the reorder buffer"),
    "outstanding": (Counter.HIGH_OUTSTANDING, "row reads in flight"),
    "tokens": (Counter.HIGH_TOKENS, "iterations waiting for loads"),
}


@dataclass(frozen=True)
class NestReport:
    """One nest of a run; the attributes are those of `Report`.

    Attributes
    ----------
    name : str
        What messages call it.
    """

    name: str
    cycles: int | None
    row_beats: int
    index_beats: int | None
    bundles: int
    rows: int
    useful_bytes: int


@dataclass(frozen=True)
class Report:
    """One run.

    Attributes
    ----------
    program, backend, memory, sink : str
        What ran, on what, with which memory and execute side draining the queues.
    engine : str
        What ran the code of the execute side on the host: c or numpy.
    config : str
        Name of the config; `config_hash` tells it from others of the name.
    config_hash : int
        `AcceleratorConfig.hash()`.
    bus_bytes : int
        Bytes of a beat.
    lookups : int or None
        Lookups of the request: rows that an embedding bag pooled. None where the program's binding
        can't tell.
    bundles, row_beats : int
        What came through the queues.
    rows : int or None
        Rows (or parts of rows) asked for.
    useful_bytes : int or None
        Bytes of the table that reached the execute side: those of the rows and, at opt level 0, of
        the elements, which travel as scalars of bundles. So the levels compare on one measure.
    cycles, index_beats : int or None
        From start to done; beats of index lines. None where the backend has no clock: it claims
        no timing.
    stalls : mapping of str to int
        Cycles without a beat, by reason; empty without a clock.
    high_water : mapping of str to int
        Most entries that waited at one time, by queue; empty without a clock.
    nests : tuple of NestReport
        The nests of the program one by one, which the numbers above sum up; high-water marks are
        those of the highest.
    clock_mhz : float
        Stated clock.
    seed : int or None
        Seed of the program's weights.
    versions : mapping of str to str
        Packages that compiled the program.
    """

    program: str
    backend: str
    memory: str
    sink: str
    config: str
    config_hash: int
    bus_bytes: int
    lookups: int | None
    bundles: int
    row_beats: int
    engine: str = ""
    rows: int | None = None
    useful_bytes: int | None = None
    cycles: int | None = None
    index_beats: int | None = None
    stalls: Mapping[str, int] = field(default_factory=dict[str, int])
    high_water: Mapping[str, int] = field(default_factory=dict[str, int])
    nests: tuple[NestReport, ...] = ()
    clock_mhz: float = CLOCK_MHZ
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def moved_bytes(self) -> int | None:
        """Bytes that crossed the memory port: row and index beats times the bus width."""
        if self.index_beats is None:
            return None
        return (self.row_beats + self.index_beats) * self.bus_bytes

    @property
    def utilisation(self) -> float | None:
        """Useful bytes over cycles x bus bytes, start to done; None without a clock."""
        if self.cycles is None or self.useful_bytes is None or self.cycles == 0:
            return None
        return self.useful_bytes / (self.cycles * self.bus_bytes)

    @property
    def lookups_per_second(self) -> float | None:
        """Lookups a second at the stated clock; None without one."""
        if not self.cycles or self.lookups is None:
            return None
        return self.lookups * self.clock_mhz * 1e6 / self.cycles

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes and derived numbers, JSON-ready."""
        return asdict(self) | {
            "moved_bytes": self.moved_bytes,
            "utilisation": self.utilisation,
            "lookups_per_second": self.lookups_per_second,
        }

    def to_json(self) -> str:
        """Return `to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        lines = [
            ("program", self.program),
            ("backend", f"{self.backend}, memory {self.memory}, execute side {self.sink}"),
            ("execute code", self.engine or "unknown"),
            ("config", f"{self.config} ({self.config_hash:#010x}), {8 * self.bus_bytes}-bit port"),
            ("seed", "unknown" if self.seed is None else f"{self.seed}"),
            ("lookups", "unknown" if self.lookups is None else f"{self.lookups:,}"),
            ("bundles", f"{self.bundles:,}"),
            ("row beats", f"{self.row_beats:,}"),
        ]
        if self.useful_bytes is not None:
            lines.append(("useful bytes", f"{self.useful_bytes:,}"))
        if len(self.nests) > 1:
            lines += [(f"nest {nest.name}", _nest_text(nest)) for nest in self.nests]
        if self.cycles is None:
            lines.append(("cycles", "none: this backend has no clock"))
        else:
            lines += self._timed_lines()
        return "\n".join(f"{name:<24}{value}" for name, value in lines)

    def _timed_lines(self) -> list[tuple[str, str]]:
        lines = [
            ("moved bytes", f"{self.moved_bytes:,}"),
            ("cycles", f"{self.cycles:,}"),
        ]
        if self.utilisation is not None:
            rule = f"useful bytes / (cycles x {self.bus_bytes})"
            lines.append(("utilisation", f"{self.utilisation:.4f} = {rule}"))
        if self.lookups_per_second is not None:
            rate = f"{self.lookups_per_second:,.0f} at {self.clock_mhz:g} MHz (stated)"
            lines.append(("lookups a second", rate))
        for name, cycles in self.stalls.items():
            lines.append((f"stall {name}", f"{cycles:,} cycles: {STALLS[name][1]}"))
        for name, most in self.high_water.items():
            lines.append((f"most {name.replace('_', ' ')}", f"{most:,} {HIGH_WATER[name][1]}"))
        return lines


def _nest_text(nest: NestReport) -> str:
    counts = f"{nest.bundles:,} bundles, {nest.row_beats:,} row beats"
    return counts if nest.cycles is None else f"{counts}, {nest.cycles:,} cycles"


def counted(counters: Mapping[Counter, int]) -> dict[str, Any]:
    """Turn the hardware's counters into attributes of `Report`."""
    return {
        "cycles": counters[Counter.CYCLES],
        "row_beats": counters[Counter.ROW_BEATS],
        "index_beats": counters[Counter.INDEX_BEATS],
        "bundles": counters[Counter.BUNDLES],
        "rows": counters[Counter.ROWS],
        "useful_bytes": counters[Counter.ROW_BYTES],
        "stalls": {name: counters[counter] for name, (counter, _) in STALLS.items()},
        "high_water": {name: counters[counter] for name, (counter, _) in HIGH_WATER.items()},
    }


def config_facts(config: AcceleratorConfig) -> dict[str, Any]:
    """Return the attributes of `Report` that name the config."""
    return {"config": config.name, "config_hash": config.hash(), "bus_bytes": config.bus_bytes}
