import re
from dataclasses import replace

import numpy as np
import pytest

from ember_hw.errors import ToolError
from ember_hw.sim import memory_library
from ember_hw.sim.dram import DRAM_PRESETS
from ember_hw.sim.memory_library import (
    COMMANDS,
    READ_DTYPE,
    build_memories,
    replay,
    run_accesses,
)
from ember_hw.sim.options import IdealMemory, LinkMemory, RandomMemory, TestMemory
from ember_hw.sim.timing_check import check_commands

DDR4 = DRAM_PRESETS["ddr4-2400"]


def reads_of(addresses: np.ndarray, beats: int = 1, beat_bytes: int = 64) -> np.ndarray:
    reads = np.zeros(len(addresses), READ_DTYPE)
    reads["address"], reads["beats"], reads["beat_bytes"] = addresses, beats, beat_bytes
    return reads


@pytest.mark.parametrize(
    ("memory", "cycles"),
    [
        (IdealMemory(latency_cycles=100), 100 + 400 - 1),
        (LinkMemory(latency_cycles=300, bytes_per_cycle=8), 300 + 400 * 8 - 1),
        (LinkMemory(latency_cycles=300, bytes_per_cycle=24), 300 + 400 * 3 - 1),
    ],
)
def test_a_bound_is_latency_and_rate(memory, cycles):
    assert replay(memory, reads_of(np.arange(100) * 256, beats=4), bus_bytes=64) == cycles


@pytest.mark.parametrize("memory", [RandomMemory(), TestMemory(seed=1)])
def test_random_latencies_end_within_their_range(memory):
    cycles = replay(memory, reads_of(np.arange(50) * 64), bus_bytes=64)
    assert memory.latency_cycles[0] <= cycles <= memory.latency_cycles[1] + 100


@pytest.mark.parametrize("name", ["ecpix5-ddr3", "ulx3s-sdram", "hbm2-pc"])
def test_sequential_reads_reach_the_peak_less_refresh(name):
    dram = DRAM_PRESETS[name]
    reads = reads_of(np.arange(2000) * 256, beats=4)
    cycles = replay(dram, reads, bus_bytes=64)
    available = 1 - dram.timing.trfc / dram.timing.trefi
    assert 2000 * 256 / (cycles * dram.peak_bytes_per_cycle) == pytest.approx(available, rel=0.02)


@pytest.mark.parametrize(
    ("bus_bytes", "beats", "accesses"), [(64, 4, 4), (16, 16, 4), (16, 1, 1), (8, 4, 1)]
)
def test_a_burst_asks_for_each_access_once(bus_bytes, beats, accesses):
    """DDR4 moves 64 bytes at a time: narrower beats share them."""
    count = 1000
    addresses = np.arange(count) * DDR4.access_bytes * 4
    wide = replay(DDR4, reads_of(addresses, accesses, 64), bus_bytes=64)
    narrow = replay(DDR4, reads_of(addresses, beats, bus_bytes), bus_bytes=bus_bytes)
    # The port carries a beat a cycle; the DRAM is as busy as with the wide port.
    assert narrow >= max(wide - 2, count * beats)
    assert narrow <= max(wide, count * beats) * 1.1 + 100


def test_a_lone_read_takes_the_sum_of_its_parts():
    timing = DDR4.timing
    clocks = timing.trcd + timing.cl + timing.burst
    # The data are there at the end of the last of these cycles, so it counts once.
    cycles = DDR4.front_cycles + clocks // 4 - 1 + DDR4.back_cycles
    assert replay(DDR4, reads_of(np.zeros(1)), bus_bytes=64) == cycles


@pytest.mark.parametrize(
    ("name", "nanoseconds"), [("ecpix5-ddr3", 320), ("hbm2-pc", 120), ("ddr4-2400", 87)]
)
def test_lone_reads_take_what_their_sources_say(name, nanoseconds):
    dram = DRAM_PRESETS[name]
    bus_bytes = 16 if name == "ecpix5-ddr3" else 64
    cycles = replay(dram, reads_of(np.zeros(1), 1, bus_bytes), bus_bytes=bus_bytes)
    assert cycles * 1e3 / dram.unit_mhz == pytest.approx(nanoseconds, rel=0.01)


def test_accesses_wait_for_their_clocks():
    run = run_accesses(DDR4, np.zeros(3, np.uint64), np.array([0, 100, 300], np.uint64))
    reads = run.commands[run.commands["kind"] == COMMANDS.index("READ")]
    assert reads["clock"].tolist() == [DDR4.timing.trcd, 100, 300]
    assert run.activates == 1
    with pytest.raises(
        ValueError, match=r"^clocks must be one for each of the 3 accesses, not \(2,\)$"
    ):
        run_accesses(DDR4, np.zeros(3, np.uint64), np.zeros(2, np.uint64))


def test_writes_are_served_in_groups():
    """All rows are open; the data bus turns around as seldom as the queue allows."""
    count = 4096
    addresses = (np.arange(count, dtype=np.uint64) % 128) * np.uint64(DDR4.access_bytes)
    writes = np.arange(count) % 2 == 1
    run = run_accesses(DDR4, addresses, writes=writes)
    kinds = run.commands["kind"]
    data = kinds[np.isin(kinds, [COMMANDS.index("READ"), COMMANDS.index("WRITE")])]
    group = DDR4.queue_entries // 2
    assert np.count_nonzero(np.diff(data)) <= 2 * (count // 2 // group + 1)
    assert (data == COMMANDS.index("WRITE")).sum() == count // 2
    reads = run_accesses(DDR4, addresses)
    assert run.clocks < 1.6 * reads.clocks
    with pytest.raises(
        ValueError, match=r"^writes must be one for each of the 3 accesses, not \(2,\)$"
    ):
        run_accesses(DDR4, np.zeros(3, np.uint64), writes=np.zeros(2, np.bool_))


@pytest.mark.parametrize("entries", [1, 2, 4])
def test_reads_get_on_while_writes_never_end(entries):
    dram = replace(DDR4, queue_entries=entries)
    addresses = np.arange(2000, dtype=np.uint64) * np.uint64(8192)
    run = run_accesses(dram, addresses, writes=np.arange(2000) % 20 != 0)
    assert check_commands(dram, run.commands, end_clock=run.clocks) == []
    assert len(run.commands) > 4000


def test_ranks_are_refreshed_in_turn_and_share_the_data_bus():
    dram = replace(DDR4, mapping="row15 rank1 bank2 group2 column7")
    run = run_accesses(dram, np.arange(40_000, dtype=np.uint64) * np.uint64(8192))
    refreshes = run.commands[run.commands["kind"] == COMMANDS.index("REFRESH")]
    assert refreshes["rank"][:4].tolist() == [0, 1, 0, 1]


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EMBER_HW_CACHE", str(tmp_path))
    return tmp_path


def test_a_missing_compiler_is_told(empty_cache, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    message = (
        "a C++ compiler must be installed, but 'no-such-compiler' is not; install g++, or set CXX"
    )
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        build_memories()


def test_a_failing_compiler_is_shown(empty_cache, monkeypatch):
    monkeypatch.setattr(memory_library, "_FLAGS", ("-fno-such-option",))
    message = r"^c\+\+ must compile the memory models, but ended with status 1:\n.*no-such-option"
    with pytest.raises(ToolError, match=message):
        build_memories()
