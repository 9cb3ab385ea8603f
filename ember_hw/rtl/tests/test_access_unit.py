from __future__ import annotations

import random
from dataclasses import replace

import pytest
from amaranth.hdl import ResetInserter, Signal

from ember_hw import registers
from ember_hw.isa import ElementSize
from ember_hw.registers import NO_UNIT, Counter, FaultCode, State
from ember_hw.rtl.counters import STALLS
from ember_hw.rtl.tests.harness import CONFIG
from ember_hw.rtl.tests.machine import INDICES, OFFSETS, PITCH, ROWS, TABLE, Bags, Machine

GOOD = Bags(((3, 4, 3), (), (499,), (0, 7)))
OTHER = Bags(((), (8, 9, 10, 8, 1)), row_bytes=32)


def _random_bags(seed: int, count: int, requests: int = 1) -> Bags:
    dice = random.Random(seed)
    sizes = [dice.choice([0, 1, 1, 2, 6]) for _ in range(count)]
    bags = tuple(tuple(dice.randrange(500) for _ in range(size)) for size in sizes)
    cuts = tuple(sorted(dice.randrange(count + 1) for _ in range(requests - 1)))
    return Bags(bags, dice.choice([1, 8, 20, 32]), dice.choice(list(ElementSize)[1:]), cuts)


def _run(machine: Machine, scenario, cycles: int = 8000) -> None:
    async def testbench(ctx):
        await scenario(ctx)

    machine.process(testbench)
    machine.run(cycles)


