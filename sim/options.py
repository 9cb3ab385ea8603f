"""What surrounds the simulated access unit: the memory that answers it, the sink that drains it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

from .dram import DRAM_PRESETS, DramMemory

#: Waveforms that a model can write; "" is none.
TraceFormat: TypeAlias = Literal["", "vcd", "fst"]


def _check_probability(owner: object, name: str) -> None:
    value = getattr(owner, name)
    if not 0 <= value < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, not {value!r}")


def _check_at_least(owner: object, name: str, least: int) -> None:
    value = getattr(owner, name)
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value!r}")


def _check_latencies(latencies: tuple[int, int], name: str = "latency_cycles") -> None:
    low, high = latencies
    if not 1 <= low <= high:
        raise ValueError(f"{name} must be (least, greatest), from 1 on, not {latencies!r}")


@dataclass(frozen=True, kw_only=True)
class IdealMemory:
    """Fixed latency, one beat a cycle in order of the requests, any number of them outstanding.

    Writes go beside the reads, a beat a cycle, any number of them outstanding too.

    Attributes
    ----------
    latency_cycles : int
        From the cycle of a request's handshake to that of its first beat, at least 1. A request
        whose predecessors aren't done by then follows them without a gap. Of a write: from the
        handshake of its last beat, or of its address, to its answer.
    """

    name: ClassVar[str] = "ideal"
    latency_cycles: int = 100

    def __post_init__(self) -> None:
        """Check the latency."""
        _check_at_least(self, "latency_cycles", 1)

    def describe(self) -> str:
        """Return the name and every parameter, as reports show them."""
        return f"{self.name} (latency {self.latency_cycles} cycles)"


@dataclass(frozen=True, kw_only=True)
class LinkMemory:
    """Memory behind a link that is narrower than the port: fixed latency, fixed rate, in order.

    Attributes
    ----------
    latency_cycles : int
        From the cycle of a request's handshake to that in which its first bytes cross the link. A
        write begins to cross it when its last beat is there, and is answered so long after.
    bytes_per_cycle : int
        Rate of the link in each direction; a beat is there when all of it has crossed.
    unit_khz : int
        Clock of the access unit, to which latency and rate refer.
    """

    name: ClassVar[str] = "slow-link"
    latency_cycles: int = 300
    bytes_per_cycle: int = 8
    unit_khz: int = 300_000

    def __post_init__(self) -> None:
        """Check ranges."""
        for name in ("latency_cycles", "bytes_per_cycle", "unit_khz"):
            _check_at_least(self, name, 1)

    @property
    def unit_mhz(self) -> float:
        """Clock of the access unit."""
        return self.unit_khz / 1e3

    def describe(self) -> str:
        """Return the name and every parameter, as reports show them."""
        gigabytes = self.bytes_per_cycle * self.unit_khz / 1e6
        return (
            f"{self.name} (latency {self.latency_cycles} cycles, {self.bytes_per_cycle} bytes a "
            f"cycle; {self.latency_cycles / self.unit_mhz:.3g} us and {gigabytes:.3g} GB/s at "
            f"{self.unit_mhz:g} MHz)"
        )


@dataclass(frozen=True, kw_only=True)
class RandomMemory:
    """Random latency, everything out of order that AXI4 allows, one beat a cycle.

    Bursts of different IDs overtake each other and their beats interleave; those of one ID stay in
    order, as all writes do, whose latencies are counted as `IdealMemory` counts them.

    Attributes
    ----------
    seed : int
        The same seed gives the same run.
    latency_cycles : (int, int)
        Least and greatest latency; each request draws its own, all equally likely.
    """

    name: ClassVar[str] = "random"
    seed: int = 1
    latency_cycles: tuple[int, int] = (50, 300)

    def __post_init__(self) -> None:
        """Check the latencies."""
        _check_latencies(self.latency_cycles)

    def describe(self) -> str:
        """Return the name and every parameter, as reports show them."""
        low, high = self.latency_cycles
        return f"{self.name} (latency {low} to {high} cycles, out of order, seed {self.seed})"


@dataclass(frozen=True, kw_only=True)
class TestMemory:
    """Everything that AXI4 allows and `ideal` never does; for tests.

    Attributes
    ----------
    seed : int
        The same seed gives the same run.
    latency_cycles : (int, int)
        Least and greatest latency; each request draws its own.
    write_latency_cycles : (int, int), optional
        Those of writes, which stay in order; as of reads if absent.
    request_stall_probability, beat_stall_probability : float
        Chance of a cycle with ARREADY or AWREADY low, and of one with WREADY low, or without a beat
        or an answer although one is due.
    reorder : bool
        Bursts of different IDs overtake each other.
    interleave : bool
        Beats of bursts with different IDs mix; without it a burst that has begun goes on.
    error_range, decode_error_range : (int, int)
        Base address and bytes of a range; reads of its beats answer SLVERR, or DECERR, and so do
        bursts of writes that touch it.
    """

    __test__: ClassVar[bool] = False  # pytest would collect it by its name
    name: ClassVar[str] = "test"
    seed: int
    latency_cycles: tuple[int, int] = (1, 200)
    write_latency_cycles: tuple[int, int] | None = None
    request_stall_probability: float = 0.25
    beat_stall_probability: float = 0.25
    reorder: bool = True
    interleave: bool = True
    error_range: tuple[int, int] = (0, 0)
    decode_error_range: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        """Check ranges."""
        _check_latencies(self.latency_cycles)
        if self.write_latency_cycles is not None:
            _check_latencies(self.write_latency_cycles, "write_latency_cycles")
        _check_probability(self, "request_stall_probability")
        _check_probability(self, "beat_stall_probability")

    def describe(self) -> str:
        """Return the name and the parameters that matter, as reports show them."""
        low, high = self.latency_cycles
        return f"{self.name} (latency {low} to {high} cycles, stalls, seed {self.seed})"


@dataclass(frozen=True, kw_only=True)
class IdealSink:
    """Never waits."""

    name: ClassVar[str] = "ideal"


@dataclass(frozen=True, kw_only=True)
class Pushes:
    """What a program pushes with which event, as far as a sink must know it.

    Attributes
    ----------
    scalars_per_event : tuple of int
        By event bit of a bundle: how many of the bundle's scalars belong to that event's callback.
    row_event_masks : tuple of int
        By row entry: the event bits that push its row.
    """

    scalars_per_event: tuple[int, ...] = ()
    row_event_masks: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CoreLikeSink:
    """An in-order core: 4 cycles a control token, then the token's operands at 16 bytes a cycle.

    A bundle takes ``token_cycles * tokens + ceil(operand_bytes / bytes_per_cycle)`` cycles once its
    rows are there; operands are 4 bytes a scalar and the valid bytes of its rows. A token is a set
    event bit. The core takes the bundle first, then its rows, then the next bundle.
    """

    name: ClassVar[str] = "core-like"
    pushes: Pushes
    token_cycles: int = 4
    bytes_per_cycle: int = 16

    def __post_init__(self) -> None:
        """Check rates."""
        _check_at_least(self, "token_cycles", 0)
        _check_at_least(self, "bytes_per_cycle", 1)


@dataclass(frozen=True, kw_only=True)
class StallingSink:
    """Stalls both streams at random; for tests.

    Attributes
    ----------
    seed : int
        The same seed gives the same run.
    stall_probability : float
        Chance of a cycle with TREADY low, for each stream on its own.
    freeze_probability : float
        Chance, in each cycle, that both streams stop for `freeze_cycles`.
    joint : Pushes, optional
        Take row beats only after the bundle that announces them, and the next bundle only after
        them, as an execute side does.
    """

    name: ClassVar[str] = "stalling"
    seed: int
    stall_probability: float = 0.5
    freeze_probability: float = 0.0
    freeze_cycles: int = 0
    joint: Pushes | None = None

    def __post_init__(self) -> None:
        """Check probabilities."""
        _check_probability(self, "stall_probability")
        _check_probability(self, "freeze_probability")
        _check_at_least(self, "freeze_cycles", 0)


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A window of a run to write to a file of waveforms: a VCD has about 10 kilobytes a cycle.

    Attributes
    ----------
    path : Path
        The file; its suffix, .vcd or .fst, decides the format.
    first, end : int
        The window [first, end): of cycles from the start of the program, or of lookups.
    by : "cycles" or "lookups"
        What they count. A lookup is a row that the unit asks for; its part of the trace begins in
        the cycle after, and ends when the execute side has the row.
    """

    path: Path
    first: int = 0
    end: int = 1_000
    by: Literal["cycles", "lookups"] = "cycles"

    def __post_init__(self) -> None:
        """Check the window."""
        if self.path.suffix not in (".vcd", ".fst"):
            raise ValueError(f"path must end in .vcd or .fst, not {str(self.path)!r}")
        _check_at_least(self, "first", 0)
        _check_at_least(self, "end", self.first + 1)
        if self.by not in ("cycles", "lookups"):
            raise ValueError(f"by must be cycles or lookups, not {self.by!r}")

    @property
    def format(self) -> TraceFormat:
        """Which tracing the model needs."""
        return "fst" if self.path.suffix == ".fst" else "vcd"


Memory = IdealMemory | LinkMemory | RandomMemory | DramMemory | TestMemory

#: Memories that `open_device` and the command line know by name.
MEMORIES: dict[str, Memory] = {
    memory.name: memory
    for memory in (IdealMemory(), RandomMemory(), *DRAM_PRESETS.values(), LinkMemory())
}
Sink = IdealSink | CoreLikeSink | StallingSink
