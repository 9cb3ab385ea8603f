"""Places of a buffer, reserved a burst at a time and given back a beat at a time."""

from __future__ import annotations

from amaranth.hdl import Assert, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


def add(a: Value, b: Value, carry) -> Value:
    """Return a + b + carry, as one adder: the carry comes from a bit below."""
    return Value.cast((Cat(1, a) + Cat(carry, b))[1:])


def check(places: int, burst_beats: int) -> None:
    """Check the size of a buffer and of its longest burst.

    Raises
    ------
    ValueError
        A buffer is not a power of two, or the burst does not fit in it.
    """
    if places < 2 or places & (places - 1):
        raise ValueError(f"places must be a power of two, 2 or more, not {places!r}")
    if not 1 <= burst_beats <= places:
        raise ValueError(f"burst_beats must be from 1 to {places}, not {burst_beats!r}")


class Credits(wiring.Component):
    """Counts used places: from 0 to `places`, whatever comes.

    Parameters
    ----------
    places : int
        A power of two, 2 or more.
    burst_beats : int
        Places that are reserved at a time at most.

    Members
    -------
    length : in; fits : out
        Places to reserve, less one, and whether that many are free.
    take : in
        Reserve them; only while `fits`.
    give : in
        One place is free again; only while one is used.
    used : out
    """

    def __init__(self, *, places: int, burst_beats: int):
        check(places, burst_beats)
        self.places = places
        self.burst_beats = burst_beats
        super().__init__(
            {
                "length": In(range(max(2, burst_beats))),
                "fits": Out(1),
                "take": In(1),
                "give": In(1),
                "used": Out(range(places + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        change = Signal.like(self.used)
        m.d.comb += [
            self.fits.eq(~(self.used + self.length)[len(self.used) - 1]),
            # The burst's places less one, which is right if a place is given back as well.
            change.eq(Mux(self.take, self.length, self.give.replicate(len(self.used)))),
        ]
        m.d.sync += [
            self.used.eq(add(self.used, change, self.take & ~self.give)),
            Assert(~(self.take & ~self.fits)),
            Assert(~(self.give & (self.used == 0))),
        ]
        return m
