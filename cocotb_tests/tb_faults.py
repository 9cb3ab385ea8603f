"""Programs that are stopped, by a fault, an abort or a reset, and the good program after each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from cocotb_tests.drivers import Bench, bench_config, bench_test
from cocotb_tests.lookups import (
    GOOD,
    case_named,
    end_and_check,
    expected_fault,
    launch_case,
    run_and_check,
    with_indices,
)
from cocotb_tests.monitors import Seen
from cocotb_tests.plan import Plan
from cocotb_tests.responder import ReadResponder
from cocotb_tests.scoreboard import check_queues
from ember_hw.config import LINE_BYTES
from ember_hw.host.launch import Launch
from ember_hw.isa import ISA_VERSION, Microcode
from ember_hw.registers import NO_UNIT, FaultCode, State
from ember_hw.rtl.axi import Response

#: Cycles from the start to an abort or a reset: loops filling, lines, rows, the end. A reset within
#: a burst is the hardest; bursts are four beats.
_ABORT_CYCLES = (0, 7, 20, 33, 45, 60, 75, 97, 130, 180, 260)
_RESET_CYCLES = (0, 11, 33, 60, 97, *range(120, 360, 15))


def _with_microcode(launch: Launch, record: str, **fields: int) -> Launch:
    changes = {(record, name): value for name, value in fields.items()}
    return replace(launch, microcode=launch.microcode.with_fields(changes))


async def _stops_as_the_interpreter(bench: Bench, launch: Launch, good: Launch) -> None:
    """Run a program that faults; what it delivered must be the beginning of the good one."""
    await bench.begin(launch)
    seen = await bench.end(State.FAULTED)
    assert await bench.fault() == expected_fault(launch)
    check_queues(good, seen, is_whole=False)
    await run_and_check(bench, good, case_named("lengths_mixed"))
    assert await bench.fault() == (FaultCode.NONE, 0, 0, 0)


@bench_test
@cocotb.parametrize(
    (
        ("offset", "index", "opt_level"),
        ((0, 50, 3), (17, -1, 3), (60, (1 << 31) - 1, 3), (17, 50, 1), (60, -1, 2)),
    )
)
async def test_index_out_of_range(dut: Any, offset: int, index: int, opt_level: int) -> None:
    bench = Bench(dut)
    await bench.reset()
    good = launch_case(case_named("lengths_mixed"), bench.config, opt_level=opt_level)
    await _stops_as_the_interpreter(bench, with_indices(good, {offset: index}), good)


@bench_test
@cocotb.parametrize(index=(1 << 31, -(1 << 31) - 1, 1 << 40))
async def test_index_too_wide(dut: Any, index: int) -> None:
    bench = Bench(dut)
    await bench.reset()
    good = launch_case(case_named("lengths_mixed"), bench.config)
    await _stops_as_the_interpreter(bench, with_indices(good, {11: index}), good)


@bench_test
@cocotb.parametrize(unit=(0, 1))
async def test_stream_out_of_bounds(dut: Any, unit: int) -> None:
    bench = Bench(dut)
    await bench.reset()
    good = launch_case(case_named("lengths_mixed"), bench.config)
    record = f"unit{unit}.stream0"
    short = good.microcode.get(record, "elements") - 1
    bad = _with_microcode(good, record, elements=short)
    await _stops_as_the_interpreter(bench, bad, good)


@bench_test
@cocotb.parametrize(bad=("clip", "pitch", "length"))
async def test_row_out_of_bounds(dut: Any, bad: str) -> None:
    """A part that begins beyond its row, rows that overlap, and rows without a byte."""
    bench = Bench(dut)
    await bench.reset()
    good = launch_case(case_named("lengths_mixed"), bench.config, opt_level=1)
    value = 0 if bad == "length" else good.microcode.get("row0", bad) - bench.config.bus_bytes
    wrong = _with_microcode(good, "row0", **{bad: value})
    await bench.begin(wrong)
    await bench.end(State.FAULTED)
    assert await bench.fault() == expected_fault(wrong)
    assert (await bench.fault())[0] is FaultCode.ROW_OUT_OF_BOUNDS
    await run_and_check(bench, good, case_named("lengths_mixed"))


@bench_test
@cocotb.parametrize(what=("stream", "row"))
async def test_address_overflow(dut: Any, what: str) -> None:
    """An offset and a table that lie beyond the address width; neither is asked for."""
    bench = Bench(dut)
    await bench.reset()
    good = launch_case(case_named("lengths_mixed"), bench.config)
    end = 1 << bench.config.address_width_bits
    if what == "row":
        wrong = _with_microcode(good, "row0", base=end - 1024)
        assert good.microcode.get("row0", "region_bytes") > 1024
    else:
        base = end - LINE_BYTES
        wrong = _with_microcode(good, "unit0.stream0", base=base)
        regions = [
            replace(r, base=base, data=r.data[:LINE_BYTES]) if r.symbol == "off" else r
            for r in good.regions
        ]
        wrong = replace(wrong, regions=tuple(regions))
    await bench.begin(wrong)
    await bench.end(State.FAULTED)
    assert await bench.fault() == expected_fault(wrong)
    assert (await bench.fault())[0] is FaultCode.ADDRESS_OVERFLOW
    await run_and_check(bench, good, case_named("lengths_mixed"))


@bench_test
@cocotb.parametrize(
    fault=("version", "no_unit", "hole", "step"),
)
async def test_program_that_may_not_start(dut: Any, fault: str) -> None:
    """It reads nothing and delivers nothing."""
    bench = Bench(dut)
    await bench.reset()
    good = launch_case(GOOD, bench.config)
    code = FaultCode.ILLEGAL_MICROCODE
    match fault:
        case "version":
            code = FaultCode.BAD_VERSION
            bad = _with_microcode(good, "header", version=ISA_VERSION + 1)
        case "no_unit":
            bad = replace(good, microcode=Microcode(bench.config))
        case "hole":
            bad = _with_microcode(good, "unit0", enable=0)
        case _:
            bad = _with_microcode(good, "unit1", step=0)
    await bench.begin(bad)
    seen = await bench.end(State.FAULTED)
    assert await bench.fault() == (code, NO_UNIT, 0, 0)
    assert seen == Seen(irqs=1)
    await run_and_check(bench, good, GOOD)


@bench_test
@cocotb.parametrize(what=("offsets", "indices", "row"))
async def test_memory_answers_slverr(dut: Any, what: str) -> None:
    bench = Bench(dut)
    await bench.reset()
    lookup = case_named("length_17")
    launch = launch_case(lookup, bench.config)
    plan = Plan(launch)
    if what == "row":
        bursts = [burst for burst in plan.bursts if plan.bursts.count(burst) == 1]
        address, beats = bursts[len(bursts) // 2]
        bad = address + (beats - 1) * bench.config.bus_bytes
        where, failed_beat = (NO_UNIT, 0), plan.beat_number(bad)
    else:
        unit = 0 if what == "offsets" else 1
        address = bad = plan.lines[unit * bench.config.streams_per_unit][-1]
        where, failed_beat = (unit, 0), None
    await bench.begin(launch, bad=[bad])
    seen = await bench.end(State.FAULTED)
    assert await bench.fault() == (FaultCode.READ_SLAVE_ERROR, *where, address)
    check_queues(launch, seen, is_whole=False, failed_beat=failed_beat)
    await run_and_check(bench, launch, lookup)


@bench_test
@cocotb.parametrize(cycles=_ABORT_CYCLES)
async def test_abort(dut: Any, cycles: int) -> None:
    """At any cycle: what was delivered is right, and the program after it too, without a reset."""
    bench = Bench(dut, stall_share=0.1)
    await bench.reset()
    lookup = case_named("lengths_mixed")
    launch = launch_case(lookup, bench.config)
    await bench.begin(launch)
    await ClockCycles(dut.clk, cycles + 1)
    await bench.abort()
    state = await bench.state_is(State.DONE, State.FAULTED)
    if state is State.FAULTED:
        seen = await bench.end(State.FAULTED)
        assert await bench.fault() == (FaultCode.ABORTED, NO_UNIT, 0, 0)
        check_queues(launch, seen, is_whole=False)
    else:  # the program was quicker
        assert cycles > 100
        await end_and_check(bench, launch, lookup)
    await run_and_check(bench, launch, lookup)


@bench_test
async def test_abort_of_nothing_does_nothing(dut: Any) -> None:
    bench = Bench(dut)
    await bench.reset()
    launch = launch_case(GOOD, bench.config)
    for wanted in (State.IDLE, State.DONE):
        await bench.abort()
        await ClockCycles(dut.clk, 50)
        assert await bench.state() is wanted
        assert bench.monitor.clear().irqs == 0
        await run_and_check(bench, launch, GOOD)


@bench_test
@cocotb.parametrize(cycles=_RESET_CYCLES)
async def test_reset(dut: Any, cycles: int) -> None:
    """At any cycle, together with the memory: nothing of the program before it is left."""
    bench = Bench(dut, stall_share=0.1)
    await bench.reset()
    lookup = case_named("lengths_mixed")
    other = case_named("dim_17")
    await bench.begin(launch_case(lookup, bench.config))
    await ClockCycles(dut.clk, cycles + 1)
    await bench.reset()
    assert await bench.fault() == (FaultCode.NONE, 0, 0, 0)
    await run_and_check(bench, launch_case(other, bench.config), other)


@bench_test
@cocotb.parametrize(stops=("fault", "abort"))
async def test_stop_resets_queues_that_nobody_drains(dut: Any, stops: str) -> None:
    """While reads are awaited, what is shown stays (the monitor holds that); then it may go."""
    memory = ReadResponder(dut, bench_config(), seed=cocotb.RANDOM_SEED, stall_share=0.5)
    bench = Bench(dut, stall_share=0.0, memory=memory)
    await bench.reset()
    lookup = case_named("lengths_mixed")
    good = launch_case(lookup, bench.config)
    bench.bundles.pause = bench.rows.pause = True
    await bench.begin(good)
    while not dut.m_axis_row_tvalid.value:
        await ClockCycles(dut.clk, 1)
    if stops == "fault":  # of the reads that are in flight now
        memory.errors = lambda beat_address: Response.SLAVE_ERROR
    else:
        await bench.abort()
    seen = await bench.end(State.FAULTED)
    assert not seen.bundles
    assert not seen.row_beats
    assert seen.queue_reset_cycles > 0
    memory.errors = lambda beat_address: Response.OKAY
    bench.bundles.pause = bench.rows.pause = False
    await run_and_check(bench, good, lookup)


@bench_test
async def test_many_programs_of_which_some_fail(dut: Any) -> None:
    random = np.random.default_rng(cocotb.RANDOM_SEED)
    bench = Bench(dut)
    await bench.reset()
    lookup = case_named("lengths_mixed")
    good = launch_case(lookup, bench.config)
    for _ in range(12):
        bench.set_stalls(float(random.choice([0.0, 0.2, 0.6])))
        match random.choice(["good", "index", "abort"]):
            case "good":
                await run_and_check(bench, good, lookup)
            case "index":
                bad = with_indices(good, {int(random.integers(0, 61)): 50})
                await bench.begin(bad)
                check_queues(good, await bench.end(State.FAULTED), is_whole=False)
                assert await bench.fault() == expected_fault(bad)
            case _:
                await bench.begin(good)
                await ClockCycles(dut.clk, int(random.integers(1, 100)))
                await bench.abort()
                await bench.state_is(State.FAULTED, State.DONE)
                await bench.end(await bench.state())
    await run_and_check(bench, good, lookup)
