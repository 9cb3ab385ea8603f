from __future__ import annotations

import numpy as np
import pytest

from ember_hw.compiler.interpreters.reduce import widened
from ember_hw.isa.reduce import RowFormat
from ember_hw.rtl.execute.row_dequantise import RowDequantise
from ember_hw.rtl.execute.tests.reduce_cases import Case, coded_rows, row_beats
from ember_hw.rtl.tests.harness import CONFIG, Bench, payloads

TWO = CONFIG.with_changes(execute="reduce", int8_rows=1)


@pytest.mark.parametrize(("half_scale", "stall"), [(False, 0.0), (True, 0.3)])
def test_a_group_of_codes_a_cycle_whatever_stands_in_front_of_them(half_scale, stall):
    seed = 4
    random = np.random.default_rng(seed)
    lengths = (8, 24, 3, 16, 13, 8)
    rows = [coded_rows(random, 1, columns, 0.0, half_scale=half_scale)[0] for columns in lengths]
    dut = RowDequantise(config=TWO)
    bench = Bench(dut, seed=seed)

    async def microcode(ctx):
        ctx.set(dut.half_scale, half_scale)

    bench.process(microcode)
    bench.send(dut.i, row_beats(Case({}, [], rows), TWO), stall=stall)
    expected = [widened(row, RowFormat.INT8, half_scale).tobytes() for row in rows]
    groups = [
        (text[first : first + 8], int(first + 8 >= len(text)))
        for text in expected
        for first in range(0, len(text), 8)
    ]
    taken = bench.receive(dut.o, len(groups), stall=stall)
    bench.run(600)
    got = [(g["data"].to_bytes(8, "little")[: g["bytes"]], g["last"]) for g in payloads(taken)]
    assert got == groups
    if not stall:
        assert taken[-1].cycle - taken[0].cycle == len(groups) - 1
