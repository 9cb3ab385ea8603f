from __future__ import annotations

import pytest

from ember_hw.registers import NO_UNIT, FaultCode, State
from ember_hw.rtl.control import Control
from ember_hw.rtl.tests.harness import CONFIG as MANY
from ember_hw.rtl.tests.harness import Bench, payloads, refuses

CONFIG = MANY.with_changes(request_entries=3)
OUT_OF_BOUNDS = {"code": FaultCode.STREAM_OUT_OF_BOUNDS, "unit": 1, "stream": 0, "address": 0x40}
SLAVE_ERROR = {"code": FaultCode.READ_SLAVE_ERROR, "unit": 0, "stream": 1, "address": 0x80}


def _own(code: FaultCode) -> dict:
    """Return a fault that belongs to no block."""
    return {"code": code, "unit": NO_UNIT, "stream": 0, "address": 0}


class Life(Bench):
    """A `Control` whose surroundings are idle; `step` advances a cycle and names the state."""

    def __init__(self):
        super().__init__(Control(config=CONFIG, fault_ports=3))
        self.irqs = self.watch(self.dut.irq)
        self.roots = self.watch(self.dut.root.valid, self.dut.root.payload)
        self.begins = self.watch(self.dut.begins)

    async def step(self, ctx, cycles: int = 1, **inputs: int) -> State:
        """Hold inputs for some cycles, then set them back to 0."""
        for name, value in inputs.items():
            ctx.set(getattr(self.dut, name), value)
        for _ in range(cycles):
            await ctx.tick()
        for name in inputs:
            ctx.set(getattr(self.dut, name), 0)
        return State(ctx.get(self.dut.state))

    async def wake(self, ctx) -> None:
        """Go to IDLE."""
        assert ctx.get(self.dut.queue_reset)
        for name in ("memory_idle", "cleared"):
            ctx.set(getattr(self.dut, name), 1)
        assert await self.step(ctx) == State.IDLE

    async def run_until_faulted(self, ctx) -> None:
        """Go from a report that has been seen to FAULTED, and check the way."""
        assert await self.step(ctx) == State.RESETTING
        assert ctx.get(self.dut.reset)
        assert ctx.get(self.dut.queue_reset)
        assert await self.step(ctx) == State.RESETTING
        assert not ctx.get(self.dut.reset)
        assert ctx.get(self.dut.queue_reset)
        assert await self.step(ctx) == State.FAULTED
        assert ctx.get(self.dut.irq)
        assert not ctx.get(self.dut.queue_reset)
        assert ctx.get(self.dut.requests) == 0

    async def report(self, ctx, port: int, fault: dict) -> State:
        """Report a fault for a cycle; it is seen in the one that follows."""
        ctx.set(self.dut.faults[port].payload, fault)
        ctx.set(self.dut.faults[port].valid, 1)
        await ctx.tick()
        ctx.set(self.dut.faults[port].valid, 0)
        return State(ctx.get(self.dut.state))

    def fault(self, ctx) -> dict:
        fault = ctx.get(self.dut.fault)
        return {name: fault[name] for name in ("code", "unit", "stream", "address")}


def _simulate(scenario, *, cycles: int = 200) -> Life:
    life = Life()

    async def testbench(ctx):
        await scenario(life, ctx)

    life.process(testbench)
    life.run(cycles)
    return life


def test_no_fault_port_is_refused():
    with refuses("fault_ports must be at least 1, not 0"):
        Control(config=CONFIG, fault_ports=0)


def test_it_is_idle_once_the_buffers_are_cleared():
    async def scenario(life, ctx):
        assert await life.step(ctx, 5) == State.RESETTING
        assert not ctx.get(life.dut.may_start)
        assert await life.step(ctx, cleared=1) == State.IDLE
        assert not ctx.get(life.dut.running)
        assert ctx.get(life.dut.stop)
        assert ctx.get(life.dut.may_start)

    assert not _simulate(scenario).irqs


