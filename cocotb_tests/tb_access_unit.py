"""Whole lookups: queues, pooled rows, reads and counters, with stalls on every channel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cocotb
import numpy as np
import pytest
from cocotb.triggers import ClockCycles

from cocotb_tests.drivers import Bench, bench_config, bench_test, named
from cocotb_tests.lookups import GOOD, case_named, end_and_check, launch_case, run_and_check
from cocotb_tests.monitors import Seen
from cocotb_tests.plan import Plan
from cocotb_tests.responder import ReadResponder
from cocotb_tests.scoreboard import check_pooled, check_queues
from ember_hw.host.tests.cases import Case
from ember_hw.registers import State

CHOSEN = (
    "bags",
    "empty_first",
    "empty_middle",
    "empty_last",
    "empty_everywhere",
    "no_bag",
    "one_lookup",
    "lengths_mixed",
    "dim_1",
    "dim_17",
    "dim_64",
    "int32_indices",
    "2d_int32",
    "trailing_poisoned",
    "zero_row_table",
)


@bench_test
@cocotb.parametrize(case=named(CHOSEN))
async def test_lookup(dut: Any, case: str) -> None:
    bench = Bench(dut)
    await bench.reset()
    lookup = case_named(case)
    await run_and_check(bench, launch_case(lookup, bench.config), lookup)


@bench_test
@cocotb.parametrize(opt_level=(0, 1, 2), case=named(("empty_everywhere", "dim_17")))
async def test_opt_level(dut: Any, opt_level: int, case: str) -> None:
    bench = Bench(dut)
    await bench.reset()
    lookup = case_named(case)
    launch = launch_case(lookup, bench.config, opt_level=opt_level)
    await run_and_check(bench, launch, lookup)


@bench_test
async def test_programs_follow_each_other_without_reset(dut: Any) -> None:
    bench = Bench(dut)
    await bench.reset()
    for number, name in enumerate(CHOSEN):
        bench.set_stalls((0.0, 0.5, 0.1)[number % 3])
        lookup = case_named(name)
        launch = launch_case(lookup, bench.config, opt_level=3 - number % 3)
        await run_and_check(bench, launch, lookup)


@bench_test
@cocotb.parametrize(opt_level=(0, 3))
async def test_program_compiled_from_torch(dut: Any, opt_level: int) -> None:
    import torch

    import ember_hw

    bench = Bench(dut)
    await bench.reset()
    lookup = case_named("dim_20")
    module = torch.nn.EmbeddingBag(*lookup.table().shape, mode="sum")
    with torch.no_grad():
        module.weight.copy_(torch.from_numpy(lookup.table()))
    inputs = (torch.from_numpy(lookup.indices), torch.from_numpy(lookup.offsets))
    program = ember_hw.compile(module, inputs, opt_level=opt_level, config=bench.config)
    await run_and_check(bench, launch_case(lookup, bench.config, program=program), lookup)


@bench_test
@cocotb.parametrize(embedding_dim=(15, 20, 300), before_bytes=(0, 64, 192, 960))
async def test_rows_that_cross_4_kb(dut: Any, embedding_dim: int, before_bytes: int) -> None:
    """The table begins shortly before a boundary; row r is read once, in this order: all rows."""
    bench = Bench(dut, stall_share=0.1)
    await bench.reset()
    rows = 16 if embedding_dim < 100 else 4
    lookup = Case(
        "crossing", rows, embedding_dim, np.arange(rows), np.array([0, 1]), seed=before_bytes
    )
    launch = launch_case(lookup, bench.config, bases={"tab": 0x80_0000 - before_bytes})
    seen = await run_and_check(bench, launch, lookup)
    if 0 < before_bytes < 4 * rows * embedding_dim:
        starts = [read.address for read in seen.reads if read.is_row]
        assert 0x80_0000 in starts, "no read begins at the boundary"


@bench_test
async def test_checks_find_what_is_wrong(dut: Any) -> None:
    """A wrong table, a lost bundle, a lost row beat and a read too many each turn a check red."""
    bench = Bench(dut)
    await bench.reset()
    launch = launch_case(GOOD, bench.config)
    await bench.begin(launch)
    seen = await bench.end()
    plan = Plan(launch)
    check_queues(launch, seen)
    check_pooled(launch, seen, GOOD.expected())
    plan.check(seen.reads)

    poisoned = replace(GOOD, seed=GOOD.seed + 1)
    with pytest.raises(AssertionError, match="pooled rows must be"):
        check_pooled(launch, seen, poisoned.expected())
    with pytest.raises(AssertionError, match="bytes of row beat 0 must be"):
        check_queues(launch_case(poisoned, bench.config), seen)
    with pytest.raises(AssertionError, match="bundles, row beats must be"):
        check_queues(launch, replace(seen, bundles=seen.bundles[1:]))
    with pytest.raises(AssertionError, match="bundles, row beats must be"):
        check_queues(launch, replace(seen, row_beats=seen.row_beats[:-1]))
    with pytest.raises(AssertionError, match="events of bundle 0 must be"):
        check_queues(launch, replace(seen, bundles=seen.bundles[::-1]), is_whole=False)
    with pytest.raises(AssertionError, match="row reads must be"):
        plan.check([*seen.reads, seen.reads[-1]])
    with pytest.raises(AssertionError, match="lines of unit 0, stream 0 must be"):
        plan.check([read for read in seen.reads if read.is_row])


@bench_test
async def test_nothing_happens_without_a_start(dut: Any) -> None:
    bench = Bench(dut, stall_share=0.0)
    await bench.reset()
    launch = launch_case(GOOD, bench.config)
    bench.map(launch.regions)
    await bench.load(launch.microcode)
    await ClockCycles(dut.clk, 300)
    assert bench.monitor.clear() == Seen()
    assert await bench.state() is State.IDLE
    await run_and_check(bench, launch, GOOD)


@bench_test
@cocotb.parametrize(queue=("bundles", "rows", "both"))
async def test_queues_that_are_not_drained_stop_the_unit(dut: Any, queue: str) -> None:
    """An execute side that takes nothing loses nothing, and stops all reads after a while."""
    bench = Bench(dut, stall_share=0.0)
    await bench.reset()
    lookup = case_named("lengths_mixed")
    launch = launch_case(lookup, bench.config, opt_level=1)
    bench.bundles.pause = queue != "rows"
    bench.rows.pause = queue != "bundles"
    await bench.begin(launch)
    await ClockCycles(dut.clk, 1500)
    assert await bench.state() is State.RUNNING
    assert bench.monitor.outstanding == 0
    reads = len(bench.monitor.seen.reads)
    await ClockCycles(dut.clk, 200)
    assert len(bench.monitor.seen.reads) == reads
    bench.bundles.pause = bench.rows.pause = False
    await end_and_check(bench, launch, lookup)


@bench_test
@cocotb.parametrize(limit=(1, 3, 0))
async def test_microcode_limits_the_row_reads_in_flight(dut: Any, limit: int) -> None:
    memory = ReadResponder(dut, bench_config(), seed=cocotb.RANDOM_SEED, latency_cycles=(40, 40))
    bench = Bench(dut, stall_share=0.0, memory=memory)
    await bench.reset()
    lookup = case_named("length_17")
    launch = launch_case(lookup, bench.config)
    limited = launch.microcode.with_field("header", "outstanding_reads", limit)
    await bench.begin(replace(launch, microcode=limited))
    seen = await end_and_check(bench, launch, lookup)
    assert seen.most_row_reads == limit or (limit == 0 and seen.most_row_reads > 3)
