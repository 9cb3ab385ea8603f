"""Registers that carry a payload along a pipeline that does not stall."""

from __future__ import annotations

from amaranth.hdl import Module, Signal


def held(m: Module, name: str, value) -> Signal:
    """Return a value one cycle later, without a reset."""
    register = Signal(value.shape(), name=name, reset_less=True)
    m.d.sync += register.eq(value)
    return register


def delay(m: Module, name: str, valid, payload, cycles: int) -> tuple[list[Signal], list]:
    """Return a payload and its valid bit one, two, .. `cycles` cycles later."""
    valids, payloads = [], []
    for i in range(cycles):
        valid_held = Signal(name=f"{name}_valid{i}")
        payload_held = Signal(payload.shape(), name=f"{name}{i}", reset_less=True)
        m.d.sync += [valid_held.eq(valid), payload_held.eq(payload)]
        valids.append(valid_held)
        payloads.append(payload_held)
        valid, payload = valid_held, payload_held
    return valids, payloads
