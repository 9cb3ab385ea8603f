"""Addresses of rows, with every check that keeps them inside their table and region."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import LINE_BYTES, VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.registers import NO_UNIT, FaultCode
from ember_hw.rtl.delay import held
from ember_hw.rtl.faults import FaultSignature
from ember_hw.rtl.fifos import ReservedFifo
from ember_hw.rtl.issue import row_order_layout
from ember_hw.rtl.layouts import descriptor_layout, record_layout
from ember_hw.rtl.multiplier import Multiplier
from ember_hw.rtl.slots import select, select_registered

_LENGTH_BITS = 17
# Pitches are multiples of the narrowest bus, so that the rest is one digit of the multiplier.
_PITCH_SHIFT = 3


class RowAddress(wiring.Component):
    """Turns each row that was issued into a descriptor for the gather engine.

    One row a cycle, in order, six cycles; a descriptor has a place before its row is taken. A row
    is dropped, its place with it, and reported, by its index, if the index is not below the number
    of rows, if an export doesn't fit the field it stands in for, if base, pitch or offset is not a
    multiple of the bus width, if the part to fetch is empty or begins outside the row, if the row
    is longer than the pitch, or if it ends beyond its region. So nothing outside a region is ever
    asked for.

    Members
    -------
    entry : out; record : in
        The row entry whose microcode record is wanted; the record, in the same cycle.
    row : stream, in
    descriptor : stream, out
    asked, bytes_asked : out
        Strobe of each row entry, and the row's length.
    fault : out
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "entry": Out(range(config.row_entries)),
                "record": In(record_layout("row0", config)),
                "row": In(stream.Signature(row_order_layout(config))),
                "descriptor": Out(stream.Signature(descriptor_layout(config))),
                "asked": Out(config.row_entries),
                "bytes_asked": Out(_LENGTH_BITS),
                "fault": Out(FaultSignature(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        address_bits = config.address_width_bits
        m.submodules.queue = queue = ReservedFifo(
            shape=descriptor_layout(config), credits=config.descriptor_entries
        )
        wiring.connect(m, queue.o, wiring.flipped(self.descriptor))
        accept = Signal()
        m.d.comb += [
            accept.eq(self.row.valid & queue.room),
            self.row.ready.eq(queue.room),
            queue.take.eq(accept),
            self.entry.eq(self.row.payload.entry),
        ]

        # 1, 2: the values.
        record, exports = self.record, self.row.payload.exports
        line_shift = (LINE_BYTES - 1).bit_length()
        beat_bits = (config.bus_bytes - 1).bit_length()
        exported = {
            name: select_registered(m, name, getattr(record, f"{name}_export"), exports)
            for name in ("index", "base", "pitch", "length", "rows", "offset")
        }
        fixed = Signal.like(record, reset_less=True)
        m.d.sync += fixed.eq(record)

        def from_slot(name: str):
            return getattr(fixed, f"{name}_source") == isa.Source.SLOT

        def value(name: str):
            """Choose between a field and the export that stands in for it."""
            return Mux(from_slot(name), exported[name], getattr(fixed, name))

        def too_wide(name: str):
            return from_slot(name) & exported[name][len(getattr(fixed, name)) :].any()

        index = Signal(VALUE_WIDTH_BITS, reset_less=True)
        rows = Signal(VALUE_WIDTH_BITS, reset_less=True)
        base = Signal(address_bits, reset_less=True)
        region_bytes = Signal(address_bits, reset_less=True)
        distance = Signal(VALUE_WIDTH_BITS, reset_less=True)  # of the table from the base, in lines
        pitch = Signal(len(record.pitch), reset_less=True)
        length = Signal(_LENGTH_BITS, reset_less=True)
        offset = Signal(_LENGTH_BITS, reset_less=True)
        clip = Signal(_LENGTH_BITS, reset_less=True)
        hint = Signal(isa.Hint, reset_less=True)
        is_part = Signal(reset_less=True)
        misfit = Signal(reset_less=True)  # an export does not fit the field it stands in for
        sizes = range(len(isa.ElementSize))
        part = Signal(VALUE_WIDTH_BITS + sizes[-1])
        m.d.comb += part.eq(
            select(fixed.offset_size, [exported["offset"] << size for size in sizes])
        )
        m.d.sync += [
            index.eq(exported["index"]),
            rows.eq(value("rows")),
            base.eq(fixed.base),
            region_bytes.eq(fixed.region_bytes),
            distance.eq(exported["base"]),
            pitch.eq(value("pitch")),
            length.eq(value("length")),
            offset.eq(part),
            clip.eq(fixed.clip),
            hint.eq(fixed.hint),
            is_part.eq(fixed.offset_enable),
            misfit.eq(
                too_wide("pitch")
                | too_wide("length")
                | (fixed.offset_enable & part[_LENGTH_BITS:].any())
            ),
        ]
        with m.If(~from_slot("base")):
            m.d.sync += distance.eq(0)
        with m.If(~fixed.offset_enable):
            m.d.sync += [offset.eq(0), clip.eq((1 << _LENGTH_BITS) - 1)]

        # 3, 4: index * pitch; meanwhile what is fetched of the row, its checks, and where it may
        # lie. It ends at its length or at the clip, whichever is first: within the region if either
        # is.
        m.submodules.multiplier = multiplier = Multiplier(
            a=VALUE_WIDTH_BITS, b=len(pitch) - _PITCH_SHIFT
        )
        m.d.comb += [multiplier.a.eq(index), multiplier.b.eq(pitch[_PITCH_SHIFT:])]
        index_good = Signal(reset_less=True)
        row_good = Signal(reset_less=True)
        region_good = Signal(reset_less=True)
        table = distance << line_shift
        near = Signal(
            VALUE_WIDTH_BITS + line_shift + 1, reset_less=True
        )  # from the base, without index * pitch
        clip_end = Signal.like(near, reset_less=True)
        before_length = Signal(
            signed(address_bits + 1), reset_less=True
        )  # where a row of that length may begin
        region_held = Signal.like(region_bytes, reset_less=True)
        base_held = Signal.like(base, reset_less=True)
        length_held = Signal.like(length, reset_less=True)
        room_left = Signal(_LENGTH_BITS, reset_less=True)
        region_end = Signal(address_bits + 1)
        m.d.comb += region_end.eq(base + region_bytes)
        m.d.sync += [
            index_good.eq(index < rows),
            row_good.eq(
                ~misfit
                & (offset < clip)
                & length.any()
                & ~(pitch | offset | base)[:beat_bits].any()
                & (Mux(is_part, clip, length) <= pitch)
            ),
            region_good.eq(region_end <= 1 << address_bits),
            near.eq(table + offset),
            clip_end.eq(table + clip),
            before_length.eq(region_bytes - length),
            region_held.eq(region_bytes),
            base_held.eq(base),
            length_held.eq(length),
            room_left.eq(clip - offset),
        ]
        bytes4 = Signal(_LENGTH_BITS, reset_less=True)
        good4 = Signal(3, reset_less=True)
        begin = Signal(address_bits, reset_less=True)
        # Products up to which the row ends within the region.
        most = Signal(data.ArrayLayout(signed(len(near) + 2), 2), reset_less=True)
        m.d.sync += [
            bytes4.eq(Mux(room_left < length_held, room_left, length_held)),
            good4.eq(Cat(index_good, row_good, region_good)),
            begin.eq(base_held + near),
            most[0].eq(before_length - near),
            most[1].eq(region_held - clip_end),
        ]

        # 5: the address, and whether all of the row is in the region.
        delayed_index, delayed_entry, delayed_hint = (
            _delayed(m, name, signal, cycles)
            for name, signal, cycles in (
                ("index", index, 3),
                ("entry", self.entry, 5),
                ("hint", hint, 3),
            )
        )
        valid = Signal(4)
        leaves = Signal()
        address = Signal(address_bits, reset_less=True)
        inside = Signal(reset_less=True)
        bytes5 = Signal(_LENGTH_BITS, reset_less=True)
        last_byte = Signal(_LENGTH_BITS, reset_less=True)
        good5 = Signal(3, reset_less=True)
        product = multiplier.product << _PITCH_SHIFT
        m.d.sync += [
            valid.eq(Cat(accept, valid)),
            leaves.eq(valid[-1]),
            address.eq(begin + product),
            inside.eq(
                ~product[address_bits:].any()
                & Cat(
                    (limit >= 0) & (product[:address_bits] <= limit[:address_bits])
                    for limit in most
                ).any()
            ),
            bytes5.eq(bytes4),
            last_byte.eq(bytes4 - 1),
            good5.eq(good4),
        ]

        good = Signal()
        m.d.comb += [
            good.eq(inside & good5.all()),
            queue.push.eq(leaves & good),
            queue.payload.address.eq(address),
            queue.payload.last_byte.eq(last_byte),
            queue.payload.hint.eq(delayed_hint),
            queue.payload.entry.eq(delayed_entry),
            self.asked.eq((leaves & good) << delayed_entry),
            self.bytes_asked.eq(bytes5),
        ]
        index_good5, _, region_good5 = good5
        m.d.sync += [
            self.fault.valid.eq(leaves & ~good),
            self.fault.payload.code.eq(
                Mux(
                    ~index_good5,
                    FaultCode.INDEX_OUT_OF_RANGE,
                    Mux(region_good5, FaultCode.ROW_OUT_OF_BOUNDS, FaultCode.ADDRESS_OVERFLOW),
                )
            ),
            self.fault.payload.unit.eq(NO_UNIT),
            self.fault.payload.stream.eq(delayed_entry),
            self.fault.payload.address.eq(delayed_index),
        ]
        return m


def _delayed(m: Module, name: str, signal, cycles: int):
    """Return a signal as it was some cycles ago."""
    for i in range(cycles):
        signal = held(m, f"{name}_delayed{i}", signal)
    return signal
