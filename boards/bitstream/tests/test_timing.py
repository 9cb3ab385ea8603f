"""Clocks by domain, and the text of one that is too slow (also in test_build)."""

from __future__ import annotations

import re

import pytest

from ember_hw.boards.bitstream.timing import check_timing, read_clocks
from ember_hw.errors import ToolError

REPORT = {
    "fmax": {
        "$glbnet$clk": {"achieved": 55.004, "constraint": 50},
        "$glbnet$sdram_clk": {"achieved": 121.0, "constraint": 100},
    },
    "critical_paths": [
        {
            "from": "posedge $glbnet$sdram_clk",
            "to": "posedge $glbnet$clk",
            "path": [{"type": "logic", "delay": 9.0, "to": {"cell": "crossing"}}],
        },
        {
            "from": "posedge $glbnet$clk",
            "to": "posedge $glbnet$clk",
            "path": [
                {"type": "clk-to-q", "delay": 0.5, "to": {"cell": "a"}},
                {"type": "routing", "delay": 1.0, "to": {"cell": "b"}},
                {"type": "setup", "delay": 0.25, "to": {"cell": "b"}},
            ],
        },
    ],
}


def test_clocks_are_found_by_domain():
    clocks = read_clocks(REPORT, {"sync": 50.0, "sdram": 100.0, "other": 10.0})
    assert list(clocks) == ["sync", "sdram"]
    assert (clocks["sync"].fmax_mhz, clocks["sync"].target_mhz) == (55.0, 50.0)
    assert clocks["sync"].critical_path == ("0.50 a", "1.75 b")
    assert clocks["sdram"].critical_path == ()
    check_timing(clocks, 1)


def test_net_may_bear_the_name_of_what_makes_the_clocks():
    fmax = {
        "$glbnet$clk": REPORT["fmax"]["$glbnet$clk"],
        "$glbnet$clocks.sdram_clk": {"achieved": 99.0, "constraint": 90},
    }
    clocks = read_clocks({**REPORT, "fmax": fmax}, {"sync": 50.0, "sdram": 100.0})
    assert (clocks["sdram"].fmax_mhz, clocks["sdram"].target_mhz) == (99.0, 100.0)
    with pytest.raises(ToolError, match=r"^clock 'sdram' must reach 100 MHz, not 99; "):
        check_timing(clocks, 1)


def test_clock_of_no_domain_must_reach_what_nextpnr_derived():
    fmax = {**REPORT["fmax"], "jtag_clock": {"achieved": 20.0, "constraint": 25.0}}
    clocks = read_clocks({**REPORT, "fmax": fmax}, {"sync": 50.0})
    assert (clocks["sdram_clk"].fmax_mhz, clocks["sdram_clk"].target_mhz) == (121.0, 100)
    message = "^clock 'jtag_clock' must reach 25 MHz, not 20; another seed than 1 may do, "
    with pytest.raises(ToolError, match=message):
        check_timing(clocks, 1)


def test_report_without_the_unit_s_clock_is_refused():
    message = "nextpnr must report a clock of the domain 'sync', net 'clk', and reports sdram_clk"
    fmax = {"$glbnet$sdram_clk": REPORT["fmax"]["$glbnet$sdram_clk"]}
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        read_clocks({**REPORT, "fmax": fmax}, {"sync": 50.0})
