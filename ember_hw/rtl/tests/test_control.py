from __future__ import annotations

from ember_hw.registers import NO_UNIT, FaultCode, State
from ember_hw.rtl.control import Control
from ember_hw.rtl.tests.harness import CONFIG, Bench, refuses

OUT_OF_BOUNDS = {"code": FaultCode.STREAM_OUT_OF_BOUNDS, "unit": 1, "stream": 0, "address": 0x40}
SLAVE_ERROR = {"code": FaultCode.READ_SLAVE_ERROR, "unit": 0, "stream": 1, "address": 0x80}


class Life(Bench):
    """A `Control` whose surroundings are idle; `step` advances a cycle and names the state."""

    def __init__(self):
        super().__init__(Control(config=CONFIG, fault_ports=3))
        self.irqs = self.watch(self.dut.irq)

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
        for name in ("reads_idle", "cleared"):
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

    def fault(self, ctx) -> dict:
        fault = ctx.get(self.dut.fault)
        return {name: fault[name] for name in ("code", "unit", "stream", "address")}


def _simulate(scenario) -> Life:
    life = Life()

    async def testbench(ctx):
        await scenario(life, ctx)

    life.process(testbench)
    life.run(200)
    return life


def test_no_fault_port_is_refused():
    with refuses("fault_ports must be at least 1, not 0"):
        Control(config=CONFIG, fault_ports=0)


def test_it_is_idle_once_the_buffers_are_cleared():
    async def scenario(life, ctx):
        assert await life.step(ctx, 5) == State.RESETTING
        assert await life.step(ctx, cleared=1) == State.IDLE
        assert not ctx.get(life.dut.running)
        assert ctx.get(life.dut.stop)

    assert not _simulate(scenario).irqs


def test_a_program_runs_to_its_end():
    async def scenario(life, ctx):
        await life.wake(ctx)
        assert await life.step(ctx, start=1) == State.RUNNING
        assert ctx.get(life.dut.running)
        assert not ctx.get(life.dut.stop)
        # The root token waits until it is taken, and comes once.
        assert await life.step(ctx, 3) == State.RUNNING
        assert ctx.get(life.dut.root.valid)
        assert ctx.get(life.dut.root.payload.events) == 0
        await life.step(ctx, 1)
        ctx.set(life.dut.root.ready, 1)
        await ctx.tick()
        assert not ctx.get(life.dut.root.valid)
        assert await life.step(ctx, 5) == State.RUNNING
        assert await life.step(ctx, ended=1) == State.DONE
        assert not ctx.get(life.dut.running)
        assert ctx.get(life.dut.irq)
        assert await life.step(ctx, 5) == State.DONE
        assert await life.step(ctx, start=1) == State.RUNNING
        assert await life.step(ctx, ended=1) == State.DONE
        await ctx.tick()

    assert len(_simulate(scenario).irqs) == 2


def test_a_bad_verdict_is_a_fault_without_a_run():
    async def scenario(life, ctx):
        await life.wake(ctx)
        state = await life.step(ctx, start=1, verdict=FaultCode.BAD_VERSION)
        assert state == State.FAULTED
        assert life.fault(ctx) == {
            "code": FaultCode.BAD_VERSION,
            "unit": NO_UNIT,
            "stream": 0,
            "address": 0,
        }
        assert not ctx.get(life.dut.root.valid)
        assert await life.step(ctx, start=1) == State.RUNNING
        assert life.fault(ctx)["code"] == FaultCode.NONE

    assert len(_simulate(scenario).irqs) == 1


def test_a_fault_waits_for_reads_then_resets():
    async def scenario(life, ctx):
        await life.wake(ctx)
        await life.step(ctx, start=1)
        ctx.set(life.dut.reads_idle, 0)
        ctx.set(life.dut.faults[1].payload, OUT_OF_BOUNDS)
        ctx.set(life.dut.faults[1].valid, 1)
        await ctx.tick()
        ctx.set(life.dut.faults[1].valid, 0)
        assert await life.step(ctx) == State.DRAINING
        assert ctx.get(life.dut.running)
        assert ctx.get(life.dut.stop)
        # A later fault, and what looks like an end, change nothing.
        ctx.set(life.dut.faults[0].payload, SLAVE_ERROR)
        ctx.set(life.dut.faults[0].valid, 1)
        await ctx.tick()
        ctx.set(life.dut.faults[0].valid, 0)
        assert await life.step(ctx, 4, ended=1) == State.DRAINING
        assert not ctx.get(life.dut.reset)
        assert not ctx.get(life.dut.queue_reset)
        ctx.set(life.dut.reads_idle, 1)
        await life.run_until_faulted(ctx)
        assert life.fault(ctx) == OUT_OF_BOUNDS
        # The root token that nobody took is gone.
        assert not ctx.get(life.dut.root.valid)
        assert await life.step(ctx, start=1) == State.RUNNING
        assert ctx.get(life.dut.root.valid)

    assert len(_simulate(scenario).irqs) == 1


def test_the_reset_waits_until_buffers_are_cleared():
    async def scenario(life, ctx):
        await life.wake(ctx)
        await life.step(ctx, start=1)
        await life.step(ctx, abort=1)
        assert await life.step(ctx) == State.DRAINING
        assert await life.step(ctx) == State.RESETTING
        ctx.set(life.dut.cleared, 0)
        assert await life.step(ctx, 6) == State.RESETTING
        assert await life.step(ctx, cleared=1) == State.FAULTED

    _simulate(scenario)


def test_an_abort_is_a_fault_of_its_own():
    async def scenario(life, ctx):
        await life.wake(ctx)
        await life.step(ctx, start=1)
        await life.step(ctx, abort=1)
        assert await life.step(ctx) == State.DRAINING
        await life.run_until_faulted(ctx)
        aborted = {"code": FaultCode.ABORTED, "unit": NO_UNIT, "stream": 0, "address": 0}
        assert life.fault(ctx) == aborted

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
        ctx.set(life.dut.faults[1].payload, OUT_OF_BOUNDS)
        ctx.set(life.dut.faults[1].valid, 1)
        ctx.set(life.dut.faults[2].valid, 1)
        await life.step(ctx, abort=1)
        await ctx.tick()
        assert life.fault(ctx) == OUT_OF_BOUNDS

    _simulate(scenario)


def test_a_fault_in_the_cycle_of_the_end_is_not_lost():
    async def scenario(life, ctx):
        await life.wake(ctx)
        await life.step(ctx, start=1)
        await life.step(ctx, abort=1)
        assert await life.step(ctx, ended=1) == State.DRAINING

    _simulate(scenario)
