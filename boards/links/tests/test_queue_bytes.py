from __future__ import annotations

import random

import pytest

from ember_hw.boards.links.frame import BEAT_LAST, Beat
from ember_hw.boards.links.queue_bytes import QueueBytes, beat_bytes
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.tests.harness import Bench, payloads

pytestmark = pytest.mark.rtl

QUEUES = AcceleratorConfig.preset("tiny")
REDUCE = QUEUES.with_changes(execute="reduce")


def row_bytes(kind: Beat, row: dict) -> bytes:
    return bytes([kind | row["last"] * BEAT_LAST]) + row["data"].to_bytes(
        QUEUES.bus_bytes, "little"
    )


def bundle_bytes(bundle: dict) -> bytes:
    bits = bundle["events"]
    for number, scalar in enumerate(bundle["scalars"]):
        bits |= scalar << QUEUES.events + 32 * number
    first = Beat.BUNDLE | bundle["last"] * BEAT_LAST
    return bytes([first]) + bits.to_bytes(QUEUES.bundle_bytes, "little")


def random_rows(rng: random.Random, count: int) -> list[dict]:
    return [
        {"data": rng.randrange(1 << 64), "bytes": 8, "last": rng.randrange(2)} for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(2))
def test_beats_of_both_queues_leave_whole_and_in_their_order(seed: int) -> None:
    rng = random.Random(seed)
    rows = random_rows(rng, 20)
    bundles = [
        {
            "events": rng.randrange(1 << QUEUES.events),
            "scalars": [rng.randrange(1 << 32) for _ in range(QUEUES.bundle_scalars)],
            "last": rng.randrange(2),
        }
        for _ in range(10)
    ]
    total = 20 * (1 + QUEUES.bus_bytes) + 10 * (1 + QUEUES.bundle_bytes)
    bench = Bench(QueueBytes(config=QUEUES), seed=seed)
    bench.send(bench.dut.bundle, bundles, stall=0.7)
    bench.send(bench.dut.row, rows, stall=0.3)
    got = bench.receive(bench.dut.o, total, stall=0.3)
    bench.run(5_000)
    content = bytes(payloads(got))
    found: dict[int, bytes] = {Beat.BUNDLE: b"", Beat.ROW: b""}
    while content:
        kind = Beat(content[0] & ~BEAT_LAST)
        size = 1 + beat_bytes(kind, QUEUES)
        found[kind] += content[:size]
        content = content[size:]
    assert found[Beat.BUNDLE] == b"".join(map(bundle_bytes, bundles))
    assert found[Beat.ROW] == b"".join(row_bytes(Beat.ROW, row) for row in rows)


def test_results_of_a_reduce_unit_leave() -> None:
    rows = random_rows(random.Random(3), 5)
    wanted = b"".join(row_bytes(Beat.RESULT, row) for row in rows)
    bench = Bench(QueueBytes(config=REDUCE), seed=3)
    bench.send(bench.dut.result, rows)
    got = bench.receive(bench.dut.o, len(wanted), stall=0.2)
    bench.run(1_000)
    assert bytes(payloads(got)) == wanted


def test_a_reset_of_the_queues_drops_the_beat_that_is_here() -> None:
    first, second = random_rows(random.Random(4), 2)
    bench = Bench(QueueBytes(config=QUEUES))
    dut = bench.dut
    got = bytearray()

    async def run(ctx):
        ctx.set(dut.row.payload, first)
        ctx.set(dut.row.valid, 1)
        ctx.set(dut.o.ready, 1)
        for cycle in range(40):
            ctx.set(dut.queue_reset, 4 <= cycle < 8)
            if cycle == 4:
                ctx.set(dut.row.payload, second)
            _, _, valid, byte, taken = await ctx.tick().sample(
                dut.o.valid, dut.o.payload, dut.row.ready
            )
            assert not (4 <= cycle < 8 and (valid or taken))
            got.extend([byte] * valid)
            if taken and cycle >= 8:
                ctx.set(dut.row.valid, 0)

    bench.process(run)
    bench.run(100)
    assert bytes(got) == row_bytes(Beat.ROW, first)[:3] + row_bytes(Beat.ROW, second)
