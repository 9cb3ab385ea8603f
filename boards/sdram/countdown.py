"""A limit between two commands: a signal that is high again so many clocks after an event."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Signal, Value


def clock_ahead(clocks: int) -> int:
    """Return a limit for `countdown` whose result is registered before it allows a command."""
    return max(1, clocks - 1)


def countdown(m: Module, start: Value, clocks: int, name: str) -> Value:
    """Return a signal that is low from the clock after `start` to `clocks` - 1 clocks after it.

    A command that waits for it comes `clocks` clocks after the event or later. Another `start`
    begins anew.

    Parameters
    ----------
    m : Module
        Holds the counter.
    start : Value
        High for one clock.
    clocks : int
        At least 1; 1 needs no counter.
    name : str
        Of the signal.
    """
    if clocks < 1:
        raise ValueError(f"clocks of {name} must be at least 1, not {clocks!r}")
    if clocks == 1:
        return Const(1)
    over = Signal(init=1, name=f"{name}_over")
    left = Signal(range(max(2, clocks - 1)), name=f"{name}_left")
    with m.If(start):
        m.d.sync += [left.eq(clocks - 2), over.eq(0)]
    with m.Elif(~over):
        m.d.sync += [left.eq(left - 1), over.eq(left == 0)]
    return over
