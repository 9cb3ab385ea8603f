from __future__ import annotations

import re
from pathlib import Path

import pytest

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.emit_verilog import emit_verilog

CONFIG = AcceleratorConfig(
    name="ports",
    data_width_bits=64,
    address_width_bits=40,
    traversal_units=1,
    streams_per_unit=1,
    row_entries=1,
    exports=2,
    bundle_scalars=2,
    outstanding_reads=4,
    max_burst_beats=8,
    reorder_buffer_beats=16,
    token_entries=16,
    lines_per_stream=2,
    bundle_entries=16,
    descriptor_entries=8,
)

PORTS = {
    "clk": 1,
    "rst": 1,
    "m_axis_aresetn": 1,
    "irq": 1,
    "m_axis_bundle_tdata": 72,  # 3 events and 2 scalars, in whole bytes
    "m_axis_bundle_tlast": 1,
    "m_axis_bundle_tvalid": 1,
    "m_axis_bundle_tready": 1,
    "m_axis_row_tdata": 64,
    "m_axis_row_tkeep": 8,
    "m_axis_row_tlast": 1,
    "m_axis_row_tvalid": 1,
    "m_axis_row_tready": 1,
    **{
        f"s_axil_{name}": width
        for name, width in (
            *(("awaddr", 12), ("awprot", 3), ("awvalid", 1), ("awready", 1)),
            *(("wdata", 32), ("wstrb", 4), ("wvalid", 1), ("wready", 1)),
            *(("bresp", 2), ("bvalid", 1), ("bready", 1)),
            *(("araddr", 12), ("arprot", 3), ("arvalid", 1), ("arready", 1)),
            *(("rdata", 32), ("rresp", 2), ("rvalid", 1), ("rready", 1)),
        )
    },
    **{
        f"m_axi_{name}": width
        for name, width in (
            *(("arid", 3), ("araddr", 40), ("arlen", 8), ("arsize", 3), ("arburst", 2)),
            *(("arlock", 1), ("arcache", 4), ("arprot", 3), ("arqos", 4)),
            *(("arvalid", 1), ("arready", 1)),
            *(("rid", 3), ("rdata", 64), ("rresp", 2), ("rlast", 1), ("rvalid", 1)),
            ("rready", 1),
        )
    },
}
INPUTS = {"clk", "rst", "m_axis_bundle_tready", "m_axis_row_tready"}
INPUTS |= {f"s_axil_{channel}valid" for channel in ("aw", "w", "ar")}
INPUTS |= {f"s_axil_{name}" for name in ("awaddr", "awprot", "wdata", "wstrb", "araddr", "arprot")}
INPUTS |= {"s_axil_bready", "s_axil_rready", "m_axi_arready"}
INPUTS |= {f"m_axi_{name}" for name in ("rid", "rdata", "rresp", "rlast", "rvalid")}


@pytest.fixture(scope="module")
def text() -> str:
    return emit_verilog(CONFIG)


def test_ports_are_those_of_axi_tools(text: str):
    top = text[text.index("module access_unit(") :]
    top = top[: top.index("endmodule")]
    found = {}
    for way, high, name in re.findall(r"^  (input|output) (?:\[(\d+):0\] )?(\w+);", top, re.M):
        found[name] = int(high or 0) + 1
        assert (way == "input") == (name in INPUTS), name
    assert found == PORTS


def test_the_text_depends_on_the_config_alone(text: str):
    assert emit_verilog(CONFIG.with_changes(name="another")) == text
    assert str(Path(__file__).parents[3]) not in text
    assert "site-packages" not in text
