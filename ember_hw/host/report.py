"""What a run did and how well: cycles, bytes, limits, stalls, queues."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

from ember_hw.config import AcceleratorConfig
from ember_hw.host.profile import LaunchSample, Profile, profile_of
from ember_hw.host.queue_depths import Depth, suggest_depths
from ember_hw.registers import Counter

#: Of `Report.to_dict`; raised when a name or a meaning changes.
SCHEMA = 1
#: What tells a report from other JSON.
KIND = "ember_hw run"

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
#: What bounds a run from below, each in cycles.
LIMITS = {
    "port": "one beat a cycle through the memory port",
    "memory": "the memory model, if it had all reads at once",
    "traversal": "one bundle or row a cycle",
    "execute": "the execute side, if nothing were late",
}


@dataclass(frozen=True)
class NestReport:
    """One nest of a run; the attributes are those of `Report`.

    Attributes
    ----------
    name : str
        What messages call it.
    execute : str
        What ran its execute code: "host", or "fabric", the reduce unit.
    reason : str
        Why the host did; empty where nobody asked.
    """

    name: str
    cycles: int | None
    row_beats: int
    index_beats: int | None
    bundles: int
    rows: int
    useful_bytes: int
    results: int = 0
    leaving_bytes: int | None = None
    written_bytes: int = 0
    execute: str = "host"
    reason: str = ""


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
    results : int
        Rows that a reduce unit let out in place of those; 0 without one.
    leaving_bytes : int or None
        Bytes of rows or results that left the access unit and its reduce unit.
    written_bytes : int
        Those of them that it wrote into memory; 0 where results leave over a stream.
    uploaded_bytes : int or None
        Bytes that the host wrote into the device's memory for the run: tables as far as they had
        changed, indices and offsets. None where that memory is the host's own.
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
    parameters : mapping of str to int or str
        `AcceleratorConfig.to_dict()`.
    wall_seconds : float or None
        Time of the whole call on this machine: simulation, and what Python does around it.
    profiler : callable or None
        Reckons `profile`, which takes longer than a report should; None where nothing was seen.
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
    results: int = 0
    leaving_bytes: int | None = None
    written_bytes: int = 0
    uploaded_bytes: int | None = None
    cycles: int | None = None
    index_beats: int | None = None
    stalls: Mapping[str, int] = field(default_factory=dict[str, int])
    high_water: Mapping[str, int] = field(default_factory=dict[str, int])
    nests: tuple[NestReport, ...] = ()
    clock_mhz: float = CLOCK_MHZ
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    parameters: Mapping[str, int | str] = field(default_factory=dict[str, int | str])
    wall_seconds: float | None = None
    profiler: Callable[[], Profile] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def profile(self) -> Profile | None:
        """What a simulation saw beyond the counters; None on other backends."""
        return None if self.profiler is None else self.profiler()

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
    def seconds(self) -> float | None:
        """Time of the cycles at the stated clock; None without one."""
        return None if self.cycles is None else self.cycles / (self.clock_mhz * 1e6)

    @property
    def fixed_cycles(self) -> int | None:
        """Cycles that a run has whatever its length: until the first row, and after the last."""
        if self.profile is None:
            return None
        return self.profile.fill_cycles + self.profile.drain_cycles

    @property
    def cycles_per_lookup(self) -> float | None:
        """The other cycles, for each lookup."""
        if self.cycles is None or self.fixed_cycles is None or not self.lookups:
            return None
        return (self.cycles - self.fixed_cycles) / self.lookups

    @property
    def limits(self) -> dict[str, int]:
        """Cycles that each of `LIMITS` takes at least, as far as they are known."""
        if self.cycles is None:
            return {}
        limits = {"traversal": max(self.bundles, self.rows or 0), "port": self.row_beats}
        if not self.parameters.get("index_port_bits"):  # else lines come beside the rows
            limits["port"] += self.index_beats or 0
        if self.profile is not None:
            if self.profile.execute_cycles:  # `ideal` needs none
                limits["execute"] = self.profile.execute_cycles
            if self.profile.bound_cycles is not None:
                limits["memory"] = self.profile.bound_cycles
        return {name: limits[name] for name in LIMITS if name in limits}

    @property
    def limit_shares(self) -> dict[str, float]:
        """Share of the cycles that each limit takes: at 1 it bounds the run."""
        return {name: limit / max(self.cycles or 0, 1) for name, limit in self.limits.items()}

    @property
    def depths(self) -> tuple[Depth, ...]:
        """Suggested depths of the queues; none without a profile."""
        if self.profile is None or self.cycles is None:
            return ()
        return suggest_depths(self.parameters, self.profile, self.cycles, self.stalls)

    @property
    def lookups_per_second(self) -> float | None:
        """Lookups a second at the stated clock; None without one."""
        if not self.cycles or self.lookups is None:
            return None
        return self.lookups * self.clock_mhz * 1e6 / self.cycles

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes and derived numbers, JSON-ready."""
        values: dict[str, Any] = {name: getattr(self, name) for name in _ATTRIBUTES}
        for name in ("stalls", "high_water", "versions", "parameters"):
            values[name] = dict(values[name])
        values["nests"] = [asdict(nest) for nest in self.nests]
        return {
            "schema": SCHEMA,
            "kind": KIND,
            **values,
            "moved_bytes": self.moved_bytes,
            "utilisation": self.utilisation,
            "seconds": self.seconds,
            "lookups_per_second": self.lookups_per_second,
            "fixed_cycles": self.fixed_cycles,
            "cycles_per_lookup": self.cycles_per_lookup,
            "limits": self.limits,
            "limit_shares": self.limit_shares,
            "depths": [asdict(depth) for depth in self.depths],
            "profile": None if self.profile is None else self.profile.to_dict(),
        }

    def to_json(self) -> str:
        """Return `to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Report:
        """Return the report that `to_dict` was called on.

        Raises
        ------
        ValueError
            The values are no report, or one of another schema.
        """
        if values.get("kind") != KIND:
            raise ValueError(
                f"kind of a report must be {KIND!r}, not {values.get('kind')!r}; "
                "`ember-hw run --json` prints one"
            )
        if values.get("schema") != SCHEMA:
            raise ValueError(
                f"schema of a report must be {SCHEMA}, not {values.get('schema')!r}; "
                "run the program again"
            )
        missing = [name for name in (*_ATTRIBUTES, "profile") if name not in values]
        if missing:
            raise ValueError(f"a report must have {missing[0]!r}, which this one lacks")
        attributes = {name: values[name] for name in _ATTRIBUTES}
        attributes["nests"] = tuple(NestReport(**nest) for nest in values["nests"])
        profile = values["profile"]
        if profile is not None:
            kept = Profile.from_dict(profile)
            attributes["profiler"] = lambda: kept
        return Report(**attributes)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from ember_hw.host.report_html import as_fragment

        return as_fragment(self)

    def __str__(self) -> str:
        from ember_hw.host.report_text import as_text

        return as_text(self)


_ATTRIBUTES = tuple(one.name for one in fields(Report) if one.name != "profiler")


def profiler_of(
    samples: Sequence[LaunchSample | None], config: AcceleratorConfig
) -> Callable[[], Profile] | None:
    """Return what reckons the profile of a run; None where a launch wasn't seen."""
    seen = [sample for sample in samples if sample is not None]
    if len(seen) < len(samples):
        return None
    return lambda: profile_of(seen, config.to_dict())


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
    return {
        "config": config.name,
        "config_hash": config.hash(),
        "bus_bytes": config.bus_bytes,
        "parameters": config.to_dict(),
    }
