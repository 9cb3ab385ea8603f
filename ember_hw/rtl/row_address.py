"""Addresses of rows, with every check that keeps them inside their table."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import LINE_BYTES, VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.registers import NO_UNIT, FaultCode
from ember_hw.rtl.control import FaultSignature
from ember_hw.rtl.fifos import ReservedFifo
from ember_hw.rtl.issue import row_order_layout
from ember_hw.rtl.layouts import descriptor_layout, record_layout
from ember_hw.rtl.multiplier import CYCLES as MULTIPLIER_CYCLES
from ember_hw.rtl.multiplier import Multiplier

# Entry, values, and the multiplication; the address comes a cycle later.
_STAGES = 2 + MULTIPLIER_CYCLES

_LENGTH_BITS = 17
_OFFSET_BITS = VALUE_WIDTH_BITS + 16


class RowAddress(wiring.Component):
    """Turns each row that was issued into a descriptor for the gather engine.

    One row a cycle, in order; a descriptor has a place before its row is taken. A row is dropped
    and reported, by its index, if the index is not below the number of rows, if an export doesn't
    fit the field it stands in for, if base, pitch or offset is not a multiple of the bus width, if
    the part to fetch is empty or begins outside the row, or if the row is longer than the pitch. So
    nothing outside a table is ever asked for.

    Members
    -------
    rows : in
        Microcode records of the row entries.
    row : stream, in
    descriptor : stream, out
    rows_asked, bytes_asked : out
        Strobe for each descriptor, and its length.
    fault : out
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "rows": In(record_layout("row0", config)).array(config.row_entries),
                "row": In(stream.Signature(row_order_layout(config))),
                "descriptor": Out(stream.Signature(descriptor_layout(config))),
                "rows_asked": Out(1),
                "bytes_asked": Out(_LENGTH_BITS),
                "fault": Out(FaultSignature(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.queue = queue = ReservedFifo(
            shape=descriptor_layout(config), credits=config.descriptor_entries
        )
        wiring.connect(m, queue.o, wiring.flipped(self.descriptor))
        accept = Signal()
        m.d.comb += [
            accept.eq(self.row.valid & queue.room),
            self.row.ready.eq(queue.room),
            queue.take.eq(accept),
        ]

        # 1: the row entry's record and the exports.
        valid = [Signal(name=f"valid{i}") for i in range(_STAGES)]
        entries = [Signal(range(config.row_entries), name=f"entry{i}") for i in range(_STAGES)]
        record = Signal(record_layout("row0", config))
        exports = Signal.like(self.row.payload.exports)
        m.d.sync += [
            valid[0].eq(accept),
            entries[0].eq(self.row.payload.entry),
            record.eq(Array(row.as_value() for row in self.rows)[self.row.payload.entry]),
            exports.eq(self.row.payload.exports),
        ]
        for i in range(1, _STAGES):
            m.d.sync += [valid[i].eq(valid[i - 1]), entries[i].eq(entries[i - 1])]

        # 2: the values.
        index = Signal(VALUE_WIDTH_BITS)
        rows = Signal(VALUE_WIDTH_BITS)
        base = Signal(config.address_width_bits)
        pitch = Signal(len(record.pitch))
        length = Signal(_LENGTH_BITS)
        offset = Signal(signed(_OFFSET_BITS))
        clip = Signal(_LENGTH_BITS)
        hint = Signal(isa.Hint)
        is_part = Signal()
        oversized = Signal()  # an export that does not fit the field it stands in for
        beat_bits = (config.bus_bytes - 1).bit_length()

        def value(name: str, immediate):
            """Choose between a field and the export that stands in for it."""
            from_slot = getattr(record, f"{name}_source") == isa.Source.SLOT
            return Mux(from_slot, exports[getattr(record, f"{name}_export")], immediate)

        def too_wide(name: str):
            from_slot = getattr(record, f"{name}_source") == isa.Source.SLOT
            width = len(getattr(record, name))
            return from_slot & exports[getattr(record, f"{name}_export")][width:].any()

        line_shift = (LINE_BYTES - 1).bit_length()
        from_export = exports[record.base_export]
        slot_base = from_export << line_shift
        base_too_wide = (record.base_source == isa.Source.SLOT) & (
            from_export[config.address_width_bits - line_shift :].any()
        )
        m.d.sync += [
            index.eq(exports[record.index_export]),
            rows.eq(value("rows", record.rows)),
            base.eq(Mux(record.base_source == isa.Source.SLOT, slot_base, record.base)),
            pitch.eq(value("pitch", record.pitch)),
            length.eq(value("length", record.length)),
            offset.eq(
                Mux(
                    record.offset_enable,
                    exports[record.offset_export].as_signed() << record.offset_shift,
                    0,
                )
            ),
            clip.eq(Mux(record.offset_enable, record.clip, (1 << _LENGTH_BITS) - 1)),
            hint.eq(record.hint),
            is_part.eq(record.offset_enable),
            oversized.eq(too_wide("pitch") | too_wide("length") | base_too_wide),
        ]

        # 3 and 4: index * pitch; meanwhile the checks and the length.
        m.submodules.multiplier = multiplier = Multiplier(a=VALUE_WIDTH_BITS, b=len(pitch))
        m.d.comb += [multiplier.a.eq(index), multiplier.b.eq(pitch)]
        index_good = Signal()
        part_good = Signal()
        aligned = Signal()
        within_pitch = Signal()
        index_held = Signal.like(index)
        start = Signal(config.address_width_bits)
        room_left = Signal(_LENGTH_BITS)
        length_held = Signal.like(length)
        hint_held = Signal.like(hint)
        m.d.sync += [
            index_good.eq(index < rows),
            part_good.eq(~oversized & (offset >= 0) & (offset < clip) & (length != 0)),
            aligned.eq((pitch | offset | base)[:beat_bits] == 0),
            within_pitch.eq(Mux(is_part, clip, length) <= pitch),
            index_held.eq(index),
            start.eq(base + offset),
            room_left.eq(clip - offset),
            length_held.eq(length),
            hint_held.eq(hint),
        ]
        good = Signal()
        bad_index = Signal()
        blamed = Signal(VALUE_WIDTH_BITS)
        start_held = Signal.like(start)
        bytes_asked = Signal(_LENGTH_BITS)
        hint_last = Signal.like(hint)
        m.d.sync += [
            good.eq(index_good & part_good & aligned & within_pitch),
            bad_index.eq(~index_good),
            blamed.eq(index_held),
            start_held.eq(start),
            bytes_asked.eq(Mux(room_left < length_held, room_left, length_held)),
            hint_last.eq(hint_held),
        ]

        # 5: the address.
        push = Signal()
        descriptor = Signal(descriptor_layout(config))
        m.d.sync += [
            push.eq(valid[-1] & good),
            descriptor.address.eq(start_held + multiplier.product),
            descriptor.length.eq(bytes_asked),
            descriptor.hint.eq(hint_last),
            descriptor.entry.eq(entries[-1]),
            self.fault.valid.eq(valid[-1] & ~good),
            self.fault.payload.code.eq(
                Mux(bad_index, FaultCode.INDEX_OUT_OF_RANGE, FaultCode.ROW_OUT_OF_BOUNDS)
            ),
            self.fault.payload.unit.eq(NO_UNIT),
            self.fault.payload.stream.eq(entries[-1]),
            self.fault.payload.address.eq(blamed),
        ]
        m.d.comb += [
            queue.push.eq(push),
            queue.payload.eq(descriptor),
            self.rows_asked.eq(push),
            self.bytes_asked.eq(descriptor.length),
        ]
        return m
