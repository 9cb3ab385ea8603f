from __future__ import annotations

from typing import Any

from ember_hw.bench.area.blocks import Modules, count_by_block, owners

VERILOG = """module top(clk);
  wire a;
endmodule
module \\top.inner$5 (clk);
  reg b;
endmodule
"""
MODULES = Modules(VERILOG, "design.v")


def cell(kind: str, output: int, *inputs: int, src: str = "") -> dict[str, Any]:
    return {
        "type": kind,
        "attributes": {"src": src} if src else {},
        "port_directions": {"Z": "output"} | {f"A{n}": "input" for n in range(len(inputs))},
        "connections": {"Z": [output]} | {f"A{n}": [bit] for n, bit in enumerate(inputs)},
    }


NETLIST: dict[str, Any] = {
    "cells": {
        # A register names its line.
        "x_TRELLIS_FF_Q": cell("TRELLIS_FF", 10, 11, src="design.v:5.3-5.4|/share/map.v:1.1"),
        # A look-up table belongs to what it feeds, also through another one.
        "made_LUT4_Z": cell("LUT4", 11, 12),
        "made_LUT4_Z_1": cell("LUT4", 12, 13),
        # A net that the Verilog declares tells where its driver is.
        "a_LUT4_Z": cell("LUT4", 14, 10),
        # A memory keeps its name.
        "inner$5.storage.0.0": cell("DP16KD", 15, 10),
    },
    "netnames": {
        "a": {"bits": [14], "attributes": {"src": "design.v:2.8-2.9"}},
        "a_LUT4_Z_1": {"bits": [12], "attributes": {"src": "design.v:2.8-2.9"}},
    },
}


def test_each_cell_has_a_block() -> None:
    assert owners(NETLIST, MODULES, "top") == {
        "x_TRELLIS_FF_Q": "top.inner$5",
        "made_LUT4_Z": "top.inner$5",
        "made_LUT4_Z_1": "top.inner$5",
        "a_LUT4_Z": "top",
        "inner$5.storage.0.0": "top.inner$5",
    }


def test_blocks_are_counted_without_the_numbers_that_make_names_unique() -> None:
    counts = count_by_block(NETLIST, owners(NETLIST, MODULES, "top"), depth=2)
    assert counts == {
        "top": {"LUT4": 1},
        "top.inner": {"TRELLIS_FF": 1, "LUT4": 2, "DP16KD": 1},
    }
    (all_of_it,) = count_by_block(NETLIST, owners(NETLIST, MODULES, "top"), depth=1).values()
    assert sum(all_of_it.values()) == len(NETLIST["cells"])


def test_line_of_another_file_tells_nothing() -> None:
    assert MODULES.of_source({"src": "/share/map.v:5.1-6.2"}) is None
    assert MODULES.of_source({}) is None
