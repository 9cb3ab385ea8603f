from __future__ import annotations

import pytest

from ember_hw.isa.reduce import RowFormat
from ember_hw.rtl.execute.result_beats import ResultBeats
from ember_hw.rtl.tests.harness import CONFIG, Bench, payloads

_BYTES = CONFIG.bus_bytes
WIDE = CONFIG.with_changes(execute="reduce", reduce_lanes=8, int8_rows=1)


def _group(content: bytes, last: int, repeats: int = 0, noise: bytes = b"\xee") -> dict:
    data = int.from_bytes(content + noise * (4 * WIDE.lanes - len(content)), "little")
    return {"group": {"data": data, "bytes": len(content), "last": last}, "repeats": repeats}


@pytest.mark.parametrize(
    ("format", "full"), [(RowFormat.FP32, 8), (RowFormat.FP16, 16), (RowFormat.INT8, 32)]
)
def test_groups_leave_beat_by_beat(format, full):
    seed = 2
    rows = [bytes(range(length)) for length in (4, full, 2 * full + 4, full + 8)]
    groups = [
        _group(row[first : first + full], int(first + full >= len(row)))
        for row in rows
        for first in range(0, len(row), full)
    ]
    # An empty accumulator of two groups and a number more.
    groups.append(_group(bytes(4), 1, repeats=2, noise=bytes(1)))
    rows.append(bytes(2 * full + 4))
    dut = ResultBeats(config=WIDE)
    bench = Bench(dut, seed=seed)

    async def microcode(ctx):
        ctx.set(dut.format, format)

    bench.process(microcode)
    bench.send(dut.i, groups, stall=0.2)
    expected = [
        (row[first : first + _BYTES], int(first + _BYTES >= len(row)))
        for row in rows
        for first in range(0, len(row), _BYTES)
    ]
    taken = bench.receive(dut.o, len(expected), stall=0.2)
    bench.run(1000)
    got = [
        (beat["data"].to_bytes(_BYTES, "little")[: beat["bytes"]], beat["last"])
        for beat in payloads(taken)
    ]
    assert got == expected
