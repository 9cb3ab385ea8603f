"""Finds frames in the bytes of a channel, and hands on those without an error."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ember_hw.boards.links.frame import (
    CRC_BYTES,
    ESCAPE,
    ESCAPE_XOR,
    FLAG,
    HEADER_BYTES,
    MAX_FRAME_BYTES,
    WINDOW_FRAMES,
)
from ember_hw.boards.links.ports import byte_stream
from ember_hw.rtl.fifos import NO_BYPASS

#: Bytes that wait for execution: all requests that the host may have open.
STORED_BYTES = 1 << (WINDOW_FRAMES * MAX_FRAME_BYTES - 1).bit_length()
#: Where the header has the length.
_LENGTH_AT = HEADER_BYTES - 2


class FrameReceiver(wiring.Component):
    """Takes a byte a cycle; a frame's bytes come out only once its CRC and its length were right.

    Members
    -------
    i : stream
        Bytes of the channel. Always taken.
    o : stream
        Header and payload of good frames, one behind the other, without their CRC: the length in
        the header tells where the next begins.
    good, bad, overrun : out
        Strobes at a frame's end: it is handed on; it was wrong; there was no room for it.
    """

    def __init__(self):
        super().__init__(
            {
                "i": In(byte_stream()),
                "o": Out(byte_stream()),
                "good": Out(1),
                "bad": Out(1),
                "overrun": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = crc = CRC32_ISO_HDLC(data_width=8).create()
        m.submodules.memory = memory = Memory(shape=8, depth=STORED_BYTES, init=[], attrs=NO_BYPASS)
        write, read = memory.write_port(), memory.read_port()

        # Pointers have one bit more than the address, to tell a full memory from an empty one.
        written = Signal(range(2 * STORED_BYTES))
        committed = Signal.like(written)
        taken = Signal.like(written)
        count = Signal(range(MAX_FRAME_BYTES + 1))
        length = Signal(16)
        escaped = Signal()
        broken = Signal()
        lost = Signal()

        is_flag, is_body, is_good, room = Signal(), Signal(), Signal(), Signal()
        byte = Signal(8)
        m.d.comb += [
            self.i.ready.eq(1),
            is_flag.eq(self.i.valid & (self.i.payload == FLAG)),
            is_body.eq(self.i.valid & (self.i.payload != FLAG) & (self.i.payload != ESCAPE)),
            byte.eq(self.i.payload ^ (escaped << ESCAPE_XOR.bit_length() - 1)),
            room.eq(written != taken ^ STORED_BYTES),  # all but the topmost bit alike: full
            crc.data.eq(byte),
            crc.valid.eq(is_body),
            crc.start.eq(is_flag),
            is_good.eq(
                crc.match_detected
                & ~broken
                & ~escaped
                & (count >= HEADER_BYTES + CRC_BYTES)
                & (count == length + HEADER_BYTES + CRC_BYTES)
            ),
            write.addr.eq(written),
            write.data.eq(byte),
            write.en.eq(is_body & room),
        ]
        with m.If(is_body):
            m.d.sync += [escaped.eq(0), count.eq(count + 1)]
            for half in range(2):
                with m.If(count == _LENGTH_AT + half):
                    m.d.sync += length[8 * half : 8 * half + 8].eq(byte)
            with m.If(count == MAX_FRAME_BYTES):
                m.d.sync += [broken.eq(1), count.eq(count)]
            with m.If(room):
                m.d.sync += written.eq(written + 1)
            with m.Else():
                m.d.sync += lost.eq(1)
        with m.Elif(is_flag):
            m.d.sync += [count.eq(0), escaped.eq(0), broken.eq(0), lost.eq(0)]
            with m.If(is_good & ~lost):
                m.d.comb += self.good.eq(1)
                m.d.sync += [committed.eq(written - CRC_BYTES), written.eq(written - CRC_BYTES)]
            with m.Else():
                m.d.sync += written.eq(committed)
                m.d.comb += [
                    self.overrun.eq(is_good & lost),
                    self.bad.eq(~is_good & ((count != 0) | escaped)),
                ]
        with m.Elif(self.i.valid):
            m.d.sync += [escaped.eq(1), broken.eq(broken | escaped)]

        pop = Signal()
        m.d.comb += [
            pop.eq((committed != taken) & (~self.o.valid | self.o.ready)),
            read.addr.eq(taken),
            read.en.eq(pop),
            self.o.payload.eq(read.data),
        ]
        with m.If(pop):
            m.d.sync += [taken.eq(taken + 1), self.o.valid.eq(1)]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m
