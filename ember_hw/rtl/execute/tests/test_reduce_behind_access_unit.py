"""The reduce unit behind an access unit: from the host's start to pooled rows."""

from __future__ import annotations

import numpy as np

from ember_hw.compiler.interpreters.reduce import reduce_rows
from ember_hw.isa import Event, ReduceOperation, event_mask
from ember_hw.registers import NO_UNIT, FaultCode, State
from ember_hw.rtl.tests.harness import CONFIG, unpack
from ember_hw.rtl.tests.machine import Bags, Machine

REDUCING = CONFIG.with_changes(execute="reduce")
_ROW_BYTES = 20


def _bags(bags, cuts=(), **changes) -> Bags:
    """Return bags that are summed; changes are of ``record__field``."""
    microcode = {
        "reduce__length": _ROW_BYTES,
        "reduce0__operation": ReduceOperation.SUM,
        "reduce0__emit_events": event_mask([(Event.END, 1)], REDUCING),
        **changes,
    }
    fields = tuple((*name.split("__"), int(value)) for name, value in microcode.items())
    return Bags(tuple(bags), _ROW_BYTES, cuts=cuts, changes=fields)


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


def _expected(bags: Bags) -> list[list[int]]:
    bundles, rows = bags.expected(REDUCING)
    scalars = [0] * REDUCING.bundle_scalars
    records = bags.microcode(REDUCING).records
    results = reduce_rows(records, REDUCING, [(events, scalars) for events, _ in bundles], rows)
    return [row.view(np.uint32).tolist() for row in results]


def test_pooled_rows_and_faults():
    good = _bags([(3, 4, 3), (), (499,), (0, 7), ()], cuts=(2, 2))
    faulty = {
        FaultCode.ILLEGAL_REDUCE_MICROCODE: _bags([(1, 2)], reduce__length=0),
        FaultCode.UNEXPECTED_ROW_LENGTH: _bags([(1, 2)], reduce__length=_ROW_BYTES + 4),
    }
    machine = ReducingMachine(config=REDUCING, seed=4, stall=0.2, latency=(1, 20))

    async def scenario(ctx):
        for code, bags in faulty.items():
            outcome = await machine.launch(ctx, good)
            assert outcome.state == State.DONE
            results = [np.frombuffer(row, np.uint32).tolist() for row in outcome.rows]
            assert results == _expected(good)
            outcome = await machine.launch(ctx, bags)
            assert (outcome.state, outcome.rows) == (State.FAULTED, [])
            assert await machine.fault(ctx) == (code, NO_UNIT, 0, 0)
        outcome = await machine.launch(ctx, good)
        assert (outcome.state, len(outcome.rows)) == (State.DONE, len(good.bags))

    machine.process(scenario)
    machine.run(30000)
