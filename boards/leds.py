"""What LEDs of a board say: whether its programs end, and whether it lives."""

from __future__ import annotations

from amaranth.hdl import Module, Signal

__all__ = ["signs_of_life"]


def signs_of_life(m: Module, *, clock_hz: int, irq) -> tuple[Signal, Signal]:
    """Return what two LEDs show.

    Parameters
    ----------
    m : Module
        The board's, which gets the logic.
    clock_hz : int
        Of `sync`.
    irq : Signal
        Strobe: a program has ended.

    Returns
    -------
    toggled, blinks : Signal
        What turns over when a program ends; half a second on, half a second off.
    """
    toggled, blinks = Signal(), Signal()
    half_second = clock_hz // 2
    count = Signal(range(half_second))
    with m.If(irq):
        m.d.sync += toggled.eq(~toggled)
    with m.If(count == half_second - 1):
        m.d.sync += [count.eq(0), blinks.eq(~blinks)]
    with m.Else():
        m.d.sync += count.eq(count + 1)
    return toggled, blinks
