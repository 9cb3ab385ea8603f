"""The host's reads and writes of memory."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.wiring import In, Out

from ember_hw.boards.links.engine import EngineSignature
from ember_hw.boards.links.frame import ADDRESS_BITS, CRC_BYTES, Status
from ember_hw.boards.links.ports import MemoryAccessSignature

#: Cycles in which memory must have taken and answered an access: a hundred times what the
#: initialisation of an SDRAM takes, and far less than the host's patience.
TIMEOUT_CYCLES = 1 << 20


class MemoryEngine(wiring.Component):
    """Reads, writes or checks whole beats one by one: a byte a cycle, and the memory's time.

    A request ends with the first beat that is answered with an error, or not in time. Of a check
    that ends so there is no sum. An access that was not answered in time stays open, as memory may
    have taken it: requests that come before its answer end at once, and the answer is dropped.

    Parameters
    ----------
    address_bits : int
        Width of memory's byte addresses, at most 40.
    data_bits : int
        Width of a beat: a power of two, 32 or more.
    timeout_cycles : int
        Cycles in which memory must have taken and answered a beat, 1 or more.

    Members
    -------
    engine : EngineSignature
        Addresses and numbers of bytes are multiples of a beat.
    memory : MemoryAccessSignature
        One access at a time.
    """

    def __init__(self, *, address_bits: int, data_bits: int, timeout_cycles: int = TIMEOUT_CYCLES):
        if not 1 <= address_bits <= ADDRESS_BITS:
            raise ValueError(f"address_bits must be from 1 to {ADDRESS_BITS}, not {address_bits!r}")
        if data_bits < 32 or data_bits & (data_bits - 1):
            raise ValueError(f"data_bits must be a power of two, 32 or more, not {data_bits!r}")
        if timeout_cycles < 1:
            raise ValueError(f"timeout_cycles must be at least 1, not {timeout_cycles!r}")
        self.address_bits = address_bits
        self.data_bits = data_bits
        self.timeout_cycles = timeout_cycles
        super().__init__(
            {
                "engine": In(EngineSignature()),
                "memory": Out(
                    MemoryAccessSignature(address_bits=address_bits, data_bits=data_bits)
                ),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = crc = CRC32_ISO_HDLC(data_width=8).create()
        engine, memory = self.engine, self.memory
        beat_bytes = self.data_bits // 8
        address = Signal.like(engine.address)
        left = Signal.like(engine.count)
        beat = Signal(self.data_bits)
        bytes_here = Signal(range(beat_bytes))
        last_byte = Signal()
        moves = Signal()  # a byte in or out
        is_write = Signal()
        asks = Signal()  # memory has not taken the access
        is_open = Signal()  # nor answered it
        waited = Signal(range(self.timeout_cycles))
        m.d.comb += [
            last_byte.eq(bytes_here == beat_bytes - 1),
            memory.request.payload.address.eq(address),
            memory.request.payload.is_write.eq(is_write),
            memory.request.valid.eq(asks),
            memory.request.payload.data.eq(beat),
            crc.data.eq(beat[:8]),
            crc.start.eq(engine.start),
        ]
        with m.If(moves):
            m.d.sync += [
                beat.eq(engine.i.payload << self.data_bits - 8 | beat >> 8),
                bytes_here.eq(bytes_here + 1),
            ]

        with m.If(memory.request.ready):
            m.d.sync += asks.eq(0)
        with m.If(memory.answer_valid):
            m.d.sync += is_open.eq(0)

        def end(status: Status) -> None:
            m.d.comb += [engine.done.eq(1), engine.status.eq(status)]
            m.next = "REST"

        with m.FSM(name="work"):
            with m.State("REST"):
                m.d.sync += [
                    left.eq(Mux(engine.is_write, engine.length, engine.count)),
                    bytes_here.eq(0),
                ]
                with m.If(~is_open):
                    m.d.sync += [address.eq(engine.address), is_write.eq(engine.is_write)]
                with m.If(engine.start):
                    m.next = "BEGIN"
                    with m.If(is_open):
                        m.next = "REFUSE"
            with m.State("REFUSE"):
                end(Status.NO_ANSWER)
            with m.State("BEGIN"):
                with m.If(left == 0):
                    with m.If(engine.is_check):
                        m.next = "SUM"
                    with m.Else():
                        end(Status.OK)
                with m.Elif(address[self.address_bits :].any()):
                    end(Status.NO_MEMORY)
                with m.Elif(is_write):
                    m.next = "COLLECT"
                with m.Else():
                    m.next = "ASK"
            with m.State("COLLECT"):
                m.d.comb += [engine.i.ready.eq(1), moves.eq(engine.i.valid)]
                with m.If(moves & last_byte):
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.sync += [asks.eq(1), is_open.eq(1), waited.eq(0)]
                m.next = "AWAIT"
            with m.State("AWAIT"):
                m.d.sync += waited.eq(waited + 1)
                with m.If(memory.answer_valid):
                    m.d.sync += [
                        beat.eq(memory.answer_data),
                        address.eq(address + beat_bytes),
                        left.eq(left - beat_bytes),
                    ]
                    m.next = "DELIVER"
                    with m.If(memory.answer_error):
                        end(Status.NO_MEMORY)
                    with m.Elif(is_write):
                        m.next = "BEGIN"
                with m.Elif(waited == self.timeout_cycles - 1):
                    end(Status.NO_ANSWER)
            with m.State("DELIVER"):
                m.d.comb += [
                    engine.o.valid.eq(~engine.is_check),
                    engine.o.payload.eq(beat[:8]),
                    moves.eq(engine.is_check | engine.o.ready),
                    crc.valid.eq(moves),
                ]
                with m.If(moves & last_byte):
                    m.next = "BEGIN"
            with m.State("SUM"):
                m.d.comb += [
                    engine.o.valid.eq(1),
                    engine.o.payload.eq(crc.crc.word_select(bytes_here[:2], 8)),
                ]
                with m.If(engine.o.ready):
                    m.d.sync += bytes_here.eq(bytes_here + 1)
                    with m.If(bytes_here[:2] == CRC_BYTES - 1):
                        m.next = "SUMMED"
            with m.State("SUMMED"):
                end(Status.OK)
        return m
