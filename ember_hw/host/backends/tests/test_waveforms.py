from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host.backends.waveforms import UNIT_SCOPE, names_path, read_modules, save_path
from ember_hw.host.device import Device, open_device
from ember_hw.host.tests.programs import bag_program, with_rows
from ember_hw.sim.options import Trace

CONFIG = AcceleratorConfig.preset("tiny")
PROGRAM = bag_program(np.random.default_rng(0).standard_normal((50, 8), np.float32), config=CONFIG)
INPUTS = (np.arange(40) % 50, np.array([0, 20]))


def needs_model(test: Any) -> Any:
    """Mark a test that runs a model with tracing; the first one builds it."""
    return pytest.mark.verilator(pytest.mark.slow(pytest.mark.timeout(900)(test)))


@dataclass
class Vcd:
    """A VCD file: signals by their names, and each change in order of time."""

    names: dict[str, str]
    changes: list[tuple[int, str, str]]

    @staticmethod
    def read(path: Path) -> Vcd:
        scope: list[str] = []
        vcd = Vcd({}, [])
        now = 0
        for line in path.read_text().splitlines():
            words = line.split()
            match words:
                case ["$scope", _, name, "$end"]:
                    scope.append(name)
                case ["$upscope", "$end"]:
                    scope.pop()
                case ["$var", _, _, code, name, *bits, "$end"]:
                    vcd.names[".".join([*scope, name]) + "".join(bits)] = code
                case [word] if word[0] == "#":
                    now = int(word[1:])
                case [word] if word[0] in "01":
                    vcd.changes.append((now, word[1:], word[0]))
                case _:  # vectors, comments
                    pass
        return vcd

    @property
    def cycles(self) -> int:
        """Cycles that the file holds: two times each."""
        clock = self.names["TOP.simulation_top.clk"]
        return sum(value == "1" for _, code, value in self.changes if code == clock)

    def handshakes(self, prefix: str) -> list[int]:
        """Times of the cycles in which a stream of the top handed over a beat that is the last."""
        codes = [self.names[f"{prefix}_{name}"] for name in ("tvalid", "tready", "tlast")]
        values = dict.fromkeys(codes, "0")
        times: list[int] = []
        for time, changes in groupby(self.changes, key=lambda change: change[0]):
            values |= {code: value for _, code, value in changes if code in values}
            if time % 2 == 0 and set(values.values()) == {"1"}:
                times.append(time)
        return times


def open_traced(path: Path, **window: Any) -> Device:
    trace = Trace(path=path, **window)
    return open_device("verilator", config=CONFIG, optimise=False, trace=trace)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of the cycles 20 to 220 of the second of two runs."""
    path = tmp_path_factory.mktemp("traces") / "run.vcd"
    with open_traced(path, first=20, end=220) as device:
        for _ in range(2):
            device.run(PROGRAM, INPUTS)
    return path


@needs_model
def test_every_launch_has_its_window(shared: Path) -> None:
    assert Vcd.read(shared).cycles == 200


@needs_model
def test_every_name_of_map_and_save_file_is_in_the_trace(shared: Path) -> None:
    names = Vcd.read(shared).names
    assert [name for name in names if ":" in name.partition("[")[0]] == []  # GTKWave would end
    found = json.loads(names_path(shared).read_text())
    streams = {
        (block["scope"].removeprefix(f"{UNIT_SCOPE}."), stream["name"]): stream
        for block in found["blocks"]
        for stream in block["streams"]
    }
    for stream in streams.values():
        for part in ("valid", "ready", "payload"):
            assert stream[part] in names, stream
    row = streams["unit", "row"]
    assert row["direction"] == "out"
    assert row["payload_bits"] == {"data": [63, 0], "bytes": [67, 64], "last": [68, 68]}
    assert row["payload"].endswith(".row__payload[68:0]")
    assert (found["schema"], found["trace"], found["time_units_a_cycle"]) == (1, "run.vcd", 2)
    lines = save_path(shared).read_text().splitlines()
    saved = [line.rpartition(" ")[2] for line in lines if re.match(r"TOP|\+\{", line)]
    assert len(saved) == 1 + 3 * len(streams)
    assert set(saved) <= names.keys()


@needs_model
def test_window_of_lookups_ends_with_the_last_of_them(tmp_path: Path) -> None:
    path = tmp_path / "lookups.vcd"
    with open_traced(path, first=30, end=33, by="lookups") as device:
        device.run(PROGRAM, INPUTS)
        report = device.report
    vcd = Vcd.read(path)
    times = vcd.handshakes("TOP.m_axis_row")
    # Rows before them that had been asked for, but not come: 8 descriptors and 4 reads at most.
    assert 3 <= len(times) <= 3 + 8 + 4
    assert times[-1] == max(time for time, _, _ in vcd.changes) - 1
    assert 100 < vcd.cycles < (report.cycles or 0) / 2


@needs_model
def test_run_that_fails_leaves_a_whole_trace(tmp_path: Path) -> None:
    path = tmp_path / "fault.vcd"
    with open_traced(path, end=100_000) as device:
        with pytest.raises(DeviceError, match="INDEX_OUT_OF_RANGE"):
            device.run(with_rows(PROGRAM, 4), INPUTS)
        assert Vcd.read(path).cycles > 200
        device.run(PROGRAM, INPUTS)


@needs_model
@pytest.mark.parametrize("by", ["cycles", "lookups"])
def test_window_behind_the_run_is_an_error(tmp_path: Path, by: str) -> None:
    with open_traced(tmp_path / "late.vcd", first=90_000, end=90_001, by=by) as device:
        with pytest.raises(DeviceError, match="trace must begin") as caught:
            device.run(PROGRAM, INPUTS)
    text = re.sub(r"\d+ cycles", "N cycles", str(caught.value))
    assert text == (
        "trace must begin within the launch, which took N cycles and asked for 40 rows, "
        f"not with {by.removesuffix('s')} 90000"
    )


def test_verilog_is_read_with_mangled_names() -> None:
    text = (
        "module \\access_unit.unit (clk, \\o__valid$7 );\n"
        "  input clk;\n"
        "  wire clk;\n"
        "  output \\o__valid$7 ;\n"
        "  reg [12:0] level = 13'h0000;\n"
        "  \\access_unit.unit.issue$242  \\issue$242  (\n"
        "    .clk(clk)\n"
        "  );\n"
        "endmodule\n"
    )
    module = read_modules(text)["access_unit.unit"]
    assert module.signals == {"clk": 1, "o__valid$7": 1, "level": 13}
    assert module.instances == {"issue$242": "access_unit.unit.issue$242"}
