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
    """Rows in order: the token of each, its address and its bytes; `length` if all have as many."""

    tokens: NDArray[np.intp]
    addresses: NDArray[np.int64]
    sizes: NDArray[np.int64]
    length: int | None = None


class Issue:
    """Issue stage and row entries of a program."""

    def __init__(self, microcode: Microcode, memory: Memory, chunk_row_bytes: int) -> None:
        config = microcode.config
        self.microcode, self.memory, self.bus_bytes = microcode, memory, config.bus_bytes
        self.chunk_beats = max(1, chunk_row_bytes // config.bus_bytes)
        self.address_width_bits = config.address_width_bits
        self.root_end = np.uint32(1 << event_bit(Event.END, 0, config))
        self.events = np.uint32(microcode.get("issue", "events"))
        self.told = self.events | self.root_end
        self.scalars = config.bundle_scalars
        self.entries = [
            entry for entry in range(config.row_entries) if microcode.get(f"row{entry}", "events")
        ]
        self.rows_in_reach = {entry: self._rows_in_reach(entry) for entry in self.entries}

    def run(self, batches: Iterator[Tokens]) -> Iterator[Chunk]:
        """Turn leaf tokens into chunks."""
        for tokens in batches:
            first_fault = FirstFault(len(tokens.events))
            rows = self._rows(tokens, first_fault)
            count = first_fault.token
            beats = -(-rows.sizes // self.bus_bytes)
            if count and np.add.reduce(beats) <= self.chunk_beats:
                yield self._chunk(tokens, slice(0, count), rows, slice(None), beats)
                if first_fault.error is not None:
                    raise first_fault.error
                continue
            # Beats of all rows before each row, and where the rows of a piece begin.
            before = np.concatenate([np.zeros(1, np.int64), np.cumsum(beats)])
            start = 0
            while start < count:
                first_row = int(np.searchsorted(rows.tokens, start))
                room = int(before[first_row]) + self.chunk_beats
                limit = int(np.searchsorted(before, room, "right"))
                stop = int(rows.tokens[limit - 1]) if limit <= len(rows.tokens) else count
                stop = min(max(stop, start + 1), count)
                last_row = int(np.searchsorted(rows.tokens, stop))
                part = slice(first_row, last_row)
                yield self._chunk(tokens, slice(start, stop), rows, part, beats[part])
                start = stop
            if first_fault.error is not None:
                raise first_fault.error

    def _chunk(
        self,
        tokens: Tokens,
        selected: slice,
        rows: _Rows,
        part: slice,
        beats: NDArray[np.int64],
    ) -> Chunk:
        events = tokens.events[selected] & self.told
        told = events.nonzero()[0]
        scalars = np.empty((len(told), self.scalars), np.int32)
        for number in range(self.scalars):
            scalars[:, number] = tokens.values[number][selected][told]
        addresses, keep, last = self._beats(rows, part, beats)
        return Chunk(
            events=events[told],
            scalars=scalars.view(np.uint32),
            row_beats=self.memory.load_beats(addresses, keep),
            row_last=last,
            row_keep=keep.astype(np.uint8),
        )

    def _beats(
        self, rows: _Rows, part: slice, beats: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Return of each beat its address, its valid bytes, and whether it is its row's last."""
        addresses, bus_bytes = rows.addresses[part], self.bus_bytes
        if rows.length is not None:
            within = np.arange(0, rows.length, bus_bytes)
            last = np.zeros((len(addresses), len(within)), np.bool_)
            last[:, -1:] = True
            keep = np.empty(last.shape, np.int64)
            keep[:] = np.minimum(rows.length - within, bus_bytes)
            return (addresses[:, None] + within).reshape(-1), keep.reshape(-1), last.reshape(-1)
        ends = beats.cumsum()
        total = int(ends[-1]) if len(ends) else 0
        row = np.arange(len(beats)).repeat(beats)
        skipped = (np.arange(total) - (ends - beats)[row]) * bus_bytes
        keep = np.minimum(rows.sizes[part][row] - skipped, bus_bytes)
        last = np.zeros(total, np.bool_)
        last[ends - 1] = True
        return addresses[row] + skipped, keep, last

    def _rows(self, tokens: Tokens, first_fault: FirstFault) -> _Rows:
        """Return all rows of the tokens before the first fault, in the order of the program."""
        found = [self._rows_of(entry, tokens, first_fault) for entry in self.entries]
        if not found:
            nothing = np.zeros(0, np.int64)
            return _Rows(np.zeros(0, np.intp), nothing, nothing)
        rows = found[0]
        if len(found) > 1:
            tokens_of_all = np.concatenate([rows.tokens for rows in found])
            # Stable: of one token, the entries keep their order.
            order = np.argsort(tokens_of_all, kind="stable")
            rows = _Rows(
                tokens_of_all[order],
                np.concatenate([rows.addresses for rows in found])[order],
                np.concatenate([rows.sizes for rows in found])[order],
            )
        if first_fault.error is None:
            return rows
        count = int(np.searchsorted(rows.tokens, first_fault.token))
        return _Rows(rows.tokens[:count], rows.addresses[:count], rows.sizes[:count])

    def _rows_of(self, entry: int, tokens: Tokens, first_fault: FirstFault) -> _Rows:
        get = self.microcode.records[f"row{entry}"]
        hits = (tokens.events & np.uint32(get["events"])).nonzero()[0]
        if self.rows_in_reach[entry]:
            index = tokens.values[get["index_export"]][hits].view(np.uint32)
            if not len(index) or np.maximum.reduce(index) < self.rows_in_reach[entry]:
                addresses = index * np.int64(get["pitch"])
                addresses += get["base"]
                length = get["length"]
                return _Rows(hits, addresses, np.full(len(hits), length, np.int64), length)

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
        return _Rows(hits, addresses, sizes)

    def _rows_in_reach(self, entry: int) -> int:
        """Return how many rows of an entry can be read for certain, where that is known at once."""
        get = self.microcode.records[f"row{entry}"]
        sources = (get[f"{name}_source"] for name in ("rows", "pitch", "length", "base"))
        pitch, length = get["pitch"], get["length"]
        is_plain = all(source == Source.IMMEDIATE for source in sources)
        if not is_plain or get["offset_enable"] or not 0 < length <= pitch:
            return 0
        end = get["base"] + get["region_bytes"]
        if pitch % self.bus_bytes or end > 1 << self.address_width_bits:
            return 0
        if self.memory.window(get["base"], get["region_bytes"]) is None:
            return 0
        within = (get["region_bytes"] - length) // pitch + 1
        return max(0, min(get["rows"], within))

    def _is_illegal(self, name: str, value: NDArray[np.int64] | int) -> NDArray[np.bool_]:
        """Tell whether an exported value is too wide for the field it stands in for."""
        width_bits = layouts(self.microcode.config)["row0"].field(name).width_bits
        return (np.asarray(value) >> width_bits) != 0
