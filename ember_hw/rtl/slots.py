"""Selecting one of several values by number."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value


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


def select_registered(m: Module, name: str, number, values) -> Value:
    """Return, a cycle later, the value of that number; 0 where there is none.

    Each value has a register that is reset where another one is wanted, and the registers are
    or-ed: one LUT a bit for four values, where a tree takes three. The reset is the registers' own.
    """
    registers = []
    for i, value in enumerate(values):
        held = Signal(len(value), name=f"{name}_choice{i}", reset_less=True)
        m.d.sync += held.eq(value)
        with m.If(number != i):
            m.d.sync += held.eq(0)
        registers.append(held)
    result = registers[0]
    for held in registers[1:]:
        result = result | held
    return result