@pytest.mark.parametrize(("seed", "stall"), [(1, 0.0), (2, 0.3), (3, 0.6)])
def test_random_bags_under_stalls(seed: int, stall: float):
    bags = _random_bags(seed, 10)
    machine = Machine(seed=seed, stall=stall, latency=(1, 30), interleave=True, pause=stall / 2)

    async def scenario(ctx):
        for run in range(2):
            outcome = await machine.launch(ctx, bags)
            assert outcome.agrees(bags), f"seed {seed}, run {run}"
            assert outcome.ends == 1

    _run(machine, scenario)
    assert len(machine.irqs) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"streams_per_unit": 1, "row_entries": 1, "bundle_scalars": 1, "outstanding_reads": 2}
        | {"max_burst_beats": 1, "request_entries": 1},
        {"traversal_units": 3, "streams_per_unit": 3, "data_width_bits": 512}
        | {"address_width_bits": 56, "row_entries": 5, "exports": 9},
        {"outstanding_reads": 512},
        {"memory_ports": 2, "port_interleave_bytes": 64},
        {"memory_ports": 4, "port_interleave_bytes": 4096, "index_port_bits": 128},
        {"index_port_bits": 512, "memory_protocol": "axi3"},
        {"memory_ports": 8, "port_interleave_bytes": 64, "data_width_bits": 256},
    ],
    ids=["least", "wide", "more tags than places", "ports", "own port", "axi3", "eight"],
)
def test_configs_far_from_the_usual(changes: dict):
    config = CONFIG.with_changes(**changes)
    machine = Machine(config=config, seed=8, stall=0.2, latency=(2, 9), interleave=True)
    bags = _random_bags(9, 12, requests=3)

    async def scenario(ctx):
        assert (await machine.launch(ctx, bags)).agrees(bags, config)

    _run(machine, scenario)
    interleave, ports = config.port_interleave_bytes, config.memory_ports
    for number, memory in enumerate(machine.memories[:ports]):
        assert {address // interleave % ports for address, _, _ in memory.requests} <= {number}


@pytest.mark.parametrize(("seed", "stall", "requests"), [(1, 0.0, 2), (2, 0.3, 12), (3, 0.6, 9)])
def test_requests_follow_each_other(seed: int, stall: float, requests: int):
    bags = _random_bags(seed, 16, requests)
    machine = Machine(seed=seed, stall=stall, latency=(1, 30), interleave=True, pause=stall / 2)

    async def scenario(ctx):
        for run in range(1, 3):
            outcome = await machine.launch(ctx, bags)
            assert outcome.agrees(bags), f"seed {seed}, run {run}"
            assert outcome.ends == requests
            assert await machine.read(ctx, registers.REQUESTS.address) == 0
            assert await machine.read(ctx, registers.COMPLETED.address) == run * requests

    _run(machine, scenario, cycles=20_000)


def test_requests_flow_without_a_gap():
    """Row beats of a request follow those of the one before."""
    config = CONFIG.with_changes(
        token_entries=64,
        lines_per_stream=8,
        outstanding_reads=64,
        reorder_buffer_beats=256,
        bundle_entries=64,
        descriptor_entries=16,
    )
    machine = Machine(config=config, latency=(20, 20))
    bags = Bags(tuple(tuple(range(10 * i, 10 * i + 10)) for i in range(24)), cuts=(8, 16))
    port = machine.dut.row
    beats = machine.watch(port.valid & port.ready)

    async def scenario(ctx):
        assert (await machine.launch(ctx, bags)).agrees(bags, config)

    _run(machine, scenario)
    # The execute side takes a bundle, then a row's three beats; index lines are one beat in ten.
    steady = beats[60:]
    assert len(steady) == 660
    assert steady[-1].cycle - steady[0].cycle < 240 * 4 * 1.1


@pytest.mark.parametrize(("seed", "stall", "requests"), [(1, 0.0, 1), (1, 0.0, 4), (2, 0.4, 4)])
def test_indices_come_through_the_input_queue(seed: int, stall: float, requests: int):
    config = CONFIG.with_changes(input_queue=1)
    bags = replace(_random_bags(seed, 12, requests), from_queue=True)
    machine = Machine(config=config, seed=seed, stall=stall, latency=(1, 20), interleave=True)

    async def scenario(ctx):
        for run in range(2):
            outcome = await machine.launch(ctx, bags)
            assert outcome.agrees(bags, config), f"seed {seed}, run {run}"
        assert not any(INDICES <= address < TABLE for address, _, _ in machine.asked)
        # And from memory again.
        assert (await machine.launch(ctx, GOOD)).agrees(GOOD, config)

    _run(machine, scenario, cycles=20_000)


def test_the_end_awaits_the_rest_of_the_lines():
    """Their first words are enough for the row, which may overtake the others."""
    machine = Machine(seed=12, latency=(1, 1), interleave=True, pause=0.85)
    bags = Bags(((5,),), row_bytes=8)
    at_end = []

    async def watch(ctx):
        async for _, _, ends in ctx.tick().sample(machine.dut.irq):
            if ends:
                at_end.append(machine.is_idle)

    async def scenario(ctx):
        for _ in range(12):
            assert (await machine.launch(ctx, bags)).agrees(bags)

    machine.process(watch, background=True)
    _run(machine, scenario)
    assert at_end == [True] * 12


def test_a_program_follows_another():
    machine = Machine(latency=(8, 8))

    async def scenario(ctx):
        for bags in (GOOD, OTHER, Bags(()), Bags(((),)), Bags(((1,),)), GOOD):
            outcome = await machine.launch(ctx, bags)
            assert outcome.agrees(bags)
            assert machine.is_idle

    _run(machine, scenario)


def test_counters_tell_where_the_cycles_went():
    machine = Machine(seed=4, stall=0.3, latency=(5, 15), interleave=True)

    async def scenario(ctx):
        outcome = await machine.launch(ctx, GOOD)
        assert outcome.agrees(GOOD)
        counts = {}
        for counter in Counter:
            address = registers.counter_address(counter)
            low = await machine.read(ctx, address)
            counts[counter] = await machine.read(ctx, address + 4) << 32 | low
        settled = registers.counters(CONFIG)
        others = [
            await machine.read(ctx, registers.counter_address(counter))
            for counter in range(len(Counter), settled)
        ]
        lookups = sum(len(bag) for bag in GOOD.bags)
        assert counts[Counter.BUNDLES] == lookups + 1
        assert counts[Counter.ROWS] == lookups
        assert counts[Counter.ROW_BYTES] == lookups * GOOD.row_bytes
        assert counts[Counter.ROW_BEATS] == lookups * 3
        lines = sum(address < TABLE for address, _, _ in machine.asked)
        assert counts[Counter.INDEX_BEATS] == lines * CONFIG.line_beats
        # Lines of each stream, rows of each entry.
        assert others == [1, 0, 1, 0, lookups, 0]
        assert lines == 2
        kinds = (Counter.ROW_BEATS, Counter.INDEX_BEATS, *STALLS, Counter.STALL_FRONT)
        assert counts[Counter.CYCLES] == sum(counts[kind] for kind in kinds)
        assert 0 < counts[Counter.HIGH_OUTSTANDING] <= CONFIG.outstanding_reads
        assert 0 < counts[Counter.HIGH_ROW_BEATS] <= CONFIG.reorder_buffer_beats

    _run(machine, scenario)


TOO_BIG = Bags(((3, 4), (500, 1), (2,)))
WIDE = Bags(((3, 1 << 40), (2,)), index_size=ElementSize.BYTES_8)
SHORT = Bags(((3, 4), (5,)), changes=(("unit1.stream0", "elements", 2),))
OUTSIDE = Bags(((3, 4), (5,)), changes=(("row0", "region_bytes", 5 * PITCH + 19),))
BEYOND = Bags(((3, 4), (5,)), changes=(("row0", "region_bytes", (1 << 32) - TABLE + 1),))
FAR = Bags(
    ((1,),), changes=(("unit1.stream0", "first", 1 << 30), ("unit1.stream0", "elements", 1 << 31))
)
ROW_ADDRESS = TABLE + 7 * PITCH

FAULTS = {
    "index": (TOO_BIG, {}, (FaultCode.INDEX_OUT_OF_RANGE, NO_UNIT, 0, 500)),
    "negative": (Bags(((-1,),)), {}, (FaultCode.INDEX_OUT_OF_RANGE, NO_UNIT, 0, 0xFFFF_FFFF)),
    "wide": (WIDE, {}, (FaultCode.VALUE_TOO_WIDE, 1, 0, 0)),
    "region": (SHORT, {}, (FaultCode.STREAM_OUT_OF_BOUNDS, 1, 0, 2)),
    "region of rows": (OUTSIDE, {}, (FaultCode.ROW_OUT_OF_BOUNDS, NO_UNIT, 0, 5)),
    "addresses of rows": (BEYOND, {}, (FaultCode.ADDRESS_OVERFLOW, NO_UNIT, 0, 3)),
    "addresses": (FAR, {}, (FaultCode.ADDRESS_OVERFLOW, 1, 0, 1 << 30)),
    "row": (
        GOOD,
        {ROW_ADDRESS + 8: 2},
        (FaultCode.READ_SLAVE_ERROR, NO_UNIT, 0, ROW_ADDRESS),
    ),
    "offsets": (GOOD, {OFFSETS + 56: 3}, (FaultCode.READ_DECODE_ERROR, 0, 0, OFFSETS)),
    "indices": (GOOD, {INDICES: 2}, (FaultCode.READ_SLAVE_ERROR, 1, 0, INDICES)),
    "version": (
        Bags(((1,),), changes=(("header", "version", 9),)),
        {},
        (FaultCode.BAD_VERSION, NO_UNIT, 0, 0),
    ),
    "step": (
        Bags(((1,),), changes=(("unit1", "step", 0),)),
        {},
        (FaultCode.ILLEGAL_MICROCODE, NO_UNIT, 0, 0),
    ),
}


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_after_each_fault_a_good_program_runs(stall: float):
    machine = Machine(seed=5, stall=stall, latency=(2, 20), interleave=True)

    async def scenario(ctx):
        for name, (bags, errors, fault) in FAULTS.items():
            machine.fail(errors)
            outcome = await machine.launch(ctx, bags)
            assert outcome.state == State.FAULTED, name
            assert await machine.fault(ctx) == fault, name
            assert machine.is_idle
            machine.fail({})
            outcome = await machine.launch(ctx, GOOD)
            assert outcome.agrees(GOOD), name
            assert (await machine.fault(ctx))[0] == FaultCode.NONE

    _run(machine, scenario, cycles=20_000)
    assert len(machine.irqs) == 2 * len(FAULTS)


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_after_an_abort_in_any_phase_a_good_program_runs(stall: float):
    machine = Machine(seed=6, stall=stall, latency=(1, 25), interleave=True)
    long = Bags(tuple((i, i + 1, 2 * i) for i in range(40)))

    async def scenario(ctx):
        for delay in (0, 7, 15, 26, 38, 50, 61, 75, 90, 140):
            await machine.load(ctx, long)
            await machine.start(ctx, long)
            for _ in range(delay):
                await ctx.tick()
            control, abort = registers.CONTROL.address, registers.CONTROL_ABORT
            assert await machine.write(ctx, control, abort) == 0
            outcome = await machine.finish(ctx)
            assert outcome.state == State.FAULTED, delay
            assert await machine.fault(ctx) == (FaultCode.ABORTED, NO_UNIT, 0, 0)
            assert machine.is_idle
            outcome = await machine.launch(ctx, GOOD)
            assert outcome.agrees(GOOD), delay

    _run(machine, scenario, cycles=30_000)


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_a_fault_voids_all_requests_in_flight(stall: float):
    machine = Machine(seed=9, stall=stall, latency=(5, 25), interleave=True)
    bags = Bags(((1, 2), (3,), (ROWS, 4), (5,), (6,), (7,)), cuts=(1, 2, 3, 4, 5))

    async def scenario(ctx):
        for _ in range(2):
            before = await machine.read(ctx, registers.COMPLETED.address)
            await machine.load(ctx, bags)
            # Most are started before the first index has come.
            await machine.start(ctx, bags)
            outcome = await machine.finish(ctx)
            assert outcome.state == State.FAULTED
            assert await machine.fault(ctx) == (FaultCode.INDEX_OUT_OF_RANGE, NO_UNIT, 0, ROWS)
            joins = registers.CONTROL_START | registers.CONTROL_JOINS
            assert await machine.write(ctx, registers.CONTROL.address, joins) == 2
            assert await machine.state(ctx) == State.FAULTED
            assert await machine.fault(ctx) == (FaultCode.INDEX_OUT_OF_RANGE, NO_UNIT, 0, ROWS)
            assert await machine.read(ctx, registers.REQUESTS.address) == 0
            assert await machine.read(ctx, registers.COMPLETED.address) - before <= 2
            outcome = await machine.launch(ctx, GOOD)
            assert outcome.agrees(GOOD)

    _run(machine, scenario, cycles=20_000)


@pytest.mark.parametrize("blocked", ["execute", "memory"])
def test_the_watchdog_stops_what_does_not_move(blocked: str):
    machine = Machine(seed=10, latency=(5, 5))
    long = Bags(tuple(tuple(range(i, i + 8)) for i in range(12)))

    async def scenario(ctx):
        assert await machine.write(ctx, registers.WATCHDOG.address, 100) == 0
        assert (await machine.launch(ctx, long)).agrees(long)
        await machine.load(ctx, long)
        if blocked == "execute":
            machine.takes = False
        else:
            machine.memories[0].latency = (400, 400)
        await machine.start(ctx, long)
        outcome = await machine.finish(ctx)
        assert outcome.state == State.FAULTED
        codes = {"execute": FaultCode.EXECUTE_STALLED, "memory": FaultCode.MEMORY_STALLED}
        assert await machine.fault(ctx) == (codes[blocked], NO_UNIT, 0, 0)
        machine.takes = True
        machine.memories[0].latency = (5, 5)
        assert (await machine.launch(ctx, GOOD)).agrees(GOOD)

    _run(machine, scenario, cycles=12_000)


def test_a_write_while_a_program_runs_is_refused_and_a_start_joins():
    config = CONFIG.with_changes(request_entries=2)
    machine = Machine(config=config, latency=(60, 60))

    async def scenario(ctx):
        await machine.load(ctx, GOOD)
        await machine.start(ctx, GOOD)
        assert await machine.state(ctx) == State.RUNNING
        assert await machine.write(ctx, registers.MICROCODE_ADDRESS, 0) == 2
        start = registers.CONTROL_START
        assert await machine.write(ctx, registers.CONTROL.address, start) == 0
        assert await machine.read(ctx, registers.REQUESTS.address) == 2
        assert await machine.write(ctx, registers.CONTROL.address, start) == 2
        outcome = await machine.finish(ctx)
        twice = Bags(GOOD.bags)
        bundles, rows = twice.expected(config)
        assert outcome.rows == rows * 2
        assert outcome.bundles == bundles * 2

    _run(machine, scenario)


def test_data_is_read_anew_by_each_program():
    machine = Machine(latency=(4, 4))

    async def scenario(ctx):
        for index in (5, 6):
            bags = Bags(((index,),))
            assert (await machine.launch(ctx, bags)).agrees(bags)

    _run(machine, scenario)


def test_a_reset_in_any_phase_leaves_nothing_behind():
    reset = Signal()
    machine = Machine(
        seed=7, latency=(1, 15), interleave=True, wrap=lambda dut: ResetInserter(reset)(dut)
    )

    async def scenario(ctx):
        for delay in (5, 40, 60, 77, 95):
            await machine.load(ctx, GOOD)
            await machine.start(ctx, GOOD)
            for _ in range(delay):
                await ctx.tick()
            ctx.set(reset, 1)
            for _ in range(2):
                await ctx.tick()
                machine.forget()
            ctx.set(reset, 0)
            outcome = await machine.launch(ctx, GOOD)
            assert outcome.agrees(GOOD), delay

    _run(machine, scenario, cycles=12_000)
