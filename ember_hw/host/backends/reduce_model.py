"""The reduce unit's results for what the microcode interpreter yields: many passes an array call.

`compiler.interpreters.reduce` says what the unit means, pass by pass; this gives the same bits for
programs that copy rows, or that pool those of one row entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.interpreters.microcode_issue import Chunk
from ember_hw.compiler.interpreters.reduce import QUIET_NAN, weights
from ember_hw.errors import ProgramError
from ember_hw.host.backends.chunk_rows import row_numbers, row_spans
from ember_hw.host.execution.numpy_sums import accumulate_in_order
from ember_hw.isa import Event, Microcode, ReduceOperation, RowFormat, Source, event_bit
from ember_hw.isa.reduce import EMPTY, NUMBER_BYTES
from ember_hw.registers import NO_UNIT, FaultCode, fault_error

__all__ = ["ReduceModel"]

_ACCUMULATIONS = {ReduceOperation.SUM: "addf", ReduceOperation.MAXIMUM: "maximumf"}

#: Rows that leave, with their bytes: uint8 (R, length).
Results = NDArray[np.uint8]


class ReduceModel:
    """A reduce unit behind an interpreted access unit.

    Parameters
    ----------
    microcode : Microcode
        Bound, of a config with the unit.

    Raises
    ------
    ProgramError
        Rows of several entries are combined, or only some of them copied: no program of the
        compiler is like that.
    """

    def __init__(self, microcode: Microcode) -> None:
        self._config = config = microcode.config
        records = microcode.records
        self._header = records["reduce"]
        self._root_end = np.uint32(1 << event_bit(Event.END, 0, config))
        #: Of each entry in use: events of its rows, of its results.
        self._masks = [
            (
                np.uint32(records[f"row{r}"]["events"]),
                np.uint32(records[f"reduce{r}"]["emit_events"]),
            )
            for r in range(config.row_entries)
            if records[f"row{r}"]["events"] or records[f"reduce{r}"]["emit_events"]
        ]
        steps = [
            records[f"reduce{r}"] for r in range(config.row_entries) if records[f"row{r}"]["events"]
        ]
        self._copies = all(
            step["operation"] == ReduceOperation.COPY and not step["scaled"] for step in steps
        ) and all(rows == results for rows, results in self._masks)
        if not self._copies and (len(self._masks) != 1 or len(steps) != 1):
            raise ProgramError(
                f"rows that the reduce unit combines must be those of 1 row entry on backend "
                f"'interpreter', not of {len(self._masks)}"
            )
        self._step = steps[0] if steps else records["reduce0"]
        self._accumulator: NDArray[np.float32] | None = None

    def results(self, chunk: Chunk) -> Iterator[Results]:
        """Yield what leaves for a chunk of whole bundles, rows of one length at a time.

        Raises
        ------
        DeviceError
            The unit would stop with a fault.
        """
        firsts, sizes = row_spans(chunk)
        counts = sum((chunk.events & rows != 0).astype(np.int64) for rows, _ in self._masks)
        through = np.concatenate(([0], np.cumsum(counts)))
        lengths = self._lengths(chunk)
        cuts = np.flatnonzero(np.diff(lengths)) + 1
        for bundles in _pieces(len(lengths), cuts):
            length = int(lengths[bundles.start])
            mine = slice(int(through[bundles.start]), int(through[bundles.stop]))
            if self._is_used(chunk.events[bundles]):
                rows = row_numbers(
                    chunk, firsts[mine], sizes[mine], self._header, length, self._config
                )
                yield self._reduced(chunk, bundles, rows, length)

    def _is_used(self, events: NDArray[np.uint32]) -> bool:
        return any(bool((events & (rows | results)).any()) for rows, results in self._masks)

    def _lengths(self, chunk: Chunk) -> NDArray[np.int64]:
        """Return the bytes of a result at each bundle."""
        if self._header["length_source"] == Source.SLOT:
            return chunk.scalars[:, self._header["length_scalar"]].astype(np.int64)
        return np.full(len(chunk.events), self._header["length"], np.int64)

    def _reduced(
        self, chunk: Chunk, bundles: slice, rows: NDArray[np.float32], length: int
    ) -> Results:
        if self._copies:
            return rows.view(np.uint8)
        ((row_events, emit_events),) = self._masks
        events = chunk.events[bundles]
        takes = np.flatnonzero(events & row_events)
        if self._step["scaled"]:
            scalars = chunk.scalars[bundles][takes, self._step["scalar"]]
            factors = weights(scalars, RowFormat(self._header["weight_format"]))
            with np.errstate(all="ignore"):
                rows = rows * factors[:, None]
        emits = events & emit_events != 0
        ends = emits | (events & self._root_end != 0)
        # Accumulators in the order of their ends: the one that was left, then each behind an end.
        number = np.concatenate(([0], np.cumsum(ends)))
        count = int(number[-1]) + 1
        operation = ReduceOperation(self._step["operation"])
        totals = np.full((count, length // NUMBER_BYTES), EMPTY.get(operation, 0.0), np.float32)
        taken = np.bincount(number[takes], minlength=count)
        if self._accumulator is not None:
            if self._accumulator.nbytes != length:
                raise fault_error(FaultCode.UNEXPECTED_ROW_LENGTH, NO_UNIT)
            totals[0] = self._accumulator
            taken[0] += 1
        if operation is ReduceOperation.COPY:
            totals[number[takes]] = rows  # the last one stays
        else:
            accumulate_in_order(_ACCUMULATIONS[operation], totals, number[takes], rows)
        totals[taken == 0] = 0
        bits = totals.view(np.uint32)
        if operation is not ReduceOperation.COPY or self._step["scaled"]:
            bits[np.isnan(totals)] = QUIET_NAN
        self._accumulator = totals[-1].copy() if taken[-1] else None
        return totals[number[:-1][emits]].view(np.uint8)


def _pieces(count: int, cuts: Iterable[int]) -> Iterator[slice]:
    """Yield the slices between cuts, but for empty ones."""
    edges = [0, *(int(cut) for cut in cuts), count]
    for start, stop in pairwise(edges):
        if stop > start:
            yield slice(start, stop)
