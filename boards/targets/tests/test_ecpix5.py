"""The board's top, up to the netlist's text: pins, ports and registers are those of the board."""

from __future__ import annotations

import re

import pytest
from amaranth.hdl import Module

from ember_hw.boards.bitstream.target import board
from ember_hw.boards.core import BoardCore
from ember_hw.boards.ddr3.litedram_script import MODULE
from ember_hw.config import AcceleratorConfig

pytest.importorskip("amaranth_boards", reason="the extra `boards` isn't installed")
pytest.importorskip("litedram", reason="the extra `ddr3` isn't installed")
pytestmark = pytest.mark.rtl

CONFIG = AcceleratorConfig.preset("small").with_changes(address_width_bits=32)


class _HollowCore(BoardCore):
    """Unit and link take long to elaborate, and no pin is theirs."""

    def elaborate(self, platform) -> Module:
        return Module()


def test_ddr3_has_its_pins_and_the_clock_is_the_cores(monkeypatch):
    monkeypatch.setattr("ember_hw.boards.targets.ecpix5.BoardCore", _HollowCore)
    target = board("ecpix5")
    description = target.describe(CONFIG, "ddr3", 1)
    plan = target.platform().prepare(target.top(description, "ddr3"), "top", emit_src=False)
    design, pins = plan.files["top.il"], plan.files["top.lpf"]
    core = plan.files[f"{MODULE}.v"]
    sites = dict(re.findall(r'LOCATE COMP "(\S+)" SITE "(\S+)"', pins))
    for name, count in {"a": 15, "ba": 3, "dq": 16, "dm": 2, "dqs": 2}.items():
        assert len([pin for pin in sites if re.match(rf"ddr3_0__{name}__(io|p)", pin)]) == count
    assert sites["ddr3_0__clk__p"] == "H3"
    assert {sites["uart_0__rx__io"], sites["uart_0__tx__io"]} == {"R26", "R24"}
    assert 'FREQUENCY PORT "clk100_0__io" 100000000.0 HZ' in pins
    cell = design[design.index(f"cell \\{MODULE}") :]
    connected = set(re.findall(r"connect \\(\S+)", cell[: cell.index("\n  end\n")]))
    ports = set(re.findall(r"(?:in|out)put\s+wire\s+(?:\[\d+:\d+\]\s+)?(\w+)", core))
    # The board ties the chip's reset and select; negative halves of pairs have no cell.
    unconnected = {"ddram_clk_n", "ddram_dqs_n", "ddram_cs_n", "ddram_reset_n", "pll_locked"}
    unconnected |= {f"user_port_{number}_rdata_data" for number in range(1, 4)}
    assert ports - connected == unconnected
    assert connected <= ports
    assert re.search(r"connect \\user_clk \\clk\n", cell)
    assert 'FREQUENCY_PIN_CLKOP = "150.0"' in core
    # Paths of this machine would make other bits elsewhere.
    assert "/ember_hw/" not in design
    assert "Date" not in core
