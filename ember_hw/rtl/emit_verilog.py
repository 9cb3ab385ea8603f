"""Verilog of the access unit, with flat port names that AXI tools recognise."""

from __future__ import annotations

from amaranth.back import verilog
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.access_unit import AccessUnit

TOP_NAME = "access_unit"


class FlatAccessUnit(wiring.Component):
    """`AccessUnit` with one port a signal.

    The ports are `s_axil_*`, `m_axi_*`, `m_axis_bundle_*`, `m_axis_row_*`, `m_axis_aresetn` (low
    while both queues are reset, at either end) and `irq`. The bundle's
    TDATA holds the event bits from bit 0, then the scalars, padded to whole bytes; its TLAST marks
    the program's last bundle. The row's TKEEP marks the row's bytes, its TLAST the row's last beat.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        members = {}
        for prefix, signature in (
            ("s_axil", axi.LiteSignature().flip()),
            ("m_axi", axi.ReadSignature(config)),
        ):
            for name, member in signature.members.items():
                members[f"{prefix}_{name}"] = member
        members |= {
            "m_axis_bundle_tdata": Out(8 * config.bundle_bytes),
            "m_axis_bundle_tlast": Out(1),
            "m_axis_bundle_tvalid": Out(1),
            "m_axis_bundle_tready": In(1),
            "m_axis_row_tdata": Out(config.data_width_bits),
            "m_axis_row_tkeep": Out(config.bus_bytes),
            "m_axis_row_tlast": Out(1),
            "m_axis_row_tvalid": Out(1),
            "m_axis_row_tready": In(1),
            "m_axis_aresetn": Out(1),
            "irq": Out(1),
        }
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = AccessUnit(config=self.config)
        for prefix, inner in (("s_axil", unit.bus), ("m_axi", unit.memory)):
            for name, member in inner.signature.members.items():
                outer = getattr(self, f"{prefix}_{name}")
                signal = getattr(inner, name)
                if member.flow is Out:
                    m.d.comb += outer.eq(signal)
                else:
                    m.d.comb += signal.eq(outer)
        bundle, row = unit.bundle, unit.row
        for i in range(self.config.bus_bytes):
            m.d.comb += self.m_axis_row_tkeep[i].eq(row.payload.bytes > i)
        m.d.comb += [
            self.m_axis_bundle_tdata.eq(
                bundle.payload.events | (bundle.payload.scalars.as_value() << self.config.events)
            ),
            self.m_axis_bundle_tlast.eq(bundle.payload.last),
            self.m_axis_bundle_tvalid.eq(bundle.valid),
            bundle.ready.eq(self.m_axis_bundle_tready),
            self.m_axis_row_tdata.eq(row.payload.data),
            self.m_axis_row_tlast.eq(row.payload.last),
            self.m_axis_row_tvalid.eq(row.valid),
            row.ready.eq(self.m_axis_row_tready),
            self.m_axis_aresetn.eq(~unit.queue_reset),
            self.irq.eq(unit.irq),
        ]
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
