"""The input queue: an AXI4-Stream brings lines of indices and offsets in place of memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles

from cocotb_tests.drivers import Bench, bench_test
from cocotb_tests.lookups import GOOD, launch_case, run_and_check
from cocotb_tests.plan import Plan
from cocotb_tests.scoreboard import check_counters
from ember_hw.bench.programs.bags import embedding_bag_queue
from ember_hw.bench.programs.task import Task
from ember_hw.config import LINE_BYTES
from ember_hw.host.launch import Launch
from ember_hw.registers import NO_UNIT, WATCHDOG, FaultCode, State, stream_counter


def _task(requests: int) -> Task:
    """Return requests of three bags each, of forty lookups: lines of several sizes."""
    return embedding_bag_queue(
        cocotb.RANDOM_SEED, row_bytes=48, requests=requests, bags=3, lookups=40
    )


def _plan(task: Task, launches: list[Launch]) -> Plan:
    lines = {place: [line.tobytes() for line in lines] for place, lines in task.lines.items()}
    return Plan(launches[0], requests=[one.arguments for one in launches], lines=lines)


def _feed(bench: Bench, task: Task) -> Iterable[tuple[int, bytes]]:
    streams = bench.config.streams_per_unit
    return [(unit * streams + stream, line.tobytes()) for (unit, stream), line in task.feed]


@bench_test
@cocotb.parametrize(stall_share=(0.0, 0.4), ahead=(False, True))
async def test_lines_come_from_the_queue(dut: Any, stall_share: float, ahead: bool) -> None:
    """Before the requests or with them; no line is read from memory."""
    bench = Bench(dut, stall_share=stall_share)
    await bench.reset()
    task = _task(4)
    launches = task.launches(bench.config)
    await bench.prepare(launches[0])
    if ahead:
        bench.feed(_feed(bench, task))
        await ClockCycles(dut.clk, 200)
    for launch in launches:
        if not ahead and launch is launches[1]:
            bench.feed(_feed(bench, task))
        await bench.request(launch.arguments)
    seen = await bench.end(requests=len(launches))
    plan = _plan(task, launches)
    plan.check_output(seen)
    plan.check(seen.reads)
    assert all(read.is_row for read in seen.reads)
    words = [stream for stream, _ in _feed(bench, task) for _ in range(bench.config.line_words)]
    assert seen.queue_words == words


@bench_test
async def test_counters_of_a_queue_count_no_lines_of_memory(dut: Any) -> None:
    bench = Bench(dut)
    await bench.reset()
    task = _task(1)
    launches = task.launches(bench.config)
    await bench.prepare(launches[0])
    bench.feed(_feed(bench, task))
    await bench.start()
    seen = await bench.end()
    counters = await bench.counters()
    check_counters(_plan(task, launches), seen, counters)
    assert counters[stream_counter(0, 0, bench.config)] == 0


@bench_test
async def test_queue_that_stops(dut: Any) -> None:
    """The watchdog stops the program; what the queue held is lost; the next one is right."""
    bench = Bench(dut, stall_share=0.1)
    await bench.reset()
    task = _task(2)
    launches = task.launches(bench.config)
    await bench.write(WATCHDOG.address, 400)
    feed = list(_feed(bench, task))
    await bench.prepare(launches[0])
    bench.feed(feed[:2])
    await bench.start()
    await bench.end(State.FAULTED)
    assert await bench.fault() == (FaultCode.MEMORY_STALLED, NO_UNIT, 0, 0)
    await bench.write(WATCHDOG.address, 0)
    await bench.prepare(launches[0])
    bench.feed(feed)
    for launch in launches:
        await bench.request(launch.arguments)
    _plan(task, launches).check_output(await bench.end(requests=2))


@bench_test
@cocotb.parametrize(cycles=(20, 60, 100, 150))
async def test_abort_empties_the_queue(dut: Any, cycles: int) -> None:
    """Lines that wait within the unit, for a loop whose bounds never come, are gone with it."""
    bench = Bench(dut, stall_share=0.1)
    await bench.reset()
    task = _task(1)
    launches = task.launches(bench.config)
    await bench.prepare(launches[0])
    inner = bench.config.streams_per_unit
    bench.feed([(inner, bytes(LINE_BYTES))] * 3)
    await bench.start()
    await ClockCycles(dut.clk, cycles)
    await bench.abort()
    await bench.end(State.FAULTED)
    await bench.prepare(launches[0])
    bench.feed(_feed(bench, task))
    await bench.start()
    _plan(task, launches).check_output(await bench.end())
    await run_and_check(bench, launch_case(GOOD, bench.config), GOOD)
