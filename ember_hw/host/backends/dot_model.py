"""The reduce unit's results where it sums across rows: all results of a chunk in an array call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.interpreters.dot import negative, places_in_use, sums_across
from ember_hw.compiler.interpreters.microcode_issue import Chunk
from ember_hw.compiler.interpreters.reduce import QUIET_NAN
from ember_hw.host.backends.chunk_rows import row_numbers, row_spans
from ember_hw.isa import Microcode, Place
from ember_hw.isa.reduce import NUMBER_BYTES
from ember_hw.registers import NO_UNIT, FaultCode, fault_error

__all__ = ["DotModel"]


@dataclass(frozen=True)
class _Entry:
    """What becomes of a row entry, by its events."""

    takes: np.uint32
    emits: np.uint32
    place: Place
    is_negated: bool


class DotModel:
    """A reduce unit that sums across rows behind an interpreted access unit; see `isa.dot`.

    Parameters
    ----------
    microcode : Microcode
        Bound, with a `fold`.
    """

    def __init__(self, microcode: Microcode) -> None:
        self._config = microcode.config
        records = microcode.records
        self._header = records["reduce"]
        self._entries = [
            _Entry(
                np.uint32(records[f"row{r}"]["events"]),
                np.uint32(records[f"reduce{r}"]["emit_events"]),
                Place(records[f"reduce{r}"]["place"]),
                bool(records[f"reduce{r}"]["negated"]),
            )
            for r in range(self._config.row_entries)
        ]
        #: The row of each place, (1, D).
        self._kept: dict[Place, NDArray[np.float32]] = {}

    def results(self, chunk: Chunk) -> Iterator[NDArray[np.uint8]]:
        """Yield what leaves for a chunk of whole bundles, uint8 (R, 4).

        Raises
        ------
        DeviceError
            The unit would stop with a fault.
        """
        # Rows and results in their order: bundle by bundle, entry by entry.
        takes, emits = (
            np.stack([chunk.events & events != 0 for events in masks], -1).reshape(-1)
            for masks in ([e.takes for e in self._entries], [e.emits for e in self._entries])
        )
        if not (takes | emits).any():
            return
        rows = row_numbers(
            chunk, *row_spans(chunk), self._header, self._header["length"], self._config
        )
        entries = np.tile(np.arange(len(self._entries)), len(chunk.events))
        signs = np.array([entry.is_negated for entry in self._entries])[entries[takes]]
        rows = np.where(signs[:, None], negative(rows), rows)
        places = np.array([entry.place for entry in self._entries])[entries]
        numbers = np.cumsum(takes)  # of the latest row, from 1 on
        chosen: dict[Place, NDArray[np.float32]] = {}
        for place in Place:
            comes = takes & (places == place)
            latest = np.maximum.accumulate(np.where(comes, numbers, 0))[emits]
            chosen[place] = self._chosen(place, rows, latest)
            if comes.any():
                last = int(numbers[comes][-1])
                self._kept[place] = rows[last - 1 : last]
        if emits.any():
            sums = sums_across(self._header, chosen)
            sums.view(np.uint32)[np.isnan(sums)] = QUIET_NAN
            yield np.ascontiguousarray(sums).view(np.uint8).reshape(-1, NUMBER_BYTES)

    def _chosen(
        self, place: Place, rows: NDArray[np.float32], latest: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Return the row of a place for each result: of a number, or what was there before."""
        before = self._kept.get(place)
        if before is None:
            if place in places_in_use(self._header) and not latest.all():
                raise fault_error(FaultCode.UNEXPECTED_ROW_LENGTH, NO_UNIT)
            before = np.zeros((1, rows.shape[1]), np.float32)
        return np.concatenate((before, rows))[latest]