def test_a_request_runs_to_its_end():
    async def scenario(life, ctx):
        await life.wake(ctx)
        ctx.set(life.dut.arguments, [7, 8, 9])
        assert await life.step(ctx, start=1) == State.RUNNING
        assert ctx.get(life.dut.running)
        assert not ctx.get(life.dut.stop)
        assert ctx.get(life.dut.requests) == 1
        assert await life.step(ctx, 5) == State.RUNNING
        assert await life.step(ctx, ended=1) == State.DONE
        assert not ctx.get(life.dut.running)
        assert ctx.get(life.dut.stop)
        assert ctx.get(life.dut.irq)
        assert ctx.get(life.dut.completed) == 1
        assert await life.step(ctx, 5) == State.DONE
        ctx.set(life.dut.arguments, [1 << 31, 0, 0xFFFF_FFFF])
        assert await life.step(ctx, start=1) == State.RUNNING
        assert await life.step(ctx, ended=1) == State.DONE
        assert ctx.get(life.dut.completed) == 2
        await ctx.tick()

    life = _simulate(scenario)
    assert len(life.irqs) == len(life.begins) == 2
    # A request's token has no event, and its arguments as they are when it starts.
    assert payloads(life.roots) == [
        {"events": 0, "exports": [7, 8, 9]},
        {"events": 0, "exports": [1 << 31, 0, 0xFFFF_FFFF]},
    ]


def test_requests_join_those_that_run_until_no_place_is_left():
    async def scenario(life, ctx):
        await life.wake(ctx)
        for number in range(CONFIG.request_entries):
            assert ctx.get(life.dut.may_start)
            ctx.set(life.dut.arguments, [number, 0, 0])
            assert await life.step(ctx, start=1) == State.RUNNING
            assert ctx.get(life.dut.requests) == number + 1
            await ctx.tick()
        assert not ctx.get(life.dut.may_start)
        # One that comes all the same is not there.
        assert await life.step(ctx, start=1) == State.RUNNING
        assert ctx.get(life.dut.requests) == CONFIG.request_entries
        assert await life.step(ctx, ended=1) == State.RUNNING
        assert ctx.get(life.dut.may_start)
        assert not ctx.get(life.dut.irq)
        # An end and a start in one cycle.
        ctx.set(life.dut.arguments, [9, 0, 0])
        assert await life.step(ctx, start=1, ended=1) == State.RUNNING
        assert ctx.get(life.dut.requests) == CONFIG.request_entries - 1
        assert await life.step(ctx, ended=1) == State.RUNNING
        assert await life.step(ctx, start=1, ended=1) == State.RUNNING
        assert await life.step(ctx, ended=1) == State.DONE
        assert ctx.get(life.dut.completed) == 5
        await ctx.tick()

    life = _simulate(scenario)
    assert len(life.irqs) == len(life.begins) == 1
    assert [token["exports"][0] for token in payloads(life.roots)] == [0, 1, 2, 9, 9]


def test_completed_requests_are_counted_past_a_fault():
    async def scenario(life, ctx):
        await life.wake(ctx)
        await life.step(ctx, start=1)
        await life.step(ctx, ended=1)
        await life.step(ctx, 2, start=1)
        await life.step(ctx, abort=1)
        assert await life.step(ctx) == State.DRAINING
        assert not ctx.get(life.dut.may_start)
        await life.run_until_faulted(ctx)
        assert ctx.get(life.dut.completed) == 1
        await life.step(ctx, start=1)
        assert ctx.get(life.dut.requests) == 1
        assert await life.step(ctx, ended=1) == State.DONE
        assert ctx.get(life.dut.completed) == 2

    _simulate(scenario)


def test_a_bad_verdict_is_a_fault_without_a_run():
    async def scenario(life, ctx):
        await life.wake(ctx)
        state = await life.step(ctx, start=1, verdict=FaultCode.BAD_VERSION)
        assert state == State.FAULTED
        assert life.fault(ctx) == _own(FaultCode.BAD_VERSION)
        assert ctx.get(life.dut.requests) == 0
        assert await life.step(ctx, start=1) == State.RUNNING
        assert life.fault(ctx)["code"] == FaultCode.NONE
        await ctx.tick()

    life = _simulate(scenario)
    assert len(life.irqs) == len(life.roots) == 1


