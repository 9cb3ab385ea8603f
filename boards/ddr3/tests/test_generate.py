"""The core is generated as it was ordered, the same every time; what is missing is named."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import pytest

from ember_hw.boards.ddr3 import generate as generate_module
from ember_hw.boards.ddr3.chip import CHIPS
from ember_hw.boards.ddr3.generate import Order, check_installed, generate, without_repetition
from ember_hw.boards.ddr3.litedram_script import MODULE
from ember_hw.errors import ToolError

ORDER = Order(kind="core", chip=CHIPS["ecpix5"], ports=4, clock_mhz=75.0)

needs_litedram = pytest.mark.skipif(
    find_spec("litedram") is None, reason="the extra `ddr3` isn't installed"
)


@cache
def _core() -> dict[str, str]:
    return generate(ORDER, needed_for="a test")


@needs_litedram
def test_core_has_the_ordered_ports_and_is_the_same_every_time():
    files = _core()
    assert list(files) == [f"{MODULE}.v"]
    text = files[f"{MODULE}.v"]
    assert set(re.findall(r"user_port_(\d)_cmd_valid,", text)) == set("0123")
    assert generate(ORDER, needed_for="a test") == files


@needs_litedram
def test_no_wire_has_two_drivers():
    text = _core()[f"{MODULE}.v"]
    targets: Counter[str] = Counter()
    for found in re.findall(r"assign\s+(\{[^}]*\}|[\w\[\]:]+)\s*=", text):
        targets.update(re.findall(r"\w+(?:\[[\d:]+\])?", found))
    assert {target for target, count in targets.items() if count > 1} == set()
    assert "wrdata" in text


@needs_litedram
def test_refresh_is_as_long_as_the_chip_needs():
    def refresh_cycles(trfc_ns: float) -> int:
        chip = replace(CHIPS["ecpix5"], trfc_ns=trfc_ns)
        order = replace(ORDER, kind="controller", chip=chip)
        text = generate(order, needed_for="a test")[f"{MODULE}.v"]
        # The executer's steps: PRECHARGE, tRP later REFRESH, tRFC later the end.
        counts = re.findall(r"core_sequencer_trigger\s*==\s*\d+'d(\d+)", text)
        return max(int(count) for count in counts)

    # 260 ns are 20 cycles of 13.3 ns, behind two of PRECHARGE; LiteDRAM's own class has 104.
    assert refresh_cycles(260.0) == 22
    assert refresh_cycles(520.0) == 42


@needs_litedram
def test_what_litedram_cannot_do_is_told_with_its_words():
    order = replace(ORDER, clock_mhz=1000.0)
    with pytest.raises(ToolError) as caught:
        generate(order, needed_for="a test")
    message = str(caught.value)
    assert message.startswith(
        "LiteDRAM's generator must end with status 0, not 1; the end of what it says:\n"
    )
    assert message.endswith("AssertionError")
    assert "in create_clkout" in message


def test_missing_litedram_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(generate_module, "find_spec", lambda name: None)
    with pytest.raises(ToolError) as caught:
        check_installed("a test")
    assert str(caught.value) == (
        "litedram, litex, migen must be there for a test, and isn't: pip install 'ember-hw[ddr3]'"
    )


@needs_litedram
def test_what_the_init_cpu_needs_is_named(monkeypatch: pytest.MonkeyPatch):
    """Without a compiler or a package the option ends with the name of what is missing."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolError) as caught:
        generate(replace(ORDER, cpu="vexriscv"), needed_for="a test")
    missing = re.fullmatch(
        r"(.+) must be there for the init CPU vexriscv, and isn't: pip install (.+)",
        str(caught.value),
    )
    assert missing is not None
    assert missing[1].split(", ") == missing[2].split()
    assert missing[1].endswith("meson, ninja")


@needs_litedram
def test_another_register_map_is_refused(monkeypatch: pytest.MonkeyPatch):
    def refuse(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        (generate_module.Path(command[-1]) / generate_module.REFUSED).write_text("registers differ")
        return subprocess.CompletedProcess(command, 2, "", "")

    monkeypatch.setattr(generate_module.subprocess, "run", refuse)
    with pytest.raises(ToolError) as caught:
        generate(ORDER, needed_for="a test")
    assert str(caught.value) == "registers differ"


def test_repeated_assignments_and_comments_go():
    text = (
        "/* a tree\n of modules */\nassign x = y; // today\nassign {a, b} =\n c;\nassign x = y;\n"
    )
    assert without_repetition(text) == "assign x = y;\nassign {a, b} =\n c;\n"
