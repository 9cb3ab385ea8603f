"""Sends answers as frames."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.wiring import In, Out

from ember_hw.boards.links.frame import (
    CRC_BYTES,
    ESCAPE,
    ESCAPE_XOR,
    FLAG,
    HEADER,
    HEADER_BYTES,
    MAX_DATA_BYTES,
    WINDOW_FRAMES,
)
from ember_hw.boards.links.ports import byte_stream

#: The header's fields, one behind the other.
HEADER_LAYOUT = data.StructLayout({name: 8 * size for name, size, _ in HEADER})
#: An answer: its header, and which of the kept answers has its data.
ANSWER_LAYOUT = data.StructLayout({"header": HEADER_LAYOUT, "slot": range(WINDOW_FRAMES)})


class _Part(enum.Enum):
    """What is sent."""

    NOTHING = 0
    FIRST_FLAG = 1
    HEADER = 2
    DATA = 3
    CRC = 4
    LAST_FLAG = 5


class FrameSender(wiring.Component):
    """Sends a byte a cycle, or waits for `o`; the bytes of the data are read as they are sent.

    Members
    -------
    i : stream
        What to send next. Taken when nothing is being sent.
    busy, slot : out
        An answer is being sent, and which slot has its data.
    read_address : out, read_data : in
        Byte of the kept answers, slot by slot; the data comes a cycle after its address.
    o : stream
        Bytes of the channel.
    """

    def __init__(self):
        super().__init__(
            {
                "i": In(stream.Signature(ANSWER_LAYOUT)),
                "busy": Out(1),
                "slot": Out(range(WINDOW_FRAMES)),
                "read_address": Out(range(WINDOW_FRAMES * MAX_DATA_BYTES)),
                "read_data": In(8),
                "o": Out(byte_stream()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = crc = CRC32_ISO_HDLC(data_width=8).create()
        part = Signal(_Part)
        answer = Signal(ANSWER_LAYOUT)
        position = Signal(range(MAX_DATA_BYTES + 1))
        next_position = Signal.like(position)
        byte = Signal(8)
        is_flag = Signal()
        is_special = Signal()
        escaped = Signal()  # the escape of this byte has been sent
        takes = Signal()  # the byte is sent

        m.d.comb += [
            self.i.ready.eq(part == _Part.NOTHING),
            self.busy.eq(part != _Part.NOTHING),
            self.slot.eq(answer.slot),
            is_flag.eq((part == _Part.FIRST_FLAG) | (part == _Part.LAST_FLAG)),
            is_special.eq(((byte == FLAG) | (byte == ESCAPE)) & ~is_flag),
            self.o.valid.eq(self.busy),
            self.o.payload.eq(Mux(is_special, Mux(escaped, byte ^ ESCAPE_XOR, ESCAPE), byte)),
            takes.eq(self.o.valid & self.o.ready & (~is_special | escaped)),
            crc.data.eq(byte),
            crc.start.eq(part == _Part.FIRST_FLAG),
            next_position.eq(position + takes),
            self.read_address.eq(answer.slot * MAX_DATA_BYTES + next_position),
        ]
        m.d.sync += position.eq(next_position)
        with m.If(self.o.ready):
            m.d.sync += escaped.eq(is_special & ~escaped & self.o.valid)

        def go_on(last, following: _Part) -> None:
            with m.If(takes & last):
                m.d.sync += part.eq(following)
                m.d.comb += next_position.eq(0)

        with m.Switch(part):
            with m.Case(_Part.NOTHING):
                m.d.sync += answer.eq(self.i.payload)
                with m.If(self.i.valid):
                    m.d.sync += part.eq(_Part.FIRST_FLAG)
            with m.Case(_Part.FIRST_FLAG):
                m.d.comb += byte.eq(FLAG)
                go_on(1, _Part.HEADER)
            with m.Case(_Part.HEADER):
                m.d.comb += [
                    byte.eq(answer.header.as_value().word_select(position[:3], 8)),
                    crc.valid.eq(takes),
                ]
                last = position == HEADER_BYTES - 1
                go_on(last & (answer.header.length != 0), _Part.DATA)
                go_on(last & (answer.header.length == 0), _Part.CRC)
            with m.Case(_Part.DATA):
                m.d.comb += [byte.eq(self.read_data), crc.valid.eq(takes)]
                go_on(position == answer.header.length - 1, _Part.CRC)
            with m.Case(_Part.CRC):
                m.d.comb += byte.eq(crc.crc.word_select(position[:2], 8))
                go_on(position == CRC_BYTES - 1, _Part.LAST_FLAG)
            with m.Case(_Part.LAST_FLAG):
                m.d.comb += byte.eq(FLAG)
                go_on(1, _Part.NOTHING)
        return m
