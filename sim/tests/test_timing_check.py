"""The checker finds each kind of violation, and none in what the model does."""

from dataclasses import replace

import numpy as np
import pytest

from ember_hw.sim.dram import DRAM_PRESETS, DramMemory, DramTiming
from ember_hw.sim.memory_library import COMMAND_DTYPE, COMMANDS, run_accesses
from ember_hw.sim.timing_check import check_commands

#: Every limit differs from the others and binds somewhere.
DRAM = DramMemory(
    name="test",
    timing=DramTiming(
        burst=3, cl=5, trcd=11, trp=13, tras=29, trc=47, trtp=7, trrd_s=4, trrd_l=6, tfaw=26,
        tccd_s=4, tccd_l=9, trfc=120, trefi=2000, trtrs=3, cwl=2, twr=15, twtr_s=5, twtr_l=8,
        trtw=10,
    ),
    mapping="row8 rank1 bank1 group1 column4",
    access_bytes=64,
    memory_khz=1,
    unit_khz=1,
)  # fmt: skip


def trace(*commands: str) -> np.ndarray:
    """Return the trace of lines `clock KIND rank group bank row`; what is left out is 0."""
    array = np.zeros(len(commands), COMMAND_DTYPE)
    for place, command in enumerate(commands):
        clock, kind, *numbers = command.split()
        array[place]["clock"], array[place]["kind"] = int(clock), COMMANDS.index(kind)
        for name, number in zip(("rank", "group", "bank", "row"), numbers, strict=False):
            array[place][name] = int(number)
    return array


def rules(commands: np.ndarray, dram: DramMemory = DRAM, **options: int) -> list[str]:
    return [violation.rule for violation in check_commands(dram, commands, **options)]


