from __future__ import annotations

import pytest

from ember_hw.rtl.credits import Credits
from ember_hw.rtl.tests.harness import Bench, refuses


@pytest.mark.parametrize(("seed", "places", "burst_beats"), [(1, 2, 1), (2, 8, 8), (3, 64, 5)])
def test_used_places_are_what_was_taken_less_what_was_given(
    seed: int, places: int, burst_beats: int
):
    dut = Credits(places=places, burst_beats=burst_beats)
    bench = Bench(dut, seed=seed)
    seen = set()

    async def drive(ctx):
        used = 0
        for cycle in range(600):
            length = bench.random.randrange(burst_beats)
            ctx.set(dut.length, length)
            fits = used + length + 1 <= places
            assert ctx.get(dut.used) == used
            assert ctx.get(dut.fits) == fits
            eager = 0.8 if cycle // 100 % 2 else 0.2  # now filling, now draining
            takes = fits and bench.random.random() < eager
            gives = used > 0 and bench.random.random() < 1 - eager
            ctx.set(dut.take, takes)
            ctx.set(dut.give, gives)
            used += takes * (length + 1) - gives
            seen.add(used)
            await ctx.tick()

    bench.process(drive)
    bench.run(1000)
    assert {0, places} <= seen


def test_parameters_are_checked():
    for places in (1, 12):
        with refuses(f"places must be a power of two, 2 or more, not {places}"):
            Credits(places=places, burst_beats=1)
    for burst_beats in (0, 9):
        with refuses(f"burst_beats must be from 1 to 8, not {burst_beats}"):
            Credits(places=8, burst_beats=burst_beats)
