"""Requests: arguments, several in flight, refused starts, watchdog, and what their fault voids."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiResp

from cocotb_tests.drivers import Bench, bench_config, bench_test
from cocotb_tests.lookups import GOOD, launch_case, run_and_check
from cocotb_tests.plan import Plan
from cocotb_tests.responder import ReadResponder
from cocotb_tests.scoreboard import check_counters
from ember_hw.bench.programs.bags import embedding_bag_requests
from ember_hw.bench.programs.task import Task
from ember_hw.config import AcceleratorConfig
from ember_hw.host.launch import Launch
from ember_hw.registers import (
    COMPLETED,
    CONTROL,
    CONTROL_JOINS,
    CONTROL_START,
    NO_UNIT,
    REQUESTS,
    WATCHDOG,
    FaultCode,
    State,
)


def _task(requests: int) -> Task:
    """Return requests of one program: three bags each, of nine lookups."""
    return embedding_bag_requests(
        cocotb.RANDOM_SEED, row_bytes=48, requests=requests, bags=3, lookups=9
    )


def _bags(config: AcceleratorConfig, requests: int) -> list[Launch]:
    return _task(requests).launches(config)


def _whole_plan(launches: list[Launch]) -> Plan:
    return Plan(launches[0], requests=[launch.arguments for launch in launches])


@bench_test
@cocotb.parametrize(stall_share=(0.0, 0.3))
async def test_requests_flow_one_behind_the_other(dut: Any, stall_share: float) -> None:
    """Each has its own arguments, and the host starts one whenever there is room."""
    bench = Bench(dut, stall_share=stall_share)
    await bench.reset()
    launches = _bags(bench.config, 2 * bench.config.request_entries + 1)
    await bench.prepare(launches[0])
    for launch in launches:
        await bench.request(launch.arguments)
    seen = await bench.end(requests=len(launches))
    plan = _whole_plan(launches)
    plan.check_output(seen)
    plan.check(seen.reads)


@bench_test
async def test_start_is_refused_when_as_many_wait_as_may(dut: Any) -> None:
    """The refused one does nothing; those that wait all run, and the counters count them all."""
    bench = Bench(dut)
    await bench.reset()
    most = bench.config.request_entries
    launches = _bags(bench.config, most + 1)
    await bench.prepare(launches[0])
    bench.bundles.pause = True
    bench.bundles.set_pause_generator(None)
    for number, launch in enumerate(launches[:most]):
        assert await bench.read(REQUESTS.address) == number
        await bench.set_arguments(launch.arguments)
        await bench.start()
    assert await bench.read(REQUESTS.address) == most
    await bench.set_arguments(launches[most].arguments)
    assert await bench.try_start() == AxiResp.SLVERR
    response = await bench.try_write(CONTROL.address, CONTROL_START.to_bytes(4, "little"))
    assert response == AxiResp.SLVERR, response
    assert await bench.read(REQUESTS.address) == most
    assert await bench.state() is State.RUNNING
    bench.bundles.pause = False
    seen = await bench.end(requests=most)
    assert seen.irqs == 1
    plan = _whole_plan(launches[:most])
    plan.check_output(seen)
    plan.check(seen.reads)
    check_counters(plan, seen, await bench.counters())
    # There is room again.
    await bench.prepare(launches[most])
    await bench.start()
    _whole_plan(launches[most:]).check_output(await bench.end())
    assert await bench.read(COMPLETED.address) == most + 1


@bench_test
async def test_completed_counts_while_others_wait(dut: Any) -> None:
    bench = Bench(dut, stall_share=0.0)
    await bench.reset()
    launches = _bags(bench.config, 2)
    await bench.prepare(launches[0])
    bench.rows.pause = True
    for launch in launches:
        await bench.request(launch.arguments)
    await ClockCycles(dut.clk, 200)
    assert await bench.read(COMPLETED.address) == 0
    bench.rows.pause = False
    while await bench.read(COMPLETED.address) == 0:
        assert await bench.read(REQUESTS.address) in (1, 2)
    bench.rows.pause = True
    assert await bench.read(COMPLETED.address) + await bench.read(REQUESTS.address) == 2
    bench.rows.pause = False
    _whole_plan(launches).check_output(await bench.end(requests=2))


@bench_test
async def test_fault_voids_all_requests(dut: Any) -> None:
    """The second of them reads beyond its region; those behind it never run."""
    bench = Bench(dut, stall_share=0.1)
    await bench.reset()
    task = _task(3)
    requests = [dict(request) for request in task.requests]
    requests[1]["off.first"] = 1 << 20
    launches = replace(task, requests=requests).launches(bench.config)
    await bench.prepare(launches[0])
    await bench.request(launches[0].arguments)
    await bench.request(launches[1].arguments)
    assert await bench.try_start() in (AxiResp.OKAY, AxiResp.SLVERR)
    await bench.end(State.FAULTED, requests=3)
    code, unit, _, address = await bench.fault()
    assert (code, unit) == (FaultCode.STREAM_OUT_OF_BOUNDS, 0), (code, unit)
    assert address == 1 << 20
    await bench.prepare(launches[2])
    await bench.start()
    _whole_plan(launches[2:]).check_output(await bench.end())


@bench_test
@cocotb.parametrize(first=(0, 40, 80, 120, 160))
async def test_start_that_joins_never_hides_a_fault(dut: Any, first: int) -> None:
    """A request faults; the next one starts at each cycle around that, taken or refused."""
    bench = Bench(dut, stall_share=0.0)
    await bench.reset()
    task = _task(2)
    requests = [dict(request) for request in task.requests]
    requests[0]["off.first"] = 1 << 20
    launches = replace(task, requests=requests).launches(bench.config)
    fault = (FaultCode.STREAM_OUT_OF_BOUNDS, 0, 0, 1 << 20)
    await bench.prepare(launches[0])
    for cycles in range(first, first + 40):
        await bench.begin_series()
        await bench.start()
        await ClockCycles(dut.clk, cycles + 1)
        before = await bench.state()
        taken = await bench.try_start() == AxiResp.OKAY
        assert not taken or before is State.RUNNING, f"{cycles} cycles later, in {before.name}"
        await bench.end(State.FAULTED, requests=2)
        assert await bench.fault() == fault, f"{cycles} cycles later"
        # And long after it.
        assert await bench.try_start() == AxiResp.SLVERR
        assert await bench.state() is State.FAULTED
        assert await bench.fault() == fault, f"{cycles} cycles later"
        assert await bench.read(REQUESTS.address) == 0
    await bench.prepare(launches[1])
    await bench.start()
    _whole_plan(launches[1:]).check_output(await bench.end())
    # Those before it have ended well: it may join them, though nothing runs.
    await bench.begin_series(joins=True)
    await bench.start()
    _whole_plan(launches[1:]).check_output(await bench.end())


@bench_test
async def test_start_that_joins_nothing_is_refused(dut: Any) -> None:
    """In IDLE no request was started since the reset."""
    bench = Bench(dut)
    await bench.reset()
    launch = launch_case(GOOD, bench.config)
    await bench.prepare(launch)
    command = CONTROL_START | CONTROL_JOINS
    response = await bench.try_write(CONTROL.address, command.to_bytes(4, "little"))
    assert response == AxiResp.SLVERR, response
    assert await bench.state() is State.IDLE
    await run_and_check(bench, launch, GOOD)


@bench_test
@cocotb.parametrize(queue=("bundles", "rows"))
async def test_execute_side_that_stops(dut: Any, queue: str) -> None:
    bench = Bench(dut, stall_share=0.0)
    await bench.reset()
    launch = _bags(bench.config, 1)[0]
    await bench.write(WATCHDOG.address, 300)
    sink = bench.bundles if queue == "bundles" else bench.rows
    sink.pause = True
    await bench.begin(launch)
    for _ in range(bench.config.request_entries - 1):  # one alone would find room for all it has
        await bench.request(launch.arguments)
    await bench.end(State.FAULTED, requests=bench.config.request_entries)
    assert await bench.fault() == (FaultCode.EXECUTE_STALLED, NO_UNIT, 0, 0)
    sink.pause = False
    await run_and_check(bench, launch_case(GOOD, bench.config), GOOD)


@bench_test
async def test_memory_that_stops(dut: Any) -> None:
    """The fault is noticed at once, but the unit is at rest only when all reads have come back."""
    memory = ReadResponder(dut, bench_config(), seed=cocotb.RANDOM_SEED)
    bench = Bench(dut, stall_share=0.0, memory=memory)
    await bench.reset()
    launch = launch_case(GOOD, bench.config)
    await bench.write(WATCHDOG.address, 300)
    memory.latency_cycles = (1000, 1000)
    await bench.begin(launch)
    await ClockCycles(dut.clk, 400)
    assert await bench.state() is State.DRAINING
    assert (await bench.fault())[0] is FaultCode.MEMORY_STALLED
    assert bench.monitor.outstanding > 0
    seen = await bench.end(State.FAULTED)
    assert await bench.fault() == (FaultCode.MEMORY_STALLED, NO_UNIT, 0, 0)
    assert not seen.row_beats
    memory.latency_cycles = (1, 1)
    await run_and_check(bench, launch, GOOD)


@bench_test
@cocotb.parametrize(watchdog_cycles=(0, 1500))
async def test_watchdog_that_does_not_bite(dut: Any, watchdog_cycles: int) -> None:
    """Never, or not before its time."""
    memory = ReadResponder(
        dut, bench_config(), seed=cocotb.RANDOM_SEED, latency_cycles=(1000, 1000)
    )
    bench = Bench(dut, stall_share=0.0, memory=memory)
    await bench.reset()
    await bench.write(WATCHDOG.address, watchdog_cycles)
    await run_and_check(bench, launch_case(GOOD, bench.config), GOOD)


@bench_test
async def test_arguments_of_the_next_request_do_not_reach_one_that_runs(dut: Any) -> None:
    bench = Bench(dut)
    await bench.reset()
    launches = _bags(bench.config, 2)
    await bench.begin(launches[0])
    await bench.set_arguments([-1] * bench.config.exports)
    seen = await bench.end()
    _whole_plan(launches[:1]).check_output(seen)


@bench_test
async def test_checks_find_a_request_that_is_another(dut: Any) -> None:
    """Negative control: the output of one request is not that of the next."""
    bench = Bench(dut)
    await bench.reset()
    launches = _bags(bench.config, 2)
    await bench.begin(launches[0])
    seen = await bench.end()
    for plan, wrong in (
        (_whole_plan(launches[1:]), seen),
        (_whole_plan(launches), seen),
        (_whole_plan(launches[:1]), replace(seen, bundles=seen.bundles[1:])),
    ):
        try:
            plan.check_output(wrong)
        except AssertionError:
            continue
        raise AssertionError("an output that is not the plan's was taken for it")
