"""Engines whose answers are bytes that are there already, or come of themselves."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from ember_hw.boards.links.engine import EngineSignature
from ember_hw.boards.links.frame import ErrorCount, Status
from ember_hw.boards.links.ports import byte_stream

#: Most bytes of a description.
MOST_DESCRIPTION_BYTES = 4096


class DescriptionEngine(wiring.Component):
    """Reads the description that the gateware was built with; behind its end are zeros.

    Parameters
    ----------
    description : bytes
        Head and JSON.
    """

    def __init__(self, *, description: bytes):
        if not 1 <= len(description) <= MOST_DESCRIPTION_BYTES:
            raise ValueError(
                f"description must be 1 to {MOST_DESCRIPTION_BYTES} bytes, not {len(description)}"
            )
        self.description = description
        super().__init__({"engine": In(EngineSignature())})

    def elaborate(self, platform):
        m = Module()
        engine = self.engine
        depth = 1 << (len(self.description) - 1).bit_length()
        m.submodules.memory = memory = Memory(shape=8, depth=depth, init=self.description)
        read = memory.read_port()
        at, left = Signal.like(engine.address), Signal.like(engine.count)
        is_inside = Signal()
        m.d.comb += [
            read.addr.eq(at),
            engine.o.payload.eq(read.data & is_inside.replicate(8)),
            engine.status.eq(Status.OK),
        ]
        with m.FSM(name="work"):
            with m.State("REST"):
                m.d.sync += [at.eq(engine.address), left.eq(engine.count)]
                with m.If(engine.start):
                    m.next = "READ"
            with m.State("READ"):
                m.d.sync += is_inside.eq(at < depth)
                m.next = "DELIVER"
                with m.If(left == 0):
                    m.d.comb += engine.done.eq(1)
                    m.next = "REST"
            with m.State("DELIVER"):
                m.d.comb += engine.o.valid.eq(1)
                with m.If(engine.o.ready):
                    m.d.sync += [at.eq(at + 1), left.eq(left - 1)]
                    m.next = "READ"
        return m


class ErrorEngine(wiring.Component):
    """Counts the receiver's and the executor's strobes, and delivers all counts.

    Members
    -------
    engine : EngineSignature
    strobes : in
        One bit for each `ErrorCount`.
    """

    def __init__(self):
        super().__init__({"engine": In(EngineSignature()), "strobes": In(len(ErrorCount))})

    def elaborate(self, platform):
        m = Module()
        engine = self.engine
        counts = [Signal(32, name=kind.name.lower()) for kind in ErrorCount]
        for strobe, count in zip(self.strobes, counts, strict=True):
            m.d.sync += count.eq(count + strobe)
        held = Signal(32 * len(counts))
        left = Signal(range(4 * len(counts) + 1))
        busy = Signal()
        m.d.comb += [
            engine.o.valid.eq(left != 0),
            engine.o.payload.eq(held[:8]),
            engine.done.eq(busy & (left == 0)),
            engine.status.eq(Status.OK),
        ]
        with m.If(engine.start):
            m.d.sync += [busy.eq(1), held.eq(Cat(counts)), left.eq(4 * len(counts))]
        with m.Elif(engine.done):
            m.d.sync += busy.eq(0)
        with m.Elif(engine.o.valid & engine.o.ready):
            m.d.sync += [held.eq(held >> 8), left.eq(left - 1)]
        return m


class DrainEngine(wiring.Component):
    """Takes bytes of the queues until as many as asked for have come, or none for a while.

    Parameters
    ----------
    patience_cycles : int
        The while, 1 or more.

    Members
    -------
    engine : EngineSignature
    queue : stream
        Bytes of the queues.
    """

    def __init__(self, *, patience_cycles: int):
        if patience_cycles < 1:
            raise ValueError(f"patience_cycles must be at least 1, not {patience_cycles!r}")
        self.patience_cycles = patience_cycles
        super().__init__({"engine": In(EngineSignature()), "queue": In(byte_stream())})

    def elaborate(self, platform):
        m = Module()
        engine, queue = self.engine, self.queue
        left = Signal.like(engine.count)
        waited = Signal(range(self.patience_cycles + 1))
        busy = Signal()
        goes = Signal()
        m.d.comb += [
            goes.eq(busy & (left != 0)),
            engine.o.payload.eq(queue.payload),
            engine.o.valid.eq(goes & queue.valid),
            queue.ready.eq(goes & engine.o.ready),
            engine.done.eq(busy & ((left == 0) | (waited == self.patience_cycles))),
            engine.status.eq(Status.OK),
        ]
        with m.If(engine.start):
            m.d.sync += [busy.eq(1), left.eq(engine.count), waited.eq(0)]
        with m.Elif(engine.o.valid & engine.o.ready):
            m.d.sync += [left.eq(left - 1), waited.eq(0)]
        with m.Elif(goes & ~queue.valid):
            m.d.sync += waited.eq(waited + 1)
        with m.If(engine.done):
            m.d.sync += busy.eq(0)
        return m
