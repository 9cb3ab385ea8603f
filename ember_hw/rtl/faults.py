"""Fault reports on their way from the blocks to the control."""

from __future__ import annotations

from amaranth.hdl import Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.layouts import fault_layout


class FaultSignature(wiring.Signature):
    """A fault report: counts where `valid` is high; the first one of a program is kept."""

    def __init__(self, config: AcceleratorConfig):
        self.config = config
        super().__init__({"valid": Out(1), "payload": Out(fault_layout(config))})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FaultSignature) and self.config == other.config


def first_fault(merged, faults) -> list:
    """Return the statements by which one report follows several; the first listed wins."""
    valid = 0
    payload = faults[-1].payload.as_value()
    for fault in reversed(faults):
        payload = Mux(fault.valid, fault.payload.as_value(), payload)
        valid = valid | fault.valid
    return [merged.valid.eq(valid), merged.payload.eq(payload)]
