from __future__ import annotations

import re
from pathlib import Path

import pytest

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.emit_verilog import emit_cluster_verilog, emit_verilog

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


def _ports(text: str, module: str) -> dict[str, tuple[str, int]]:
    """Return direction and width of each port of a module."""
    top = text[text.index(f"module {module}(") :]
    top = top[: top.index("endmodule")]
    return {
        name: (way, int(high or 0) + 1)
        for way, high, name in re.findall(
            r"^  (input|output) (?:\[(\d+):0\] )?(\w+);", top, re.MULTILINE
        )
    }


def test_ports_are_those_of_axi_tools(text: str):
    assert _ports(text, "access_unit") == {
        name: ("input" if name in INPUTS else "output", width) for name, width in PORTS.items()
    }


def test_further_ports_of_a_unit():
    config = CONFIG.with_changes(
        memory_ports=2,
        index_port_bits=128,
        input_queue=1,
        memory_protocol="axi3",
        streams_per_unit=3,
    )
    ports = _ports(emit_verilog(config), "access_unit")
    prefixes = {name[: name.rindex("_")] for name in ports if "_" in name}
    assert prefixes == {
        "s_axil",
        "m_axi0",
        "m_axi1",
        "m_axi_index",
        "s_axis_index",
        "m_axis_bundle",
        "m_axis_row",
        "m_axis",
    }
    for prefix in ("m_axi0", "m_axi1", "m_axi_index"):
        assert ports[f"{prefix}_arlen"] == ("output", 4)
        assert ports[f"{prefix}_arlock"] == ("output", 2)
        assert f"{prefix}_arqos" not in ports
    assert ports["m_axi1_rdata"] == ("input", 64)
    assert ports["m_axi_index_rdata"] == ("input", 128)
    assert ports["m_axi1_arid"] == ("output", 3)
    assert ports["m_axi_index_arid"] == ("output", 2)
    assert {name: ports[f"s_axis_index_{name}"] for name in ("tdata", "tdest", "tready")} == {
        "tdata": ("input", 128),
        "tdest": ("input", 2),
        "tready": ("output", 1),
    }


def test_a_cluster_has_its_units_module_once():
    config = CONFIG.with_changes(memory_ports=2)
    text = emit_cluster_verilog(config, units=3, channels=2, sharing="shared")
    ports = _ports(text, "access_cluster")
    assert text.count("\nmodule access_unit(") == 1
    assert text.count("\n  access_unit access_unit (") == 3
    assert ports["s_axil_araddr"] == ("input", 14)
    # Lines take 16 tags in turn; a bit for the client, two for the unit.
    assert ports["m_axi1_arid"] == ("output", 4 + 1 + 2)
    assert "m_axi2_arid" not in ports
    assert ports["m_axis_row2_tdata"] == ("output", 64)
    assert (ports["irq"], ports["m_axis_aresetn"]) == (("output", 3), ("output", 3))


def test_the_text_depends_on_the_config_alone(text: str):
    assert emit_verilog(CONFIG.with_changes(name="another")) == text
    assert str(Path(__file__).parents[3]) not in text
    assert "site-packages" not in text
