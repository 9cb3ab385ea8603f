"""The chip's model keeps data, and knows every limit: commands written by hand, one too early."""

from __future__ import annotations

import ctypes
import subprocess

import pytest

from ember_hw.boards.sdram import model as model_module
from ember_hw.boards.sdram.model import ChipModel
from ember_hw.boards.sdram.pins import Command
from ember_hw.boards.sdram.tests.chips import CLOCK_MHZ, SMALL
from ember_hw.errors import ToolError

CLOCKS = SMALL.clocks(CLOCK_MHZ)
ALL = 1 << 10
MODE = 0b011 | CLOCKS.cl << 4

Step = tuple[int, Command, dict[str, int]]


def _initialise(model: ChipModel) -> None:
    for wait, command, address in [
        (CLOCKS.power_up + 1, Command.PRECHARGE, ALL),
        (CLOCKS.trp, Command.REFRESH, 0),
        (CLOCKS.trfc, Command.REFRESH, 0),
        (CLOCKS.trfc, Command.LOAD_MODE, MODE),
    ]:
        _after(model, wait, command, address=address)
    _idle(model, CLOCKS.tmrd - 1)


def _idle(model: ChipModel, clocks: int) -> list[int]:
    return [model.edge() for _ in range(clocks)]


def _after(model: ChipModel, clocks: int, command: Command, **pins: int) -> int:
    """Issue a command so many clocks after the one before it."""
    _idle(model, clocks - 1)
    return model.edge(command, **pins)


def _rules(model: ChipModel) -> list[str]:
    return [violation.rule for violation in model.violations()]


@pytest.fixture
def model() -> ChipModel:
    chip = ChipModel(SMALL, CLOCKS)
    _initialise(chip)
    assert chip.violations() == []
    return chip


def _write(model: ChipModel, words: list[int], masks: list[int], **pins: int) -> None:
    for i, (word, mask) in enumerate(zip(words, masks, strict=True)):
        model.edge(Command.WRITE if i == 0 else Command.NO_OPERATION, data=word, mask=mask, **pins)


def test_what_is_written_is_read_after_cas_latency(model):
    _after(model, 1, Command.ACTIVATE, bank=2, address=5)
    _idle(model, CLOCKS.trcd - 1)
    words = [0x1111 * i for i in range(8)]
    _write(model, words, [0] * 8, bank=2, address=16)
    model.edge(Command.READ, bank=2, address=16)
    seen = _idle(model, CLOCKS.cl + 8)
    assert seen[CLOCKS.cl - 1 : CLOCKS.cl + 7] == words
    assert seen[CLOCKS.cl - 2] != words[0]
    assert seen[CLOCKS.cl + 7] != words[7]
    assert list(model.words[((5 << 2 | 2) << 8) + 16 :][:8]) == words
    assert model.violations() == []


def test_masked_bytes_stay(model):
    _after(model, 1, Command.ACTIVATE)
    _idle(model, CLOCKS.trcd - 1)
    model.words[:8] = 0xAAAA
    _write(model, [0x1234] * 8, [0, 1, 2, 3] * 2)
    assert list(model.words[:8]) == [0x1234, 0x12AA, 0xAA34, 0xAAAA] * 2


OPEN: list[Step] = [(1, Command.ACTIVATE, {})]
READ = [*OPEN, (CLOCKS.trcd, Command.READ, {})]
CLOSED = [*READ, (8, Command.PRECHARGE, {})]


@pytest.mark.parametrize(
    ("rule", "before", "step"),
    [
        ("trcd", OPEN, (CLOCKS.trcd - 1, Command.READ, {})),
        ("tras", OPEN, (CLOCKS.tras - 1, Command.PRECHARGE, {})),
        ("tras_most", OPEN, (CLOCKS.tras_most + 1, Command.PRECHARGE, {})),
        ("trrd", OPEN, (CLOCKS.trrd - 1, Command.ACTIVATE, {"bank": 1})),
        ("trp", CLOSED, (CLOCKS.trp - 1, Command.ACTIVATE, {})),
        ("burst", READ, (7, Command.READ, {})),
        ("burst", READ, (7, Command.PRECHARGE, {})),
        ("row", OPEN, (CLOCKS.trc, Command.ACTIVATE, {})),
        ("row", [], (1, Command.READ, {})),
        ("row", OPEN, (CLOCKS.trc, Command.REFRESH, {})),
        ("trp", CLOSED, (CLOCKS.trp - 1, Command.REFRESH, {})),
        ("trfc", [(1, Command.REFRESH, {})], (CLOCKS.trfc - 1, Command.ACTIVATE, {})),
        ("auto-precharge", OPEN, (CLOCKS.trcd, Command.READ, {"address": ALL})),
    ],
)
def test_limit_is_held(model, rule, before, step):
    for wait, command, pins in before:
        _after(model, wait, command, **pins)
    assert [found for found in _rules(model) if found != "trefi"] == []
    wait, command, pins = step
    _after(model, wait, command, **pins)
    assert rule in _rules(model)
    assert {*_rules(model)} <= {rule, "trefi"}


