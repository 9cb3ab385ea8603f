"""A UART: eight bits, no parity, one stop bit, no flow control."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.links.ports import byte_stream

#: Rate of every board's UART: the fastest of the FTDI chips.
BAUD = 3_000_000

#: Fewest clock cycles of a bit: the line is looked at through two registers.
LEAST_CYCLES_A_BIT = 4
_PHASE_BITS = 24


class Uart(wiring.Component):
    """Bytes over two wires.

    Bits are timed by an accumulator, so a rate needn't divide the clock: the edges that are sent
    lie within a cycle of where they should be. A byte in which the stop bit is low is dropped.

    Parameters
    ----------
    clock_hz : int
        Of the domain `sync`.
    baud : int
        Bits a second, at most a quarter of the clock.

    Members
    -------
    rx : in, tx : out
        Pins; `rx` is asynchronous.
    i : stream
        Bytes to send, one every ten bits.
    o : stream
        Bytes received. There is no way to hold the other side back: a byte that isn't taken before
        the next is complete is lost.
    """

    def __init__(self, *, clock_hz: int, baud: int):
        if not 0 < baud * LEAST_CYCLES_A_BIT <= clock_hz:
            raise ValueError(
                f"baud must be from 1 to {clock_hz // LEAST_CYCLES_A_BIT}, a quarter of the clock, "
                f"not {baud!r}"
            )
        self.clock_hz = clock_hz
        self.baud = baud
        super().__init__(
            {
                "rx": In(1, init=1),
                "tx": Out(1, init=1),
                "i": In(byte_stream()),
                "o": Out(byte_stream()),
            }
        )

    @property
    def step(self) -> int:
        """What the phase, a fraction of a bit, gains in a cycle."""
        return round((self.baud << _PHASE_BITS) / self.clock_hz)

    def elaborate(self, platform):
        m = Module()
        self._send(m)
        self._receive(m)
        return m

    def _send(self, m: Module) -> None:
        left = Signal(range(11))  # bits to send, the one on the wire included
        bits = Signal(9)
        phase = Signal(_PHASE_BITS + 1)  # the top bit: a bit's time is over
        m.d.comb += self.i.ready.eq(left == 0)
        with m.If(left == 0):
            m.d.sync += phase.eq(self.step)
            with m.If(self.i.valid):
                m.d.sync += [left.eq(10), bits.eq(self.i.payload | 1 << 8), self.tx.eq(0)]
        with m.Else():
            m.d.sync += phase.eq(phase[:_PHASE_BITS] + self.step)
            with m.If(phase[_PHASE_BITS]):
                m.d.sync += [left.eq(left - 1), self.tx.eq(bits[0]), bits.eq(bits >> 1 | 1 << 8)]

    def _receive(self, m: Module) -> None:
        first = Signal(init=1)
        line = Signal(init=1)
        before = Signal(init=1)
        left = Signal(range(11))  # bits to look at
        bits = Signal(8)
        phase = Signal(_PHASE_BITS + 1)
        m.d.sync += [first.eq(self.rx), line.eq(first), before.eq(line)]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(left == 0):
            # Half a bit less the cycle that has passed since the edge was seen.
            m.d.sync += phase.eq((1 << _PHASE_BITS - 1) + 2 * self.step)
            with m.If(before & ~line):
                m.d.sync += left.eq(10)
        with m.Else():
            m.d.sync += phase.eq(phase[:_PHASE_BITS] + self.step)
            with m.If(phase[_PHASE_BITS]):
                m.d.sync += left.eq(left - 1)
                with m.If((left == 10) & line):
                    m.d.sync += left.eq(0)  # a spike, no start bit
                with m.Elif(left == 1):
                    with m.If(line & (~self.o.valid | self.o.ready)):
                        m.d.sync += [self.o.payload.eq(bits), self.o.valid.eq(1)]
                with m.Else():
                    m.d.sync += bits.eq(line << 7 | bits >> 1)
