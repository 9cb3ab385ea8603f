"""Verilog of the access unit, with flat port names that AXI tools recognise."""

from __future__ import annotations

from amaranth.back import verilog
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.access_unit import AccessUnit
from ember_hw.rtl.flat_ports import (
    INDEX_PREFIX,
    connect_flat,
    connect_queues,
    flat_members,
    memory_members,
    memory_prefixes,
    queue_members,
)

TOP_NAME = "access_unit"


class FlatAccessUnit(wiring.Component):
    """`AccessUnit` with one port a signal.

    The ports are `s_axil_*`, `m_axi_*` (with several memory ports `m_axi0_*`, `m_axi1_*`, ..),
    `m_axi_index_*` (with `config.index_port_bits`), `s_axis_index_*` (with `config.input_queue`),
    `m_axis_bundle_*`, `m_axis_row_*`, `m_axis_aresetn` (low while both queues are reset, at either
    end) and `irq`. The bundle's TDATA holds the event bits from bit 0, then the scalars, padded to
    whole bytes; its TLAST marks the request's last bundle. The row's TKEEP marks the row's bytes,
    its TLAST the row's last beat. The input queue's TDEST is the memory stream that the beat is
    for, ``unit * streams_per_unit + stream``.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            flat_members("s_axil", axi.LiteSignature().flip())
            | memory_members(config)
            | queue_members(config)
            | {"m_axis_aresetn": Out(1), "irq": Out(1)}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = AccessUnit(config=self.config)
        connect_flat(m, self, "s_axil", unit.bus)
        for prefix, port in zip(memory_prefixes(self.config), unit.memory, strict=True):
            connect_flat(m, self, prefix, port)
        if self.config.index_port_bits:
            connect_flat(m, self, INDEX_PREFIX, unit.index_memory)
        connect_queues(m, self, unit)
        m.d.comb += [self.m_axis_aresetn.eq(~unit.queue_reset), self.irq.eq(unit.irq)]
        return m


def emit_verilog(config: AcceleratorConfig) -> str:
    """Return the Verilog of an access unit.

    The top module is `access_unit`, its clock `clk`, its synchronous reset `rst`. The text depends
    on the config alone.
    """
    return verilog.convert(
        FlatAccessUnit(config=config),
        name=TOP_NAME,
        emit_src=False,  # source locations would bring paths of this machine
        strip_internal_attrs=True,
    )
