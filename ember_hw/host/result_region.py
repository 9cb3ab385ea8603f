"""Results that a reduce unit writes into memory: how much room they take, and what is read back.

A result begins on the beat behind the one before it (`ember_hw.isa.reduce`), so where each lies
follows from how many bytes those before it have. The host's walk over the loops tells that, before
the run and without a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.compiler.nest import FabricPart, ResultRow
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host.execution.chunk import Chunk
from ember_hw.host.memory_layout import Region
from ember_hw.isa import Microcode, Source
from ember_hw.isa.reduce import ACCUMULATOR_BEATS, NUMBER_BYTES, result_bytes

if TYPE_CHECKING:
    from ember_hw.host.launch_plan import Launch

__all__ = ["ResultRegion", "Runs", "result_length", "result_runs", "room_bytes"]

#: Results in their order: so many of so many bytes, then so many of so many others.
Runs: TypeAlias = tuple[tuple[int, int], ...]

#: Beats of a chunk that is read back.
_CHUNK_BEATS = 1 << 16


@dataclass(frozen=True, eq=False)
class ResultRegion:
    """Where the results of a launch lie.

    Attributes
    ----------
    region : Region
        Memory of the device that the unit may write, of whole beats.
    runs : tuple of (int, int)
        How many results it holds, and of how many bytes.
    """

    region: Region
    runs: Runs

    @property
    def num_bytes(self) -> int:
        """Bytes of the results, without what their last beats have behind them."""
        return sum(count * length for count, length in self.runs)

    def chunks(
        self, config: AcceleratorConfig, cycles: NDArray[np.uint64] | None = None
    ) -> Iterator[Chunk]:
        """Yield the results as they would have come over a stream.

        Parameters
        ----------
        config : AcceleratorConfig
            Of the access unit.
        cycles : uint64 (T,), optional
            Cycle in which each of their beats was written.
        """
        bus_bytes = config.bus_bytes
        beats = self.region.data[: self.region.num_bytes].reshape(-1, bus_bytes)
        begin = 0
        for count, length in self.runs:
            each = _beats(length, bus_bytes)
            most = max(1, _CHUNK_BEATS // each)
            for first in range(0, count, most):
                last = np.zeros((min(most, count - first), each), np.bool_)
                last[:, -1] = True
                part = slice(begin, begin + last.size)
                yield Chunk(
                    events=np.empty(0, np.uint32),
                    scalars=np.empty((0, config.bundle_scalars), np.uint32),
                    row_beats=beats[part],
                    row_last=last.reshape(-1),
                    row_cycles=None if cycles is None else cycles[part],
                )
                begin = part.stop


def room_bytes(runs: Runs, bus_bytes: int) -> int:
    """Return the bytes of a region that holds results.

    Examples
    --------
    >>> room_bytes(((3, 20), (1, 16)), 16)
    112
    """
    return sum(count * _beats(length, bus_bytes) * bus_bytes for count, length in runs)


def result_length(microcode: Microcode) -> int | None:
    """Return the bytes of each result of a bound program; None where a value tells them."""
    header = microcode.records["reduce"]
    return None if header["length_source"] == Source.SLOT else result_bytes(header)


def result_runs(launch: Launch, fabric: FabricPart) -> Runs:
    """Return how many results a launch has, and of how many bytes.

    Where the loops find a fault, or a length that is none, it counts no further: the unit stops
    there, too, and says why.

    Parameters
    ----------
    launch : Launch
        With the host's part.
    fabric : FabricPart
        Of its nest.
    """
    assert launch.host is not None
    length = result_length(launch.microcode)
    walked, microcode, rows = launch.host, launch.host.microcode, fabric.results
    if length is None and any(row.length_scalar is None for row in rows):
        # The host's bundles don't tell the length; the unit's own do.
        walked, microcode, rows = launch, _without_rows(launch.microcode), _emitted(launch)
    most = ACCUMULATOR_BEATS * launch.microcode.config.bus_bytes
    runs: list[tuple[int, int]] = []
    try:
        bundles = execute(microcode, walked.memory, requests=[walked.arguments], is_checked=True)
        for chunk in bundles:
            if length is not None:
                _append(runs, _count(chunk.events, rows), length)
                continue
            lengths = _lengths(chunk.events, chunk.scalars, rows)
            illegal = np.flatnonzero((lengths <= 0) | (lengths > most) | (lengths % NUMBER_BYTES))
            stop = int(illegal[0]) if illegal.size else lengths.size
            cuts = np.flatnonzero(np.diff(lengths[:stop])) + 1
            edges = [0, *cuts.tolist(), stop]
            for begin, end in pairwise(edges):
                if end > begin:
                    _append(runs, end - begin, int(lengths[begin]))
            if illegal.size:
                break
    except DeviceError:
        pass
    return tuple(runs)


def _append(runs: list[tuple[int, int]], count: int, length: int) -> None:
    """Add results behind others, with which they are one run if they are as long."""
    if runs and runs[-1][1] == length:
        count += runs.pop()[0]
    if count:
        runs.append((count, length))


def _count(events: NDArray[np.uint32], rows: Sequence[ResultRow]) -> int:
    return sum(int(np.count_nonzero(events & np.uint32(row.events))) for row in rows)


def _lengths(
    events: NDArray[np.uint32], scalars: NDArray[np.uint32], rows: Sequence[ResultRow]
) -> NDArray[np.int64]:
    """Return the bytes of each result of bundles, in order."""
    present = np.stack([events & np.uint32(row.events) != 0 for row in rows], axis=1)
    told = np.stack([scalars[:, row.length_scalar or 0] for row in rows], axis=1)
    return told[present].astype(np.int64)


def _without_rows(microcode: Microcode) -> Microcode:
    entries = range(microcode.config.row_entries)
    return microcode.with_fields({(f"row{entry}", "events"): 0 for entry in entries})


def _emitted(launch: Launch) -> tuple[ResultRow, ...]:
    """Return the results of the unit's own bundles."""
    records = launch.microcode.records
    scalar = records["reduce"]["length_scalar"]
    masks = [
        records[f"reduce{n}"]["emit_events"] for n in range(launch.microcode.config.row_entries)
    ]
    return tuple(ResultRow(n, mask, scalar) for n, mask in enumerate(masks) if mask)


def _beats(length: int, bus_bytes: int) -> int:
    return -(-length // bus_bytes)
