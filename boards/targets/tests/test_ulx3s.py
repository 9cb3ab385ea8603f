"""The board's top, up to the netlist's text: pins, clocks and parts are those of the board."""

from __future__ import annotations

import re

import pytest
from amaranth.hdl import Module

from ember_hw.boards.bitstream.target import board
from ember_hw.boards.core import BoardCore
from ember_hw.config import AcceleratorConfig

pytest.importorskip("amaranth_boards", reason="the extra `boards` isn't installed")
pytestmark = pytest.mark.rtl

CONFIG = AcceleratorConfig.preset("small").with_changes(address_width_bits=32)


class _HollowCore(BoardCore):
    """Unit and link take long to elaborate, and no pin is theirs."""

    def elaborate(self, platform) -> Module:
        return Module()


def _plan(memory: str, monkeypatch) -> tuple[str, str]:
    monkeypatch.setattr("ember_hw.boards.targets.ulx3s.BoardCore", _HollowCore)
    target = board("ulx3s")
    description = target.describe(CONFIG, memory, 1)
    plan = target.platform().prepare(target.top(description, memory), "top", emit_src=False)
    return tuple(plan.files[name] for name in ("top.il", "top.lpf"))


def test_sdram_has_its_pins_and_two_clocks(monkeypatch):
    design, pins = _plan("sdram", monkeypatch)
    sites = dict(re.findall(r'LOCATE COMP "(\S+)" SITE "(\S+)"', pins))
    assert sites["sdram_0__clk__io"] == "F19"
    assert len([name for name in sites if name.startswith("sdram_0__dq__io")]) == 16
    assert len([name for name in sites if name.startswith("sdram_0__a__io")]) == 13
    assert {sites["uart_0__rx__io"], sites["uart_0__tx__io"]} == {"M1", "L4"}
    assert 'FREQUENCY PORT "clk25_0__io" 25000000.0 HZ' in pins
    pll = design[design.index("cell \\EHXPLLL") :]
    assert re.search(r"connect \\CLKOP \\clk\n", pll)
    assert re.search(r"connect \\CLKOS \\sdram_clk\n", pll)
    # Paths of this machine would make other bits elsewhere.
    assert "/ember_hw/" not in design


def test_block_ram_needs_no_sdram_pin(monkeypatch):
    design, pins = _plan("block", monkeypatch)
    assert "sdram" not in pins
    assert re.search(r"memory width 128 size 16384 ", design)
