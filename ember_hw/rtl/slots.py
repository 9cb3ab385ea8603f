"""Selecting one of several values by number."""

from __future__ import annotations

from amaranth.hdl import Mux, Value


def select(number, values) -> Value:
    """Return the value of that number, as a balanced tree of two-way multiplexers.

    FPGAs join the levels of such a tree in pairs, which they don't for a chain of compares. Numbers
    beyond the last value select any of them.
    """
    values = list(values)
    number = Value.cast(number)
    for bit in range((len(values) - 1).bit_length()):
        values = [
            Mux(number[bit], values[i + 1], values[i]) if i + 1 < len(values) else values[i]
            for i in range(0, len(values), 2)
        ]
    return values[0]
