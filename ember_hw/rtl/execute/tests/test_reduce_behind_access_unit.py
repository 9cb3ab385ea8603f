"""The reduce unit behind an access unit: from the host's start to pooled rows."""

from __future__ import annotations

from ember_hw.registers import NO_UNIT, FaultCode, State
from ember_hw.rtl.execute.tests.reduce_bags import (
    ROW_BYTES,
    bits_of,
    expected_results,
    summed_bags,
)
from ember_hw.rtl.tests.harness import CONFIG, unpack
from ember_hw.rtl.tests.machine import Machine

REDUCING = CONFIG.with_changes(execute="reduce")


class ReducingMachine(Machine):
    """An access unit whose results are taken; `outcome.rows` has them."""

    async def _execute_side(self, ctx):
        port = self.dut.result
        layout = port.payload.shape()
        held = None
        while True:
            takes = self.takes and self.random.random() >= self.stall
            ctx.set(port.ready, takes)
            _, _, is_reset, valid, bits = await ctx.tick().sample(
                self.dut.queue_reset, port.valid, port.payload.as_value()
            )
            if is_reset:
                assert not valid, f"seed {self.seed}: a result shows while the queues are reset"
                self.row, held = b"", None
                continue
            assert held is None or (valid and bits == held), f"seed {self.seed}: a result let go"
            held = bits if valid and not takes else None
            if valid and takes:
                beat = unpack(layout, bits)
                self.row += beat["data"].to_bytes(self.config.bus_bytes, "little")[: beat["bytes"]]
                if beat["last"]:
                    self.outcome.rows.append(self.row)
                    self.row = b""


def test_pooled_rows_and_faults():
    good = summed_bags(REDUCING, [(3, 4, 3), (), (499,), (0, 7), ()], cuts=(2, 2))
    faulty = {
        FaultCode.ILLEGAL_REDUCE_MICROCODE: summed_bags(REDUCING, [(1, 2)], reduce__length=0),
        FaultCode.UNEXPECTED_ROW_LENGTH: summed_bags(
            REDUCING, [(1, 2)], reduce__length=ROW_BYTES + 4
        ),
    }
    machine = ReducingMachine(config=REDUCING, seed=4, stall=0.2, latency=(1, 20))

    async def scenario(ctx):
        for code, bags in faulty.items():
            outcome = await machine.launch(ctx, good)
            assert outcome.state == State.DONE
            assert bits_of(outcome.rows) == bits_of(expected_results(REDUCING, good))
            outcome = await machine.launch(ctx, bags)
            assert (outcome.state, outcome.rows) == (State.FAULTED, [])
            assert await machine.fault(ctx) == (code, NO_UNIT, 0, 0)
        outcome = await machine.launch(ctx, good)
        assert (outcome.state, len(outcome.rows)) == (State.DONE, len(good.bags))

    machine.process(scenario)
    machine.run(30000)
