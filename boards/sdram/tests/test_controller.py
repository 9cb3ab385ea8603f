"""The controller against its chip: order, data, tags, timing; stalls on all sides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ember_hw.boards.sdram.chip import BURST_WORDS
from ember_hw.boards.sdram.layouts import BEAT_BITS
from ember_hw.boards.sdram.model import COMMAND_DTYPE as SEEN_DTYPE
from ember_hw.boards.sdram.pins import ALL_BANKS_PIN, Command
from ember_hw.boards.sdram.tests.chips import CLOCK_MHZ, SMALL, attach, controller
from ember_hw.rtl.tests.harness import Bench, gaps, payloads, refuses
from ember_hw.sim.dram import DramMemory, DramTiming
from ember_hw.sim.memory_library import COMMAND_DTYPE, COMMANDS
from ember_hw.sim.timing_check import check_commands

pytestmark = pytest.mark.rtl

PAGE = SMALL.page_beats
BEATS = 1 << SMALL.beat_address_bits
#: Beats among which random requests fall: 16 rows, four a bank.
REGION = 16 * PAGE


def _beat(words: np.ndarray, number: int) -> int:
    return int.from_bytes(words[number * BURST_WORDS :][:BURST_WORDS].tobytes(), "little")


def _read(beat: int, length: int = 0, tag: int = 0) -> dict[str, int]:
    return {"beat": beat, "length": length, "write": 0, "tag": tag}


def _fill(model, seed: int) -> np.ndarray:
    model.words[:] = np.random.default_rng(seed).integers(0, 1 << 16, len(model.words))
    return model.words.copy()


@pytest.mark.parametrize(
    ("stall", "seed", "clock_mhz"), [(0.0, 1, 100.0), (0.5, 2, 100.0), (0.3, 3, 133.0)]
)
def test_random_reads_and_writes(stall, seed, clock_mhz):
    dut = controller(tag_bits=4, clock_mhz=clock_mhz)
    bench = Bench(dut, seed=seed)
    model = attach(bench, dut)
    words = _fill(model, seed)
    requests, written, expected = [], [], []
    for _ in range(40):
        length = bench.random.choice([0, 0, 1, 3, PAGE])
        first = bench.random.randrange(REGION - length)
        tag, is_write = bench.random.randrange(16), int(bench.random.random() < 0.4)
        requests.append({"beat": first, "length": length, "write": is_write, "tag": tag})
        for number in range(first, first + length + 1):
            if is_write:
                data = bench.random.getrandbits(BEAT_BITS)
                lanes = bench.random.choice([0xFFFF, bench.random.getrandbits(16)])
                written.append({"data": data, "bytes": lanes})
                place = words[number * BURST_WORDS :][:BURST_WORDS].view(np.uint8)
                new = np.frombuffer(data.to_bytes(16, "little"), np.uint8)
                mask = np.array([lanes >> i & 1 for i in range(16)], bool)
                place[mask] = new[mask]
            else:
                last = int(number == first + length)
                expected.append({"data": _beat(words, number), "tag": tag, "last": last})
    bench.send(dut.request, requests, stall=stall)
    bench.send(dut.write_data, written, stall=stall)
    beats = bench.receive(dut.response, len(expected), stall=stall)
    bench.run(30_000)
    assert payloads(beats) == expected
    assert model.violations() == []


def test_reads_of_an_open_row_follow_each_other_without_a_gap():
    dut = controller()
    bench = Bench(dut)
    model = attach(bench, dut)
    words = _fill(model, 0)
    bench.send(dut.request, [_read(0, 3), _read(4, 3)])
    beats = bench.receive(dut.response, 8)
    bench.run(2000)
    assert [item.payload["data"] for item in beats] == [_beat(words, i) for i in range(8)]
    assert gaps(beats) == {BURST_WORDS}
    assert model.violations() == []


def test_row_of_the_next_bank_opens_while_data_moves():
    dut = controller()
    bench = Bench(dut)
    model = attach(bench, dut)
    _fill(model, 0)
    # Other rows of all banks in turn, one beat each, none open when it is asked for.
    requests = [_read((4 * row + bank) * PAGE) for row in range(2, 5) for bank in range(4)]
    bench.send(dut.request, requests)
    beats = bench.receive(dut.response, len(requests))
    bench.run(2000)
    assert gaps(beats) == {BURST_WORDS}
    assert model.violations() == []


def test_reads_wait_for_room_and_lose_nothing():
    dut = controller(tag_bits=6)
    bench = Bench(dut)
    model = attach(bench, dut)
    words = _fill(model, 0)
    bench.send(dut.request, [_read(i, 0, i) for i in range(40)])
    beats = bench.receive(dut.response, 40, start=1500)
    bench.run(3000)
    expected = [{"data": _beat(words, i), "tag": i, "last": 1} for i in range(40)]
    assert payloads(beats) == expected
    assert model.violations() == []


def test_write_waits_for_its_data_and_refreshes_go_on():
    dut = controller()
    bench = Bench(dut)
    model = attach(bench, dut, keep_trace=True)
    bench.send(dut.request, [{"beat": 5, "length": 0, "write": 1, "tag": 0}, _read(5)])
    bench.send(dut.write_data, [{"data": 1 << 100, "bytes": 0xFFFF}], start=1500)
    beats = bench.receive(dut.response, 1)
    bench.run(3000)
    assert payloads(beats) == [{"data": 1 << 100, "tag": 0, "last": 1}]
    refreshes = np.count_nonzero(model.trace()["command"] == Command.REFRESH.value)
    assert refreshes >= 8 + 1400 // dut.clocks.trefi
    assert model.violations() == []


def test_commands_pass_the_checker_of_the_dram_models():
    """The simulated channels' checker, which shares nothing with the chip's model."""
    dut = controller()
    bench = Bench(dut, seed=5)
    model = attach(bench, dut, keep_trace=True)
    requests = [_read(bench.random.randrange(REGION - 4), 3) for _ in range(100)]
    bench.send(dut.request, requests)
    bench.receive(dut.response, 400)
    bench.run(20_000)
    c = dut.clocks
    timing = DramTiming(
        burst=BURST_WORDS, cl=c.cl, trcd=c.trcd, trp=c.trp, tras=c.tras, trc=c.trc,
        trtp=BURST_WORDS, trrd_s=c.trrd, trrd_l=c.trrd, tfaw=0, tccd_s=BURST_WORDS,
        tccd_l=BURST_WORDS, trfc=c.trfc, trefi=c.trefi, cwl=0, twr=0, twtr_s=0, twtr_l=0,
        trtw=c.cl + BURST_WORDS,
    )  # fmt: skip
    dram = DramMemory(
        name="small", timing=timing, mapping="row11 bank2 column5", access_bytes=16,
        memory_khz=100_000, unit_khz=100_000,
    )  # fmt: skip
    commands = _translate(model.trace(), dut.chip.row_bits)
    assert len(commands) > 450
    assert check_commands(dram, commands) == []
    # The checker isn't blind: the same commands are too fast for a slower chip.
    slower = replace(dram, timing=replace(timing, trcd=c.trcd + 1))
    assert {found.rule for found in check_commands(slower, commands)} == {"trcd"}


def _translate(trace: np.ndarray, row_bits: int) -> np.ndarray:
    assert trace.dtype == SEEN_DTYPE
    (mode,) = np.flatnonzero(trace["command"] == Command.LOAD_MODE.value)
    seen = trace[mode + 1 :]
    names = {
        Command.ACTIVATE: "ACTIVATE",
        Command.READ: "READ",
        Command.REFRESH: "REFRESH",
        Command.PRECHARGE: "PRECHARGE",
    }
    commands = np.zeros(len(seen), COMMAND_DTYPE)
    commands["clock"] = seen["clock"] - trace["clock"][mode]
    commands["bank"] = seen["bank"]
    open_row = dict.fromkeys(range(4), 0)
    for command, (_, kind, bank, address) in zip(commands, seen.tolist(), strict=True):
        name = names[Command(kind)]
        if name == "PRECHARGE" and address >> ALL_BANKS_PIN & 1:
            name = "PRECHARGE_ALL"
        if name == "ACTIVATE":
            open_row[bank] = address
        command["kind"] = COMMANDS.index(name)
        command["row"] = open_row[bank]
    return commands


def test_impossible_parameters_are_refused():
    with refuses("tag_bits must be at least 1, not 0"):
        controller(tag_bits=0)
    with refuses("pad_clocks must be at least 0, not -1"):
        controller(pad_clocks=-1)
    with refuses("clock of small must be at most 133 MHz, not 200.0"):
        controller(clock_mhz=200.0)
    assert CLOCK_MHZ == 100.0
