"""The access unit with flat ports, and its place in a larger design."""

from __future__ import annotations

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import Member, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.access_unit import AccessUnit
from ember_hw.rtl.flat_ports import (
    INDEX_PREFIX,
    RESULT_PREFIX,
    connect_flat,
    connect_queues,
    flat_members,
    memory_members,
    memory_prefixes,
    queue_members,
)

UNIT_NAME = "access_unit"


def unit_members(config: AcceleratorConfig) -> dict[str, Member]:
    """Return all flat ports of an access unit."""
    return (
        flat_members("s_axil", axi.LiteSignature().flip())
        | memory_members(config)
        | queue_members(config)
        | {"m_axis_aresetn": Out(1), "irq": Out(1)}
    )


class FlatAccessUnit(wiring.Component):
    """`AccessUnit` with one port a signal.

    The ports are `s_axil_*`, `m_axi_*` (with several memory ports `m_axi0_*`, `m_axi1_*`, ..),
    `m_axi_index_*` (with `config.index_port_bits`), `s_axis_index_*` (with `config.input_queue`),
    `m_axis_bundle_*`, `m_axis_row_*`, `m_axis_aresetn` (low while both queues are reset, at either
    end) and `irq`. The bundle's TDATA holds the event bits from bit 0, then the scalars, padded to
    whole bytes; its TLAST marks the request's last bundle. The row's TKEEP marks the row's bytes,
    its TLAST the row's last beat. The input queue's TDEST is the memory stream that the beat is
    for, ``unit * streams_per_unit + stream``.

    With the reduce unit (`config.execute`) bundles and rows stay inside, and `m_axis_result_*`
    brings the rows that it makes of them, as `m_axis_row_*` does others; with `config.results`
    ``memory`` `m_axi_result_*` writes them.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(unit_members(config))

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = AccessUnit(config=self.config)
        connect_flat(m, self, "s_axil", unit.bus)
        for prefix, port in zip(memory_prefixes(self.config), unit.memory, strict=True):
            connect_flat(m, self, prefix, port)
        if self.config.index_port_bits:
            connect_flat(m, self, INDEX_PREFIX, unit.index_memory)
        if self.config.results == "memory":
            connect_flat(m, self, RESULT_PREFIX, unit.result_memory)
        connect_queues(m, self, unit)
        m.d.comb += [self.m_axis_aresetn.eq(~unit.queue_reset), self.irq.eq(unit.irq)]
        return m


class AccessUnitInstance(wiring.Component):
    """An instance of the Verilog module that `emit_verilog` writes."""

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(unit_members(config))

    def elaborate(self, platform):
        m = Module()
        ports = {
            f"{'o' if member.flow is Out else 'i'}_{name}": getattr(self, name)
            for name, member in self.signature.members.items()
        }
        m.submodules[UNIT_NAME] = Instance(
            UNIT_NAME, i_clk=ClockSignal(), i_rst=ResetSignal(), **ports
        )
        return m