@pytest.mark.parametrize(
    ("rule", "early", "late"),
    [
        ("trcd", ("0 ACTIVATE", "10 READ"), ("0 ACTIVATE", "11 READ")),
        ("tras", ("0 ACTIVATE", "28 PRECHARGE"), ("0 ACTIVATE", "29 PRECHARGE")),
        ("tras", ("0 ACTIVATE", "28 PRECHARGE_ALL"), ("0 ACTIVATE", "29 PRECHARGE_ALL")),
        (
            "trc",
            ("0 ACTIVATE", "29 PRECHARGE", "46 ACTIVATE"),
            ("0 ACTIVATE", "29 PRECHARGE", "47 ACTIVATE"),
        ),
        (
            "trc",
            ("0 ACTIVATE", "29 PRECHARGE_ALL", "46 REFRESH"),
            ("0 ACTIVATE", "29 PRECHARGE_ALL", "47 REFRESH"),
        ),
        (
            "trp",
            ("0 ACTIVATE", "50 PRECHARGE", "62 ACTIVATE"),
            ("0 ACTIVATE", "50 PRECHARGE", "63 ACTIVATE"),
        ),
        (
            "trp",
            ("0 ACTIVATE", "50 PRECHARGE", "62 REFRESH"),
            ("0 ACTIVATE", "50 PRECHARGE", "63 REFRESH"),
        ),
        (
            "trtp",
            ("0 ACTIVATE", "30 READ", "36 PRECHARGE"),
            ("0 ACTIVATE", "30 READ", "37 PRECHARGE"),
        ),
        ("trrd_s", ("0 ACTIVATE", "3 ACTIVATE 0 1"), ("0 ACTIVATE", "4 ACTIVATE 0 1")),
        ("trrd_l", ("0 ACTIVATE", "5 ACTIVATE 0 0 1"), ("0 ACTIVATE", "6 ACTIVATE 0 0 1")),
        (
            "tccd_s",
            ("0 ACTIVATE", "9 ACTIVATE 0 1", "30 READ", "33 READ 0 1"),
            ("0 ACTIVATE", "9 ACTIVATE 0 1", "30 READ", "34 READ 0 1"),
        ),
        (
            "tccd_l",
            ("0 ACTIVATE", "30 READ", "38 READ"),
            ("0 ACTIVATE", "30 READ", "39 READ"),
        ),
        (
            "trtrs",
            ("0 ACTIVATE", "1 ACTIVATE 1", "30 READ", "35 READ 1"),
            ("0 ACTIVATE", "1 ACTIVATE 1", "30 READ", "36 READ 1"),
        ),
        ("trfc", ("0 REFRESH", "119 ACTIVATE"), ("0 REFRESH", "120 ACTIVATE")),
        ("trcd", ("0 ACTIVATE", "10 WRITE"), ("0 ACTIVATE", "11 WRITE")),
        (
            "twr",
            ("0 ACTIVATE", "30 WRITE", "49 PRECHARGE"),
            ("0 ACTIVATE", "30 WRITE", "50 PRECHARGE"),
        ),
        (
            "twr",
            ("0 ACTIVATE", "30 WRITE", "49 PRECHARGE_ALL"),
            ("0 ACTIVATE", "30 WRITE", "50 PRECHARGE_ALL"),
        ),
        (
            "twtr_l",
            ("0 ACTIVATE", "30 WRITE", "42 READ"),
            ("0 ACTIVATE", "30 WRITE", "43 READ"),
        ),
        (
            "twtr_s",
            ("0 ACTIVATE", "9 ACTIVATE 0 1", "30 WRITE", "39 READ 0 1"),
            ("0 ACTIVATE", "9 ACTIVATE 0 1", "30 WRITE", "40 READ 0 1"),
        ),
        (
            "trtw",
            ("0 ACTIVATE", "1 ACTIVATE 1", "30 READ", "39 WRITE 1"),
            ("0 ACTIVATE", "1 ACTIVATE 1", "30 READ", "40 WRITE 1"),
        ),
        (
            "tccd_l",
            ("0 ACTIVATE", "30 WRITE", "38 WRITE"),
            ("0 ACTIVATE", "30 WRITE", "39 WRITE"),
        ),
        (
            "tccd_s",
            ("0 ACTIVATE", "9 ACTIVATE 0 1", "30 WRITE", "33 WRITE 0 1"),
            ("0 ACTIVATE", "9 ACTIVATE 0 1", "30 WRITE", "34 WRITE 0 1"),
        ),
        (
            "trtrs",
            ("0 ACTIVATE", "1 ACTIVATE 1", "30 WRITE", "35 WRITE 1"),
            ("0 ACTIVATE", "1 ACTIVATE 1", "30 WRITE", "36 WRITE 1"),
        ),
        (
            "trtrs",
            ("0 ACTIVATE", "1 ACTIVATE 1", "30 WRITE", "32 READ 1"),
            ("0 ACTIVATE", "1 ACTIVATE 1", "30 WRITE", "33 READ 1"),
        ),
        ("row", ("0 ACTIVATE", "50 WRITE 0 0 0 1"), ("0 ACTIVATE", "50 WRITE")),
        ("row", ("0 ACTIVATE", "50 ACTIVATE 0 0 0 1"), ("0 ACTIVATE", "50 ACTIVATE 1 0 0 1")),
        ("row", ("0 ACTIVATE", "50 READ 0 0 0 1"), ("0 ACTIVATE", "50 READ")),
        ("row", ("50 READ",), ()),
        ("row", ("0 ACTIVATE", "50 REFRESH"), ("0 ACTIVATE", "50 REFRESH 1")),
        ("command bus", ("0 ACTIVATE", "0 ACTIVATE 1"), ("0 ACTIVATE", "1 ACTIVATE 1")),
        ("order", ("5 ACTIVATE", "4 ACTIVATE 1"), ("4 ACTIVATE 1", "5 ACTIVATE")),
    ],
)
def test_each_limit_is_found_to_the_clock(rule, early, late):
    assert rules(trace(*early)) == [rule]
    assert rules(trace(*late)) == []


def test_five_activates_in_the_window_are_found():
    dram = replace(DRAM, mapping="row8 bank2 group2 column4")
    groups = (0, 1, 2, 3)
    first = [f"{6 * n} ACTIVATE 0 {group}" for n, group in enumerate(groups)]
    assert rules(trace(*first, "25 ACTIVATE 0 0 1"), dram) == ["tfaw"]
    assert rules(trace(*first, "26 ACTIVATE 0 0 1"), dram) == []