def test_a_fault_waits_for_reads_then_resets():
    async def scenario(life, ctx):
        await life.wake(ctx)
        await life.step(ctx, 2, start=1)
        ctx.set(life.dut.memory_idle, 0)
        assert await life.report(ctx, 1, OUT_OF_BOUNDS) == State.RUNNING
        assert await life.step(ctx) == State.DRAINING
        assert ctx.get(life.dut.running)
        assert ctx.get(life.dut.stop)
        # A later fault, and what looks like an end, change nothing.
        await life.report(ctx, 0, SLAVE_ERROR)
        assert await life.step(ctx, 4, ended=1) == State.DRAINING
        assert ctx.get(life.dut.completed) == 0
        assert not ctx.get(life.dut.reset)
        assert not ctx.get(life.dut.queue_reset)
        ctx.set(life.dut.memory_idle, 1)
        await life.run_until_faulted(ctx)
        assert life.fault(ctx) == OUT_OF_BOUNDS
        assert await life.step(ctx, start=1) == State.RUNNING
        assert life.fault(ctx) == dict.fromkeys(OUT_OF_BOUNDS, 0) | {"code": FaultCode.NONE}
        await ctx.tick()

    life = _simulate(scenario)
    assert len(life.irqs) == 1
    assert len(life.roots) == 3
    assert len(life.begins) == 2


def test_places_of_requests_return_with_a_fault():
    async def scenario(life, ctx):
        await life.wake(ctx)
        await life.step(ctx, CONFIG.request_entries, start=1)
        assert not ctx.get(life.dut.may_start)
        await life.step(ctx, abort=1)
        assert await life.step(ctx) == State.DRAINING
        await life.run_until_faulted(ctx)
        assert ctx.get(life.dut.may_start)

    _simulate(scenario)


def test_the_reset_waits_until_buffers_are_cleared():
    async def scenario(life, ctx):
        await life.wake(ctx)
        await life.step(ctx, start=1)
        await life.step(ctx, abort=1)
        assert await life.step(ctx) == State.DRAINING
        assert await life.step(ctx) == State.RESETTING
        ctx.set(life.dut.cleared, 0)
        assert await life.step(ctx, 6) == State.RESETTING
        assert not ctx.get(life.dut.may_start)
        assert await life.step(ctx, cleared=1) == State.FAULTED

    _simulate(scenario)


def test_a_start_may_join_only_what_has_not_faulted():
    async def scenario(life, ctx):
        may_join = life.dut.may_join
        assert not ctx.get(may_join)
        await life.wake(ctx)
        assert ctx.get(life.dut.may_start)
        assert not ctx.get(may_join)  # there is nothing to join
        for _ in range(CONFIG.request_entries):
            assert await life.step(ctx, start=1) == State.RUNNING
        await life.step(ctx)
        assert not ctx.get(may_join)  # no place is left
        assert await life.step(ctx, ended=1) == State.RUNNING
        assert ctx.get(may_join)
        assert await life.step(ctx, CONFIG.request_entries - 1, ended=1) == State.DONE
        assert ctx.get(may_join)
        assert await life.step(ctx, start=1) == State.RUNNING
        await life.step(ctx, abort=1)
        while (state := await life.step(ctx)) != State.FAULTED:
            assert state in (State.DRAINING, State.RESETTING)
            assert not ctx.get(may_join)
        assert ctx.get(life.dut.may_start)
        assert not ctx.get(may_join)
        assert await life.step(ctx, start=1) == State.RUNNING
        assert ctx.get(may_join)
        await life.step(ctx, start=1)

    _simulate(scenario)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("distance", range(-4, 9))
def test_no_start_that_joins_hides_a_fault(distance: int, ends: bool):
    """It comes so many cycles after the report, taken as `may_join` says."""

    async def scenario(life, ctx):
        await life.wake(ctx)
        await life.step(ctx, start=1)
        await life.step(ctx, 6)
        for cycle in range(-5, 20):
            ctx.set(life.dut.faults[1].payload, OUT_OF_BOUNDS)
            ctx.set(life.dut.faults[1].valid, cycle == 0)
            # What seems to be an end, in the cycle in which the fault is seen and later.
            ctx.set(life.dut.ended, ends and cycle >= 1)
            ctx.set(life.dut.start, cycle == distance and ctx.get(life.dut.may_join))
            await ctx.tick()
        assert ctx.get(life.dut.state) == State.FAULTED
        assert life.fault(ctx) == OUT_OF_BOUNDS
        assert ctx.get(life.dut.completed) == ctx.get(life.dut.requests) == 0

    life = _simulate(scenario)
    assert len(life.irqs) == len(life.begins) == 1