def test_burst_terminate_is_no_command(model):
    pins = model_module._Edge(0b001, 0, 0, 0, 0, 0)  # no Command names it
    model._library.ember_sdram_edge(model._chip, ctypes.byref(pins))
    assert _rules(model) == ["command"]


def test_trc_is_held_where_a_row_closes_early():
    clocks = model_module.SdramClocks(**{**vars(CLOCKS), "trc": 20})
    chip = ChipModel(SMALL, clocks)
    _initialise(chip)
    for wait, command in [
        (1, Command.ACTIVATE),
        (clocks.tras, Command.PRECHARGE),
        (19 - clocks.tras, Command.ACTIVATE),
    ]:
        _after(chip, wait, command)
    assert _rules(chip) == ["trc"]


@pytest.mark.parametrize("early", [False, True])
def test_twr_is_held(model, early):
    _after(model, 1, Command.ACTIVATE)
    _idle(model, CLOCKS.trcd - 1)
    _write(model, [0] * 8, [0] * 8)
    # The last word was one clock ago.
    _after(model, CLOCKS.twr - early, Command.PRECHARGE)
    assert _rules(model) == ["twr"] * early


def test_tmrd_is_held():
    chip = ChipModel(SMALL, CLOCKS)
    _after(chip, CLOCKS.power_up + 1, Command.PRECHARGE, address=ALL)
    _after(chip, CLOCKS.trp, Command.REFRESH)
    _after(chip, CLOCKS.trfc, Command.REFRESH)
    _after(chip, CLOCKS.trfc, Command.LOAD_MODE, address=MODE)
    _after(chip, CLOCKS.tmrd - 1, Command.ACTIVATE)
    assert _rules(chip) == ["tmrd"]


def test_power_needs_its_time():
    chip = ChipModel(SMALL, CLOCKS)
    _after(chip, CLOCKS.power_up, Command.PRECHARGE, address=ALL)
    assert _rules(chip) == ["power-up"]


def test_initialisation_has_an_order():
    chip = ChipModel(SMALL, CLOCKS)
    _after(chip, CLOCKS.power_up + 1, Command.REFRESH)
    _after(chip, CLOCKS.trfc, Command.LOAD_MODE, address=MODE + 1)
    assert _rules(chip) == ["order", "order", "mode"]
    chip = ChipModel(SMALL, CLOCKS)
    _after(chip, CLOCKS.power_up + 1, Command.ACTIVATE)
    assert _rules(chip) == ["order"]


def test_refresh_that_never_comes_is_missed(model):
    _idle(model, 2 * CLOCKS.trefi)
    assert _rules(model) == ["trefi"]
    assert "0 of 2" in model.violations()[0].text


@pytest.mark.parametrize(("clocks", "rules"), [(1, ["contention"]), (2, [])])
def test_both_must_not_drive_the_data_pins(model, clocks, rules):
    for wait, command, pins in READ:
        _after(model, wait, command, **pins)
    _idle(model, CLOCKS.cl + 7 + clocks - 1)
    _after(model, 1, Command.WRITE, data=1)
    assert _rules(model) == rules


def test_written_words_must_be_driven_and_no_others(model):
    model.edge(data=0)
    assert _rules(model) == ["data"]
    _after(model, 1, Command.ACTIVATE)
    _after(model, CLOCKS.trcd, Command.WRITE)
    assert _rules(model) == ["data", "data"]


def test_trace_names_every_command():
    chip = ChipModel(SMALL, CLOCKS, keep_trace=True)
    _initialise(chip)
    _after(chip, 1, Command.ACTIVATE, bank=3, address=77)
    assert [Command(kind) for kind in chip.trace()["command"]] == [
        Command.PRECHARGE, Command.REFRESH, Command.REFRESH, Command.LOAD_MODE, Command.ACTIVATE
    ]  # fmt: skip
    assert chip.trace()[-1].item()[1:] == (Command.ACTIVATE.value, 3, 77)


def test_missing_compiler_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("EMBER_HW_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    message = (
        r"^'c\+\+' must be on PATH to compile the SDRAM's model, and isn't; "
        r"on Debian and Ubuntu: apt install g\+\+$"
    )
    with pytest.raises(ToolError, match=message):
        model_module._library.__wrapped__()


def test_failing_compiler_is_quoted(monkeypatch, tmp_path):
    monkeypatch.setenv("EMBER_HW_CACHE", str(tmp_path))

    def fail(command, **_):
        return subprocess.CompletedProcess(command, 1, "", "it broke")

    monkeypatch.setattr(subprocess, "run", fail)
    message = r"^c\+\+ must compile the SDRAM's model, and doesn't:\nit broke$"
    with pytest.raises(ToolError, match=message):
        model_module._library.__wrapped__()
