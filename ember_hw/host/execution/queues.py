"""From chunks to batches: bundles whose rows are all there, and where each row lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError, ProgramError
from ember_hw.host.execution.chunk import Chunk
from ember_hw.isa import Event, Microcode, Source, event_bit

__all__ = ["Batch", "QueueForm", "Queues", "RowEntry", "row_entries"]


@dataclass(frozen=True)
class RowEntry:
    """A row entry that the microcode uses.

    Parameters
    ----------
    index : int
        Its number.
    events : int
        With any of these events comes a row of it.
    length_bytes : int, optional
        Bytes of a row; None where a value tells them.
    is_part : bool
        Whether the row's end may cut it short.
    length_scalar : int, optional
        Scalar of the bundle that tells a row's bytes, if one does.
    """

    index: int
    events: int
    length_bytes: int | None
    is_part: bool
    length_scalar: int | None = None


@dataclass(frozen=True)
class Batch:
    """N complete bundles and their R rows.

    Attributes
    ----------
    events, scalars : uint32 (N,), uint32 (N, S)
        As in `Chunk`, C-contiguous.
    beats : uint8 (T, bus_bytes)
        Beats of the rows, C-contiguous.
    starts, sizes : int64 (R,)
        First byte of each row, and its bytes; a row that may be cut short, and one whose length is
        told by a value that the bundle doesn't hold, counts all bytes of its beats.
    numbers : dict of int to int64 (N,)
        By entry: number of the row that each bundle has of it, if it has one.
    """

    events: NDArray[np.uint32]
    scalars: NDArray[np.uint32]
    beats: NDArray[np.uint8]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    numbers: dict[int, NDArray[np.int64]]


class QueueForm:
    """What queues of one access unit and one program are, whatever comes through them.

    Parameters
    ----------
    config : AcceleratorConfig
        Of the access unit.
    entries : sequence of RowEntry
        Row entries in use, in their order.
    """

    def __init__(self, config: AcceleratorConfig, entries: Sequence[RowEntry]) -> None:
        self.bus_bytes = config.bus_bytes
        self.entries = tuple(entries)
        # As arrays: NumPy takes longer for a scalar.
        self.root_end = np.array([1 << event_bit(Event.END, 0, config)], np.uint32)
        self.masks = [np.array([entry.events], np.uint32) for entry in self.entries]


class Queues:
    """Puts chunks together and cuts them into batches.

    Parameters
    ----------
    form : QueueForm
        Access unit and row entries.

    Attributes
    ----------
    bundles, rows, row_beats, row_bytes : int
        What has gone into batches; bytes are the sum of their `sizes`.
    """

    def __init__(self, form: QueueForm) -> None:
        self._form = form
        self._pending: Chunk | None = None
        self._is_done = False
        self.bundles = self.rows = self.row_beats = self.row_bytes = 0

    def take(self, chunk: Chunk) -> Batch | None:
        """Return all complete bundles so far; None if there is none.

        Raises
        ------
        DeviceError
            A bundle follows the program's end, or a row has another length than its entry's.
        """
        chunk = self._join(chunk)
        form, events = self._form, chunk.events
        has_row = [(events & mask) != 0 for mask in form.masks]
        if len(has_row) == 1:
            through = has_row[0].cumsum()
        else:
            counts = np.sum(has_row, axis=0, dtype=np.int64) if has_row else 0
            through = np.cumsum(np.broadcast_to(counts, events.shape))
        ends = chunk.row_last.nonzero()[0]
        bundles = events.size
        if bundles and through[-1] > ends.size:
            bundles = int(through.searchsorted(ends.size, side="right"))
        rows = int(through[bundles - 1]) if bundles else 0
        # First beat of each row, and the one behind the last.
        edges = np.zeros(rows + 1, np.int64)
        np.add(ends[:rows], 1, out=edges[1:])
        beats = int(edges[-1])
        if bundles < events.size or beats < chunk.row_last.size:
            self._pending = Chunk(
                events[bundles:].copy(),
                chunk.scalars[bundles:].copy(),
                chunk.row_beats[beats:].copy(),
                chunk.row_last[beats:].copy(),
            )
        if not bundles:
            return None
        self._check_end(events[:bundles])
        edges *= form.bus_bytes
        starts = edges[:-1]
        sizes = edges[1:] - starts
        if len(has_row) == 1:
            (entry,), (here,) = form.entries, has_row
            numbers = {entry.index: through[:bundles] - here[:bundles]}
            self._check_rows(entry, self._told(entry, chunk, here[:bundles]), None, sizes)
        else:
            number, numbers = through[:bundles] - sum(here[:bundles] for here in has_row), {}
            for entry, here in zip(form.entries, has_row, strict=True):
                here = here[:bundles]
                numbers[entry.index] = number
                told = self._told(entry, chunk, here)
                self._check_rows(entry, told, number[here], sizes)
                number = number + here
        self.bundles += bundles
        self.rows += rows
        self.row_beats += beats
        self.row_bytes += int(np.add.reduce(sizes))
        return Batch(
            np.ascontiguousarray(events[:bundles], np.uint32),
            np.ascontiguousarray(chunk.scalars[:bundles], np.uint32),
            _aligned(chunk.row_beats[:beats]),
            starts,
            sizes,
            numbers,
        )

    def finish(self) -> None:
        """Check that the program has ended and nothing is left.

        Raises
        ------
        DeviceError
            It hasn't.
        """
        if self._pending is not None:
            raise DeviceError(
                "queues must be empty at the end of a program, not hold "
                f"{self._pending.events.size} bundles and {self._pending.row_last.size} row beats"
            )
        if not self._is_done:
            raise DeviceError(
                f"the last of {self.bundles} bundles must end the outermost loop, and doesn't"
            )

    def _join(self, chunk: Chunk) -> Chunk:
        pending, self._pending = self._pending, None
        if pending is None:
            return chunk
        return Chunk(
            np.concatenate((pending.events, chunk.events)),
            np.concatenate((pending.scalars, chunk.scalars)),
            np.concatenate((pending.row_beats, chunk.row_beats)),
            np.concatenate((pending.row_last, chunk.row_last)),
        )

    def _check_end(self, events: NDArray[np.uint32]) -> None:
        ended = (events & self._form.root_end).nonzero()[0]
        if self._is_done or (ended.size and int(ended[0]) != events.size - 1):
            raise DeviceError("no bundle must follow the one that ends the outermost loop")
        self._is_done = bool(ended.size)

    def _told(
        self, entry: RowEntry, chunk: Chunk, here: NDArray[np.bool_]
    ) -> NDArray[np.int64] | int | None:
        """Return the bytes of an entry's rows, where they are known."""
        if entry.length_scalar is None:
            return entry.length_bytes
        return chunk.scalars[: here.size][here, entry.length_scalar].astype(np.int64)

    def _check_rows(
        self,
        entry: RowEntry,
        told: NDArray[np.int64] | int | None,
        mine: NDArray[np.int64] | None,
        sizes: NDArray[np.int64],
    ) -> None:
        """Check the beats of an entry's rows, and set their sizes where they are known.

        Parameters
        ----------
        entry : RowEntry
            The entry.
        told : int64 (M,) or int, optional
            Bytes of its rows.
        mine : int64 (M,), optional
            Numbers of its rows; None if all are its own.
        sizes : int64 (R,)
            Bytes of the beats of all rows.
        """
        if told is None:
            return
        bus_bytes = self._form.bus_bytes
        found = sizes if mine is None else sizes[mine]
        wanted = -(-told // bus_bytes) * bus_bytes
        bad = found > wanted if entry.is_part else found != wanted
        if np.count_nonzero(bad):
            first = int(bad.argmax())
            beats = np.broadcast_to(np.asarray(wanted), bad.shape) // bus_bytes
            raise DeviceError(
                f"each row of row{entry.index} must be {int(beats[first])} beats on the row queue, "
                f"not {int(found[first]) // bus_bytes}"
            )
        if mine is None:
            np.minimum(sizes, told, out=sizes)
        else:
            sizes[mine] = np.minimum(found, told)


def row_entries(microcode: Microcode) -> list[RowEntry]:
    """Return the row entries that bound microcode uses.

    Raises
    ------
    ProgramError
        A row comes with an event that the execute side isn't told of.
    """
    entries: list[RowEntry] = []
    for index in range(microcode.config.row_entries):
        record = microcode.records[f"row{index}"]
        if not record["events"]:
            continue
        if record["events"] & ~microcode.get("issue", "events"):
            raise ProgramError(f"events of row{index} must be among those that the unit issues")
        is_known = record["length_source"] == Source.IMMEDIATE
        length = record["length"] if is_known else None
        scalar = None if is_known else record["length_export"]
        if scalar is not None and scalar >= microcode.config.bundle_scalars:
            scalar = None
        is_part = bool(record["offset_enable"])
        entries.append(RowEntry(index, record["events"], length, is_part, scalar))
    return entries


def _aligned(beats: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return beats that C may read as numbers of any size: contiguous, at multiples of 8 bytes."""
    beats = np.ascontiguousarray(beats)
    return beats if beats.ctypes.data % 8 == 0 else beats.copy()
