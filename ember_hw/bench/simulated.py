"""Runs a workload on the simulated unit, holds what came against the interpreter, and times it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host.backends.requests import FeedLine
from ember_hw.host.backends.verilator import Backend
from ember_hw.host.execution import Chunk
from ember_hw.host.launch import Launch
from ember_hw.isa import event_bit

#: The steady state: from this share of a run's row beats to that one.
STEADY = (0.1, 0.9)


class Checkable(Protocol):
    """What is known of a delivery beforehand, without the microcode."""

    @property
    def name(self) -> str:
        """What results call it."""
        ...

    @property
    def rows(self) -> NDArray[Any] | None:
        """Bytes of every row in the order of the program, by NumPy alone, where they are known."""
        ...

    @property
    def lines(self) -> Mapping[tuple[int, int], NDArray[np.uint8]]:
        """What the input queue brings, by (unit, stream)."""
        ...


class Runnable(Checkable, Protocol):
    """What a simulator runs; `ember_hw.bench.workload.Workload` is one."""

    @property
    def params(self) -> Mapping[str, Any]:
        """What a row of results says of it."""
        ...

    @property
    def feed(self) -> Sequence[FeedLine]:
        """What the input queue brings, in order."""
        ...

    def launches(self, config: AcceleratorConfig, *, outstanding_reads: int = 0) -> list[Launch]:
        """Place the arrays and bind the program: a launch a request, alike but for arguments.

        0 reads in flight are all that the unit has.
        """
        ...


@dataclass(frozen=True)
class Delivery:
    """A run whose every bundle and every row byte was right.

    Attributes
    ----------
    cycles : int
        From start to done, as the unit counted them.
    row_cycles : uint64 (T,)
        Cycle in which each row beat was handed over.
    useful_bytes : uint8 (T,)
        Bytes of each beat that belong to its row.
    bus_bytes : int
        Bytes of a beat.
    facts : dict
        What the unit's counters say, by the names of `ember_hw.host.report.Report`.
    """

    cycles: int
    row_cycles: NDArray[np.uint64]
    useful_bytes: NDArray[np.uint8]
    bus_bytes: int
    facts: dict[str, Any]

    @property
    def utilisation(self) -> float:
        """Useful bytes over cycles x bus bytes in the steady state.

        That is between the beats at 10 % and at 90 % of all row beats: the cycles from the one to
        the other, and the bytes of the beats after the first of them.
        """
        first, last = (int(share * (len(self.row_cycles) - 1)) for share in STEADY)
        cycles = int(self.row_cycles[last]) - int(self.row_cycles[first])
        useful = int(self.useful_bytes[first + 1 : last + 1].sum(dtype=np.int64))
        return useful / (cycles * self.bus_bytes)


class Simulator:
    """A simulated unit with its memory and its sink.

    Parameters
    ----------
    config : AcceleratorConfig
        The unit; its model is built once on a machine.
    memory, sink : optional
        As `open_device` takes them.
    optimise : bool
        Build the fast model; the other one builds in half the time.
    progress : callable, optional
        Told what a cold build does next.
    """

    def __init__(
        self,
        config: AcceleratorConfig,
        *,
        memory: Any = "ideal",
        sink: Any = "ideal",
        optimise: bool = True,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.config = config
        self._backend = Backend(
            config, memory=memory, sink=sink, optimise=optimise, progress=progress
        )
        self.memory, self.sink = self._backend.memory, self._backend.sink

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._backend.close()

    def run(self, workload: Runnable, *, outstanding_reads: int = 0) -> Delivery:
        """Run a workload and check it.

        Raises
        ------
        DeviceError
            The unit stopped on a fault, or a bundle or a byte of a row isn't the interpreter's; or
            a request ended before the next one started.
        """
        launches = workload.launches(self.config, outstanding_reads=outstanding_reads)
        chunks = [copied(c) for c in self._backend.execute_requests(launches, workload.feed)]
        facts = self._backend.facts()
        return delivery(workload, launches, chunks, facts)


def delivery(
    workload: Checkable, launches: Sequence[Launch], chunks: Sequence[Chunk], facts: dict[str, Any]
) -> Delivery:
    """Hold what came against the interpreter.

    Parameters
    ----------
    workload : Checkable
        What ran.
    launches : sequence of Launch
        Its requests.
    chunks : sequence of Chunk
        What the queues delivered.
    facts : dict
        What the unit counted.

    Raises
    ------
    DeviceError
        As `Simulator.run`.
    """
    launch = launches[0]
    regions = [(region.base, region.data) for region in launch.regions]
    requests = [each.arguments for each in launches]
    wanted = list(execute(launch.microcode, regions, requests=requests, lines=workload.lines))
    keep = np.concatenate([chunk.row_keep for chunk in wanted])
    check_bundles(workload.name, launch, chunks, wanted)
    check_rows(workload, chunks, wanted, keep)
    if facts["row_beats"] != len(keep):
        raise DeviceError(
            f"requests of {workload.name!r} must follow each other without a pause, but the unit "
            f"counted {facts['row_beats']} row beats of {len(keep)}"
        )
    cycles: NDArray[np.uint64] = joined(chunks, "row_cycles")
    bus_bytes = launch.microcode.config.bus_bytes
    return Delivery(facts["cycles"], cycles, keep, bus_bytes, facts)


def copied(chunk: Chunk) -> Chunk:
    """Return a chunk with arrays of its own."""
    assert chunk.row_cycles is not None, "the simulation stamps every beat"
    return Chunk(
        chunk.events.copy(),
        chunk.scalars.copy(),
        chunk.row_beats.copy(),
        chunk.row_last.copy(),
        chunk.row_cycles.copy(),
    )


def joined(chunks: Any, name: str) -> NDArray[Any]:
    """Return an array of all chunks as one, by its name."""
    return np.concatenate([getattr(chunk, name) for chunk in chunks])


def check_bundles(name: str, launch: Launch, chunks: Any, wanted: Any) -> None:
    """Refuse bundles that differ from the interpreter's.

    Parameters
    ----------
    name : str
        Of the workload.
    launch : Launch
        Its callbacks say which scalars mean something on which bundle.
    chunks, wanted : sequence of chunks
        What came, and what the interpreter yields.

    Raises
    ------
    DeviceError
        Events or scalars differ; the first bundle that does is named.
    """
    config = launch.microcode.config
    events, expected = joined(chunks, "events"), joined(wanted, "events")
    if len(events) != len(expected):
        raise DeviceError(f"bundles of {name!r} must be {len(expected)}, not {len(events)}")
    differs = events != expected
    scalars, expected_scalars = joined(chunks, "scalars"), joined(wanted, "scalars")
    for callback in launch.callbacks:
        bit = event_bit(callback.event, callback.level, config)
        told = (expected >> bit & 1).astype(np.bool_)
        for operand in callback.operands:
            if operand.kind == "scalar":
                place = operand.index
                differs |= told & (scalars[:, place] != expected_scalars[:, place])
    if differs.any():
        first = int(np.flatnonzero(differs)[0])
        raise DeviceError(f"bundle {first} of {name!r} must be the interpreter's, and isn't")


def check_rows(workload: Checkable, chunks: Any, wanted: Any, keep: NDArray[np.uint8]) -> None:
    """Refuse row beats that differ from the interpreter's, or those from NumPy's.

    Raises
    ------
    DeviceError
        A byte or the end of a row differs; the first beat that does is named.
    """
    beats, expected = joined(chunks, "row_beats"), joined(wanted, "row_beats")
    if len(beats) != len(expected):
        raise DeviceError(
            f"row beats of {workload.name!r} must be {len(expected)}, not {len(beats)}"
        )
    kept = np.arange(expected.shape[1]) < keep[:, None]
    differs = ((beats != expected) & kept).any(axis=1)
    differs |= joined(chunks, "row_last").astype(np.bool_) != joined(wanted, "row_last")
    if differs.any():
        first = int(np.flatnonzero(differs)[0])
        raise DeviceError(
            f"row beat {first} of {workload.name!r} must be the interpreter's, and isn't"
        )
    if workload.rows is not None and not np.array_equal(expected[kept], workload.rows.reshape(-1)):
        raise DeviceError(f"rows of {workload.name!r} must be NumPy's, and aren't")
