"""What the tests of the controller share: a small chip, and a controller wired to its model."""

from __future__ import annotations

from dataclasses import replace

from ember_hw.boards.sdram.chip import CHIPS, SdramChip
from ember_hw.boards.sdram.controller import SdramController
from ember_hw.boards.sdram.model import ChipModel
from ember_hw.boards.sdram.pins import Command
from ember_hw.rtl.tests.harness import Bench

CLOCK_MHZ = 100.0

#: Few rows, so that random requests meet; a short wait for power; a refresh every 200 clocks.
SMALL = replace(
    CHIPS["ulx3s"],
    name="small",
    row_bits=11,
    column_bits=8,
    power_up_ns=300.0,
    refresh_ms=2e-3 * (1 << 11),
)


def controller(chip: SdramChip = SMALL, **parameters) -> SdramController:
    return SdramController(**{"chip": chip, "clock_mhz": CLOCK_MHZ, "pad_clocks": 0, **parameters})


def attach(bench: Bench, dut: SdramController, *, keep_trace: bool = False) -> ChipModel:
    """Put the model on the pins, without a register between."""
    model = ChipModel(dut.chip, dut.clocks, keep_trace=keep_trace)
    pins = dut.pins

    async def chip(ctx):
        async for _ in ctx.tick():
            data = ctx.get(pins.data_out) if ctx.get(pins.data_enable) else None
            word = model.edge(
                Command(ctx.get(pins.command)),
                bank=ctx.get(pins.bank),
                address=ctx.get(pins.address),
                mask=ctx.get(pins.mask),
                data=data,
            )
            ctx.set(pins.data_in, word)

    bench.process(chip, background=True)
    return model
