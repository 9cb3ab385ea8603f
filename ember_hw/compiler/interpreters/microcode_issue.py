"""The issue stage of the microcode interpreter: from leaf tokens to bundles and rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.interpreters.microcode_memory import Memory
from ember_hw.compiler.interpreters.microcode_tokens import FirstFault, Tokens
from ember_hw.isa import Event, Microcode, Source, event_bit, layouts
from ember_hw.registers import NO_UNIT, FaultCode

# Table addresses in values count units of 64 bytes.
_BASE_UNIT_BITS = 6


@dataclass(frozen=True)
class Chunk:
    """A part of what the queues deliver: N bundles and the M beats of their rows.

    Parameters
    ----------
    events : uint32 (N,)
        Events of each bundle that the execute side is told of, and the end of the root.
    scalars : uint32 (N, bundle_scalars)
        Their scalars, as 32-bit words.
    row_beats : uint8 (M, bus_bytes)
        Beats in order; bytes beyond a row's end are 0.
    row_last : bool (M,)
        Set on the last beat of each row.
    row_keep : uint8 (M,)
        Valid bytes of each beat.
    """

    events: NDArray[np.uint32]
    scalars: NDArray[np.uint32]
    row_beats: NDArray[np.uint8]
    row_last: NDArray[np.bool_]
    row_keep: NDArray[np.uint8]


@dataclass
class _Rows:
    """Rows in order, wherever they lie: the token of each, its address and its bytes."""

    tokens: NDArray[np.intp]
    addresses: NDArray[np.int64]
    sizes: NDArray[np.int64]
    memory: Memory

    def anywhere(self) -> _Rows:
        """Return the same rows."""
        return self

    def first(self, count: int) -> _Rows:
        """Return the first rows."""
        return _Rows(self.tokens[:count], self.addresses[:count], self.sizes[:count], self.memory)

    def beats(self) -> NDArray[np.int64]:
        """Return the beats of each row."""
        return -(-self.sizes // self.memory.bus_bytes)

    def total_beats(self) -> int:
        """Return the beats of all rows."""
        return int(np.add.reduce(self.beats()))

    def read(self, part: slice) -> tuple[NDArray[np.uint8], NDArray[np.bool_], NDArray[np.uint8]]:
        """Return the beats of some rows, whether each is a row's last, and its valid bytes."""
        bus_bytes, sizes = self.memory.bus_bytes, self.sizes[part]
        beats = -(-sizes // bus_bytes)
        ends = beats.cumsum()
        total = int(ends[-1]) if len(ends) else 0
        row = np.arange(len(beats)).repeat(beats)
        skipped = (np.arange(total) - (ends - beats)[row]) * bus_bytes
        keep = np.minimum(sizes[row] - skipped, bus_bytes)
        last = np.zeros(total, np.bool_)
        last[ends - 1] = True
        content = self.memory.load_beats(self.addresses[part][row] + skipped, keep)
        return content, last, keep.astype(np.uint8)


class _Table:
    """Where rows of one length lie, one behind the other; all of them can be read.

    Parameters
    ----------
    content : uint8 (rows, beats, bus_bytes)
        Their beats in memory.
    base, pitch, length : int
        Address of the first one, distance of two, and bytes.
    """

    def __init__(self, content: NDArray[np.uint8], base: int, pitch: int, length: int) -> None:
        self.content, self.base, self.pitch, self.length = content, base, pitch, length
        _, self.beats, self.bus_bytes = content.shape
        self.past = length % self.bus_bytes
        self.last = np.zeros(self.beats, np.bool_)
        self.last[-1] = True
        self.keep = np.full(self.beats, self.bus_bytes, np.uint8)
        self.keep[-1] = self.past or self.bus_bytes


@dataclass
class _TableRows:
    """Rows of a table in order: the token of each and its number."""

    tokens: NDArray[np.intp]
    numbers: NDArray[np.uint32]
    table: _Table
    memory: Memory

    def anywhere(self) -> _Rows:
        """Return the same rows by their addresses."""
        addresses = self.numbers * np.int64(self.table.pitch) + self.table.base
        sizes = np.full(len(self.tokens), self.table.length, np.int64)
        return _Rows(self.tokens, addresses, sizes, self.memory)

    def first(self, count: int) -> _TableRows:
        """Return the first rows."""
        return _TableRows(self.tokens[:count], self.numbers[:count], self.table, self.memory)

    def beats(self) -> NDArray[np.int64]:
        """Return the beats of each row."""
        return np.full(len(self.tokens), self.table.beats, np.int64)

    def total_beats(self) -> int:
        """Return the beats of all rows."""
        return len(self.tokens) * self.table.beats

    def read(self, part: slice) -> tuple[NDArray[np.uint8], NDArray[np.bool_], NDArray[np.uint8]]:
        """Return the beats of some rows, whether each is a row's last, and its valid bytes."""
        table = self.table
        content = table.content[self.numbers[part]]
        if table.past:
            content[:, -1, table.past :] = 0
        last = np.empty(content.shape[:2], np.bool_)
        last[:] = table.last
        keep = np.empty(last.shape, np.uint8)
        keep[:] = table.keep
        return content.reshape(-1, table.bus_bytes), last.reshape(-1), keep.reshape(-1)


class Issue:
    """Issue stage and row entries of a program."""

    def __init__(self, microcode: Microcode, memory: Memory, chunk_row_bytes: int) -> None:
        config = microcode.config
        self.microcode, self.memory, self.bus_bytes = microcode, memory, config.bus_bytes
        self.chunk_beats = max(1, chunk_row_bytes // config.bus_bytes)
        self.address_width_bits = config.address_width_bits
        self.root_end = np.uint32(1 << event_bit(Event.END, 0, config))
        self.events = np.uint32(microcode.get("issue", "events"))
        self.told = np.array([self.events | self.root_end])
        self.scalars = config.bundle_scalars
        self.entries = [
            entry for entry in range(config.row_entries) if microcode.get(f"row{entry}", "events")
        ]
        # As arrays: NumPy takes longer for a scalar.
        self.masks = {
            entry: np.array([microcode.get(f"row{entry}", "events")], np.uint32)
            for entry in self.entries
        }
        self.tables = {entry: self._table(entry) for entry in self.entries}

    def run(self, batches: Iterator[Tokens]) -> Iterator[Chunk]:
        """Turn leaf tokens into chunks."""
        for tokens in batches:
            first_fault = FirstFault(len(tokens.events))
            rows = self._rows(tokens, first_fault)
            count = first_fault.token
            if count and rows.total_beats() <= self.chunk_beats:
                yield self._chunk(tokens, slice(0, count), rows, slice(None))
                if first_fault.error is not None:
                    raise first_fault.error
                continue
            # Beats of all rows before each row, and where the rows of a piece begin.
            before = np.concatenate([np.zeros(1, np.int64), np.cumsum(rows.beats())])
            start = 0
            while start < count:
                first_row = int(np.searchsorted(rows.tokens, start))
                room = int(before[first_row]) + self.chunk_beats
                limit = int(np.searchsorted(before, room, "right"))
                stop = int(rows.tokens[limit - 1]) if limit <= len(rows.tokens) else count
                stop = min(max(stop, start + 1), count)
                last_row = int(np.searchsorted(rows.tokens, stop))
                part = slice(first_row, last_row)
                yield self._chunk(tokens, slice(start, stop), rows, part)
                start = stop
            if first_fault.error is not None:
                raise first_fault.error

    def _chunk(
        self, tokens: Tokens, selected: slice, rows: _Rows | _TableRows, part: slice
    ) -> Chunk:
        events = tokens.events[selected] & self.told
        told = events.nonzero()[0]
        scalars = np.empty((len(told), self.scalars), np.int32)
        for number in range(self.scalars):
            scalars[:, number] = tokens.values[number][selected][told]
        return Chunk(events[told], scalars.view(np.uint32), *rows.read(part))

    def _rows(self, tokens: Tokens, first_fault: FirstFault) -> _Rows | _TableRows:
        """Return all rows of the tokens before the first fault, in the order of the program."""
        found = [self._rows_of(entry, tokens, first_fault) for entry in self.entries]
        if not found:
            nothing = np.zeros(0, np.int64)
            return _Rows(np.zeros(0, np.intp), nothing, nothing, self.memory)
        rows = found[0]
        if len(found) > 1:
            all_rows = [rows.anywhere() for rows in found]
            tokens_of_all = np.concatenate([rows.tokens for rows in all_rows])
            # Stable: of one token, the entries keep their order.
            order = np.argsort(tokens_of_all, kind="stable")
            rows = _Rows(
                tokens_of_all[order],
                np.concatenate([rows.addresses for rows in all_rows])[order],
                np.concatenate([rows.sizes for rows in all_rows])[order],
                self.memory,
            )
        if first_fault.error is None:
            return rows
        return rows.first(int(np.searchsorted(rows.tokens, first_fault.token)))

    def _rows_of(self, entry: int, tokens: Tokens, first_fault: FirstFault) -> _Rows | _TableRows:
        get, table = self.microcode.records[f"row{entry}"], self.tables[entry]
        hits = (tokens.events & self.masks[entry]).nonzero()[0]
        if table is not None:
            numbers = tokens.values[get["index_export"]][hits].view(np.uint32)
            if not len(numbers) or np.maximum.reduce(numbers) < len(table.content):
                return _TableRows(hits, numbers, table, self.memory)

        def export(name: str) -> NDArray[np.int64]:
            return tokens.values[get[name]][hits].view(np.uint32).astype(np.int64)

        def operand(name: str) -> NDArray[np.int64] | int:
            if get[f"{name}_source"] == Source.IMMEDIATE:
                return get[name]
            return export(f"{name}_export")

        def note(code: FaultCode, is_bad: NDArray[np.bool_], what: NDArray[np.int64]) -> None:
            first_fault.note(code, NO_UNIT, entry, is_bad, hits, what)

        index = export("index_export")
        outside = index >= operand("rows")
        note(FaultCode.INDEX_OUT_OF_RANGE, outside, index)
        pitch, length = operand("pitch"), operand("length")
        beyond = np.broadcast_to(self._is_illegal("pitch", pitch), hits.shape)
        beyond = beyond | self._is_illegal("length", length) | (np.asarray(length) == 0)
        offset, sizes = np.zeros(hits.shape, np.int64), np.broadcast_to(length, hits.shape)
        whole = length
        if get["offset_enable"]:
            offset = export("offset_export") << get["offset_size"]
            beyond = beyond | (offset >= get["clip"])
            sizes = np.minimum(sizes, get["clip"] - offset)
            whole = get["clip"]
        beyond = beyond | ((pitch | offset) % self.bus_bytes != 0)
        beyond = beyond | (np.asarray(whole) > pitch)
        begin = index * pitch + offset
        if get["base_source"] == Source.SLOT:
            begin += export("base_export") << _BASE_UNIT_BITS
        beyond = beyond | (begin + sizes > get["region_bytes"])
        if get["base"] + get["region_bytes"] > 1 << self.address_width_bits:
            note(FaultCode.ADDRESS_OVERFLOW, ~outside, index)
        note(FaultCode.ROW_OUT_OF_BOUNDS, beyond & ~outside, index)
        is_bad = outside | beyond
        addresses = get["base"] + np.where(is_bad, 0, begin)
        sizes = np.where(is_bad, 1, sizes)
        unmapped = ~is_bad & (self.memory.find(addresses, sizes) < 0)
        note(FaultCode.READ_DECODE_ERROR, unmapped, addresses)
        return _Rows(hits, addresses, sizes, self.memory)

    def _table(self, entry: int) -> _Table | None:
        """Return the rows of an entry that can be read for certain, where that is known at once."""
        get, bus_bytes = self.microcode.records[f"row{entry}"], self.bus_bytes
        sources = (get[f"{name}_source"] for name in ("rows", "pitch", "length", "base"))
        base, pitch, length = get["base"], get["pitch"], get["length"]
        is_plain = all(source == Source.IMMEDIATE for source in sources)
        if not is_plain or get["offset_enable"] or not 0 < length <= pitch:
            return None
        end = base + get["region_bytes"]
        if base % bus_bytes or pitch % bus_bytes or end > 1 << self.address_width_bits:
            return None
        rows = min(get["rows"], (get["region_bytes"] - length) // pitch + 1)
        beats = -(-length // bus_bytes)
        if rows < 1:
            return None
        content = self.memory.window(base, (rows - 1) * pitch + beats * bus_bytes)
        if content is None:
            return None
        shape, strides = (rows, beats, bus_bytes), (pitch, bus_bytes, 1)
        whole = np.lib.stride_tricks.as_strided(content, shape, strides, writeable=False)
        return _Table(whole, base, pitch, length)

    def _is_illegal(self, name: str, value: NDArray[np.int64] | int) -> NDArray[np.bool_]:
        """Tell whether an exported value is too wide for the field it stands in for."""
        width_bits = layouts(self.microcode.config)["row0"].field(name).width_bits
        return (np.asarray(value) >> width_bits) != 0
