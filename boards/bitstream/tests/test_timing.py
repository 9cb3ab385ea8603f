"""Clocks by domain, and the text of one that is too slow (also in test_build)."""

from __future__ import annotations

from ember_hw.boards.bitstream.timing import check_timing, read_clocks

REPORT = {
    "fmax": {
        "$glb$clocks.sync_clock": {"achieved": 55.004, "constraint": 50},
        "$glb$clocks.sdram_clock": {"achieved": 121.0, "constraint": 100},
    },
    "critical_paths": [
        {
            "from": "posedge $glb$clocks.sdram_clock",
            "to": "posedge $glb$clocks.sync_clock",
            "path": [{"type": "logic", "delay": 9.0, "to": {"cell": "crossing"}}],
        },
        {
            "from": "posedge $glb$clocks.sync_clock",
            "to": "posedge $glb$clocks.sync_clock",
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
