"""Memories that answer as AXI allows but few do: in any order, interleaved, late, failing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import cocotb
from cocotb.triggers import ClockCycles

from cocotb_tests.drivers import Bench, bench_config, bench_test
from cocotb_tests.lookups import (
    GOOD,
    case_named,
    end_and_check,
    expected_fault,
    launch_case,
    run_and_check,
)
from cocotb_tests.plan import Plan
from cocotb_tests.responder import ReadResponder
from cocotb_tests.scoreboard import check_queues
from ember_hw.config import LINE_BYTES
from ember_hw.registers import NO_UNIT, FaultCode, State
from ember_hw.rtl.axi import Response

_CODES = {
    Response.SLAVE_ERROR: FaultCode.READ_SLAVE_ERROR,
    Response.DECODE_ERROR: FaultCode.READ_DECODE_ERROR,
}


@bench_test
@cocotb.parametrize(order=("fifo", "lifo", "random"), interleave=(False, True))
async def test_reads_return_in_any_order(
    dut: Any, order: Literal["fifo", "lifo", "random"], interleave: bool
) -> None:
    memory = ReadResponder(
        dut,
        bench_config(),
        seed=cocotb.RANDOM_SEED,
        order=order,
        interleave=interleave,
        latency_cycles=(1, 60),
        stall_share=0.2,
    )
    bench = Bench(dut, stall_share=0.1, memory=memory)
    await bench.reset()
    for name, opt_level in (("length_17", 3), ("lengths_mixed", 2), ("dim_17", 1), ("dim_17", 0)):
        lookup = case_named(name)
        launch = launch_case(lookup, bench.config, opt_level=opt_level)
        await run_and_check(bench, launch, lookup)
    assert memory.reorderings > 20 or order == "fifo"


@bench_test
async def test_latest_of_all_reads_in_flight_returns_first(dut: Any) -> None:
    memory = ReadResponder(
        dut, bench_config(), seed=cocotb.RANDOM_SEED, order="lifo", gather=4, latency_cycles=(1, 1)
    )
    bench = Bench(dut, stall_share=0.0, memory=memory)
    await bench.reset()
    lookup = case_named("length_17")
    await run_and_check(bench, launch_case(lookup, bench.config), lookup)
    assert memory.reorderings > 30


@bench_test
@cocotb.parametrize(latency_cycles=(300, 2500))
async def test_memory_is_very_late(dut: Any, latency_cycles: int) -> None:
    memory = ReadResponder(
        dut,
        bench_config(),
        seed=cocotb.RANDOM_SEED,
        latency_cycles=(latency_cycles, latency_cycles),
    )
    bench = Bench(dut, stall_share=0.0, memory=memory)
    await bench.reset()
    await run_and_check(bench, launch_case(GOOD, bench.config), GOOD)


@bench_test
@cocotb.parametrize(
    response=(Response.SLAVE_ERROR, Response.DECODE_ERROR),
    beat=("first", "middle", "last"),
    interleave=(False, True),
)
async def test_error_on_one_beat_of_a_row(
    dut: Any, response: Response, beat: str, interleave: bool
) -> None:
    """The fault names the burst; what was delivered before is right; the next program too."""
    order = "random" if interleave else "fifo"
    memory = ReadResponder(
        dut,
        bench_config(),
        seed=cocotb.RANDOM_SEED,
        order=order,
        interleave=interleave,
        latency_cycles=(1, 30),
    )
    bench = Bench(dut, stall_share=0.1, memory=memory)
    await bench.reset()
    lookup = case_named("length_17")
    launch = launch_case(lookup, bench.config)
    # A row that is read once, so that one beat alone fails.
    plan = Plan(launch)
    bursts = plan.bursts
    address, beats = next(burst for burst in bursts[len(bursts) // 3 :] if bursts.count(burst) == 1)
    number = {"first": 0, "middle": beats // 2, "last": beats - 1}[beat]
    bad = address + number * bench.config.bus_bytes
    memory.errors = lambda beat_address: response if beat_address == bad else Response.OKAY
    await bench.begin(launch)
    seen = await bench.end(State.FAULTED)
    assert await bench.fault() == (_CODES[response], NO_UNIT, 0, address)
    check_queues(launch, seen, is_whole=False, failed_beat=plan.beat_number(bad))
    memory.errors = lambda beat_address: Response.OKAY
    await run_and_check(bench, launch, lookup)


@bench_test
@cocotb.parametrize(
    response=(Response.SLAVE_ERROR, Response.DECODE_ERROR), unit=(0, 1), line=(0, -1)
)
async def test_error_on_an_index_line(dut: Any, response: Response, unit: int, line: int) -> None:
    memory = ReadResponder(dut, bench_config(), seed=cocotb.RANDOM_SEED, latency_cycles=(1, 30))
    bench = Bench(dut, stall_share=0.1, memory=memory)
    await bench.reset()
    lookup = case_named("lengths_mixed")
    launch = launch_case(lookup, bench.config)
    address = Plan(launch).lines[unit * bench.config.streams_per_unit][line]
    bad = address + LINE_BYTES - LINE_BYTES // bench.config.line_beats  # its last beat
    memory.errors = lambda beat_address: response if beat_address == bad else Response.OKAY
    await bench.begin(launch)
    seen = await bench.end(State.FAULTED)
    assert await bench.fault() == (_CODES[response], unit, 0, address)
    check_queues(launch, seen, is_whole=False)
    memory.errors = lambda beat_address: Response.OKAY
    await run_and_check(bench, launch, lookup)


@bench_test
async def test_all_reads_fail(dut: Any) -> None:
    memory = ReadResponder(
        dut,
        bench_config(),
        seed=cocotb.RANDOM_SEED,
        order="random",
        interleave=True,
        latency_cycles=(1, 50),
    )
    bench = Bench(dut, memory=memory)
    await bench.reset()
    launch = launch_case(GOOD, bench.config)
    memory.errors = lambda beat_address: Response.DECODE_ERROR
    await bench.begin(launch)
    seen = await bench.end(State.FAULTED)
    assert (await bench.fault())[0] is FaultCode.READ_DECODE_ERROR
    assert not seen.row_beats
    memory.errors = lambda beat_address: Response.OKAY
    await run_and_check(bench, launch, GOOD)


@bench_test
async def test_table_that_no_memory_holds(dut: Any) -> None:
    """The interpreter, which knows the same memory, gives the same fault."""
    memory = ReadResponder(dut, bench_config(), seed=cocotb.RANDOM_SEED)
    bench = Bench(dut, memory=memory)
    await bench.reset()
    launch = launch_case(GOOD, bench.config)
    await bench.begin(launch)
    table = next(region for region in launch.regions if region.symbol == "tab")
    memory.regions = [(base, data) for base, data in memory.regions if base != table.base]
    unmapped = replace(launch, regions=tuple(r for r in launch.regions if r is not table))
    await bench.end(State.FAULTED)
    assert await bench.fault() == expected_fault(unmapped)
    await run_and_check(bench, launch, GOOD)


@bench_test
async def test_fault_waits_for_all_reads_in_flight(dut: Any) -> None:
    """While reads are in flight the unit drains; answers after that would be a ghost."""
    memory = ReadResponder(dut, bench_config(), seed=cocotb.RANDOM_SEED, latency_cycles=(600, 600))
    bench = Bench(dut, stall_share=0.0, memory=memory)
    await bench.reset()
    lookup = case_named("length_17")
    launch = launch_case(lookup, bench.config)
    await bench.begin(launch)
    while bench.monitor.seen.most_row_reads < 4:
        await ClockCycles(dut.clk, 10)
    await bench.abort()
    assert await bench.state() is State.DRAINING
    assert bench.monitor.outstanding > 0
    await bench.end(State.FAULTED)
    assert (await bench.fault())[0] is FaultCode.ABORTED
    await bench.begin(launch)
    await end_and_check(bench, launch, lookup)
