"""Selecting values by slot number, as `ember_hw.isa` numbers them."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, signed

from ember_hw.config import VALUE_WIDTH_BITS, AcceleratorConfig


def inherited_slot(index: int, config: AcceleratorConfig) -> int:
    """Return the slot number of an inherited value."""
    return 2 + config.streams_per_unit + index


def select(m: Module, name: str, slot, choices: dict[int, object]) -> Signal:
    """Return a signal that follows the value `slot` selects; 0 where it selects no choice."""
    chosen = Signal(signed(VALUE_WIDTH_BITS), name=name)
    with m.Switch(slot):
        for number, value in choices.items():
            with m.Case(number):
                m.d.comb += chosen.eq(value)
    return chosen


def inherited(values, config: AcceleratorConfig) -> dict[int, object]:
    """Return the choices that the exports of the unit above offer."""
    return {inherited_slot(i, config): values[i] for i in range(config.exports)}