def test_an_abort_is_a_fault_of_its_own():
    async def scenario(life, ctx):
        await life.wake(ctx)
        await life.step(ctx, start=1)
        await life.step(ctx, abort=1)
        assert await life.step(ctx) == State.DRAINING
        await life.run_until_faulted(ctx)
        assert life.fault(ctx) == _own(FaultCode.ABORTED)

    _simulate(scenario)


def test_an_abort_at_rest_does_nothing():
    async def scenario(life, ctx):
        assert await life.step(ctx, 2, abort=1) == State.RESETTING
        await life.wake(ctx)
        assert await life.step(ctx, 3, abort=1) == State.IDLE
        assert await life.step(ctx) == State.IDLE
        assert await life.step(ctx, start=1) == State.RUNNING
        assert await life.step(ctx, 3) == State.RUNNING

    _simulate(scenario)


def test_a_start_with_an_abort_starts_and_aborts():
    async def scenario(life, ctx):
        await life.wake(ctx)
        assert await life.step(ctx, start=1, abort=1) == State.RUNNING
        assert await life.step(ctx) == State.DRAINING

    _simulate(scenario)


def test_the_first_listed_fault_of_a_cycle_wins_and_all_win_over_an_abort():
    async def scenario(life, ctx):
        await life.wake(ctx)
        await life.step(ctx, start=1)
        ctx.set(life.dut.faults[2].payload, SLAVE_ERROR)
        ctx.set(life.dut.faults[2].valid, 1)
        ctx.set(life.dut.abort, 1)
        await life.report(ctx, 1, OUT_OF_BOUNDS)
        await ctx.tick()
        assert life.fault(ctx) == OUT_OF_BOUNDS

    _simulate(scenario)


def test_a_fault_in_the_cycle_of_the_end_is_not_lost():
    async def scenario(life, ctx):
        await life.wake(ctx)
        await life.step(ctx, start=1)
        await life.step(ctx, abort=1)
        assert await life.step(ctx, ended=1) == State.DRAINING
        assert ctx.get(life.dut.completed) == 0

    _simulate(scenario)


@pytest.mark.parametrize("blocks", [0, 1])
@pytest.mark.parametrize("watchdog", [1, 2, 20])
def test_nothing_moves_for_as_long_as_the_watchdog_says(watchdog: int, blocks: int):
    async def scenario(life, ctx):
        await life.wake(ctx)
        ctx.set(life.dut.watchdog, watchdog)
        await life.step(ctx, 50)
        await life.step(ctx, start=1, progress=1)
        ctx.set(life.dut.execute_blocks, blocks)
        for _ in range(3):
            # A cycle less than it says is still well.
            assert await life.step(ctx, watchdog - 1) == State.RUNNING
            assert await life.step(ctx, progress=1) == State.RUNNING
        assert await life.step(ctx, 5, progress=1) == State.RUNNING
        await life.step(ctx, watchdog)
        assert await life.step(ctx, 2, progress=1) == State.RUNNING
        assert await life.step(ctx, progress=1) == State.DRAINING
        code = FaultCode.EXECUTE_STALLED if blocks else FaultCode.MEMORY_STALLED
        assert life.fault(ctx) == _own(code)
        await life.run_until_faulted(ctx)

    _simulate(scenario, cycles=300)


def test_a_watchdog_of_0_waits_for_ever():
    async def scenario(life, ctx):
        await life.wake(ctx)
        await life.step(ctx, start=1)
        assert await life.step(ctx, 400) == State.RUNNING

    _simulate(scenario, cycles=500)


def test_the_watchdog_sleeps_at_rest_and_while_reads_are_awaited():
    async def scenario(life, ctx):
        await life.wake(ctx)
        ctx.set(life.dut.watchdog, 5)
        assert await life.step(ctx, 30) == State.IDLE
        await life.step(ctx, start=1)
        ctx.set(life.dut.memory_idle, 0)
        await life.step(ctx, abort=1)
        assert await life.step(ctx, 30) == State.DRAINING
        assert life.fault(ctx) == _own(FaultCode.ABORTED)
        ctx.set(life.dut.memory_idle, 1)
        await life.run_until_faulted(ctx)
        # Nor does one start with the cycles of the other.
        await life.step(ctx, start=1)
        assert await life.step(ctx, 4) == State.RUNNING
        assert await life.step(ctx, ended=1, progress=1) == State.DONE
        assert await life.step(ctx, 30) == State.DONE

    _simulate(scenario)
