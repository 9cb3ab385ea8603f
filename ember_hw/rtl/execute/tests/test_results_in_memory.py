"""Results that an access unit writes into memory, and what stops it."""

from __future__ import annotations

from ember_hw import registers
from ember_hw.compiler.interpreters.reduce import placed_results
from ember_hw.registers import NO_UNIT, FaultCode, State
from ember_hw.rtl.axi import Response
from ember_hw.rtl.execute.tests.reduce_bags import bits_of, expected_results, summed_bags
from ember_hw.rtl.tests.harness import CONFIG
from ember_hw.rtl.tests.machine import Bags, Machine
from ember_hw.rtl.tests.write_memory import WriteMemory

WRITING = CONFIG.with_changes(execute="reduce", results="memory")
BASE = 0x3_0FE8  # the third beat from here lies behind a 4 KB boundary
BEATS = 3  # of a result
GOOD = [(3, 4, 3), (), (499,), (0, 7), ()]
REGION_BYTES = BEATS * len(GOOD) * WRITING.bus_bytes
WATCHDOG_CYCLES = 300


def _bags(bags=GOOD, cuts=(), **changes) -> Bags:
    region = {"result__base": BASE, "result__region_bytes": REGION_BYTES, **changes}
    return summed_bags(WRITING, bags, cuts, **region)


class WritingMachine(Machine):
    """An access unit whose results go to `written`; `outcome` has none."""

    def __init__(self, **options):
        super().__init__(config=WRITING, **options)
        stall = options.get("stall", 0.0)
        self.written = WriteMemory(self, WRITING.bus_bytes, latency=(1, 30), stall=stall)
        self.process(self.written.serve(self.dut.result_memory), background=True)

    async def _execute_side(self, ctx):
        pass

    async def check(self, ctx, bags: Bags) -> None:
        """Run bags from a clean memory; the end must find every result in it."""
        self.written.content.clear()
        outcome = await self.launch(ctx, bags)
        assert outcome.state == State.DONE
        assert self.written.is_idle, f"seed {self.seed}: a write is on its way after the end"
        self.compare(bags)

    def compare(self, bags: Bags, first: int = 0) -> None:
        """Compare what was written with the model's results; the first is told by its number."""
        records = bags.microcode(WRITING).records
        results = expected_results(WRITING, bags)
        placed = placed_results(records, WRITING, results)
        pitch = BEATS * WRITING.bus_bytes
        found = [self.written.read(at + first * pitch, len(row)) for at, row in placed]
        assert None not in found
        assert bits_of(found) == bits_of(results)


async def _ends(machine: WritingMachine, ctx) -> None:
    """Every result is in memory when its request has ended, and nothing behind a result's end."""
    series = _bags(cuts=(2, 2, 4), result__region_bytes=REGION_BYTES + 24)
    await machine.check(ctx, series)
    assert len(machine.written.content) == 20 * len(GOOD)
    # A start that joins goes on behind them, though all have ended; another begins afresh.
    for start, first in ((registers.CONTROL_JOINS, len(GOOD)), (0, 0)):
        machine.written.content.clear()
        for number, value in enumerate((2, 3)):
            await machine.write(ctx, registers.ARGUMENTS_ADDRESS + 4 * number, value)
        command = registers.CONTROL_START | start
        assert await machine.write(ctx, registers.CONTROL.address, command) == 0
        assert (await machine.finish(ctx)).state == State.DONE
        machine.compare(_bags(GOOD[2:3]), first)


async def _errors(machine: WritingMachine, ctx) -> None:
    """Write errors, that of the last write too, and bounds stop a program; the next is right."""
    last = BASE + REGION_BYTES - WRITING.bus_bytes
    final_burst = last & -(8 * WRITING.bus_bytes)
    cases = [
        ({final_burst: Response.SLAVE_ERROR.value}, FaultCode.WRITE_SLAVE_ERROR, final_burst, {}),
        ({BASE: Response.DECODE_ERROR.value}, FaultCode.WRITE_DECODE_ERROR, BASE, {}),
        ({}, FaultCode.RESULT_OUT_OF_BOUNDS, last, {"result__region_bytes": REGION_BYTES - 8}),
    ]
    for errors, code, address, changes in cases:
        machine.written.errors = errors
        machine.written.content.clear()
        outcome = await machine.launch(ctx, _bags(**changes))
        assert outcome.state == State.FAULTED
        assert await machine.fault(ctx) == (code, NO_UNIT, 0, address)
        assert machine.written.is_idle
        region = range(BASE, BASE + REGION_BYTES - 8 * bool(changes))
        assert set(machine.written.content) <= set(region)
        machine.written.errors = {}
        await machine.check(ctx, _bags())


async def _regions(machine: WritingMachine, ctx) -> None:
    """A region that begins within a beat, or ends beyond all addresses, is none."""
    for base in (BASE + 4, (1 << 32) - REGION_BYTES + 8):
        outcome = await machine.launch(ctx, _bags(result__base=base))
        assert outcome.state == State.FAULTED
        assert (await machine.fault(ctx))[0] == FaultCode.ILLEGAL_REDUCE_MICROCODE


async def _silence(machine: WritingMachine, ctx) -> None:
    """The watchdog tells of memory that answers no write; the end waits until it does."""
    await machine.write(ctx, registers.WATCHDOG.address, WATCHDOG_CYCLES)
    machine.written.silent = True
    machine.written.content.clear()
    await machine.load(ctx, _bags())
    await machine.start(ctx, _bags())
    outcome = await machine.finish(ctx, polls=WATCHDOG_CYCLES // 2)
    assert outcome.state == State.DRAINING
    machine.written.silent = False
    outcome = await machine.finish(ctx)
    assert outcome.state == State.FAULTED
    assert await machine.fault(ctx) == (FaultCode.MEMORY_STALLED, NO_UNIT, 0, 0)
    await machine.check(ctx, _bags())


def test_results_lie_in_memory_and_faults_of_writes_stop_the_program():
    # One machine for all: it takes longer to build than to run.
    machine = WritingMachine(seed=5, stall=0.2, latency=(1, 20))

    async def scenario(ctx):
        for part in (_ends, _errors, _regions, _silence):
            await part(machine, ctx)

    machine.process(scenario)
    machine.run(60000)