def test_data_that_overlap_are_found():
    timing = replace(DRAM.timing, burst=10, tccd_l=5, trtw=13)
    commands = trace("0 ACTIVATE", "30 READ", "39 READ")
    assert rules(commands, replace(DRAM, timing=timing)) == ["burst"]


def test_two_command_buses_carry_a_row_command_and_a_read():
    both = trace("0 ACTIVATE", "30 READ", "30 ACTIVATE 0 1")
    assert rules(both) == ["command bus"]
    dual = replace(DRAM, dual_command_bus=True)
    assert rules(both, dual) == []
    twice = trace("0 ACTIVATE", "30 READ", "30 ACTIVATE 0 1", "30 ACTIVATE 1")
    assert rules(twice, dual) == ["command bus"]


def test_refreshes_that_come_late_or_never_are_found():
    dram = replace(DRAM, mapping="row8 bank1 group1 column4")
    on_time, late = trace("4000 REFRESH", "6000 REFRESH"), trace("4000 REFRESH", "6001 REFRESH")
    assert rules(on_time, dram) == []
    assert rules(late, dram) == ["trefi"]
    assert rules(on_time, dram, end_clock=8001) == ["trefi"]
    assert rules(trace(), dram, end_clock=4000) == []
    assert rules(trace(), dram, end_clock=4001) == ["trefi"]


def test_a_violation_says_what_must_hold():
    (violation,) = check_commands(DRAM, trace("0 ACTIVATE", "10 READ"))
    assert (violation.clock, violation.command) == (10, 1)
    assert violation.text == "READ at clock 10: must come 11 clocks after ACTIVATE (trcd), not 10"


def _addresses(kind: str, dram: DramMemory, count: int = 4000) -> np.ndarray:
    rng = np.random.default_rng(5)
    blocks = dram.size_bytes // dram.access_bytes
    numbers = {
        "sequential": np.arange(count),
        "random": rng.integers(0, blocks, count),
        "rows": (rng.integers(0, blocks // 8, count // 8)[:, None] * 8 + np.arange(8)).reshape(-1),
    }
    return (numbers[kind] * dram.access_bytes).astype(np.uint64)


@pytest.mark.parametrize("kind", ["sequential", "random", "rows"])
@pytest.mark.parametrize("dram", [DRAM, *DRAM_PRESETS.values()], ids=lambda dram: dram.name)
def test_the_model_breaks_no_limit(dram, kind):
    run = run_accesses(dram, _addresses(kind, dram))
    assert check_commands(dram, run.commands, end_clock=run.clocks) == []
    assert (run.commands["kind"] == COMMANDS.index("READ")).sum() == 4000
    assert run.refreshes >= run.clocks // dram.timing.trefi - 1


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["sequential", "random", "rows"])
@pytest.mark.parametrize("dram", [DRAM, *DRAM_PRESETS.values()], ids=lambda dram: dram.name)
def test_reads_and_writes_break_no_limit(dram, kind, share):
    addresses = _addresses(kind, dram)
    writes = np.random.default_rng(6).random(len(addresses)) < share
    run = run_accesses(dram, addresses, writes=writes)
    assert check_commands(dram, run.commands, end_clock=run.clocks) == []
    counts = [(run.commands["kind"] == COMMANDS.index(kind)).sum() for kind in ("READ", "WRITE")]
    assert counts == [(~writes).sum(), writes.sum()]


@pytest.mark.parametrize(
    "rule",
    [
        *("trcd", "trp", "trc", "trtp", "trrd_s", "trrd_l", "tfaw", "tccd_l", "trfc"),
        *("twr", "twtr_s", "twtr_l", "trtw"),
    ],
)
def test_a_model_with_a_limit_one_short_is_found(rule):
    # Where tRC is the longer one, tRAS + tRP never binds.
    timing = replace(DRAM.timing, trc=0 if rule == "trp" else DRAM.timing.trc)
    dram = replace(DRAM, mapping="row8 bank2 group2 column2", timing=timing)
    timing = replace(dram.timing, **{rule: getattr(dram.timing, rule) - 1})
    addresses = _addresses("random", dram)
    writes = np.arange(len(addresses)) % 3 == 0
    run = run_accesses(replace(dram, timing=timing), addresses, writes=writes)
    assert set(rules(run.commands, dram)) == {rule}
