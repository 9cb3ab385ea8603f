from __future__ import annotations

from collections import defaultdict, deque

import pytest

from ember_hw.rtl.read_table import ReadTable
from ember_hw.rtl.tests.harness import Bench, refuses


async def _cleared(ctx, dut) -> int:
    cycles = 0
    while not ctx.get(dut.cleared):
        await ctx.tick()
        cycles += 1
    return cycles


@pytest.mark.parametrize(
    ("seed", "tags", "reads_per_tag", "read_beats"),
    [(1, 2, 1, 1), (2, 4, 4, 8), (3, 16, 2, 3), (4, 3, 8, 1), (5, 4, 1, 4)],
)
def test_each_beat_has_its_reads_note_and_number(
    seed: int, tags: int, reads_per_tag: int, read_beats: int
):
    """Tags are asked for and answered in any order; those of one tag stay in theirs."""
    dut = ReadTable(tags=tags, reads_per_tag=reads_per_tag, read_beats=read_beats, note=16)
    bench = Bench(dut, seed=seed)
    dice = bench.random
    flying: dict[int, deque] = defaultdict(deque)  # tag: notes and beats of reads
    looked_up = 0

    async def drive(ctx):
        nonlocal looked_up
        assert await _cleared(ctx, dut) == tags
        expected = None
        come: dict[int, int] = defaultdict(int)
        for _ in range(600):
            if expected is not None:
                assert (ctx.get(dut.note), ctx.get(dut.count)) == expected, f"seed {seed}"
                looked_up += 1
            expected = None
            ready = [tag for tag, reads in flying.items() if reads]
            answers = bool(ready) and dice.random() < 0.8
            ctx.set(dut.beat, answers)
            if answers:
                tag = dice.choice(ready)
                note, beats = flying[tag][0]
                expected = (note, come[tag])
                come[tag] += 1
                ctx.set(dut.beat_tag, tag)
                ctx.set(dut.beat_last, come[tag] == beats)
                if come[tag] == beats:
                    flying[tag].popleft()
                    come[tag] = 0
            tag = dice.randrange(tags)
            asks = len(flying[tag]) < reads_per_tag and dice.random() < 0.7
            # A read whose last beat comes in this cycle still needs its note.
            asks = asks and not (answers and tag == ctx.get(dut.beat_tag))
            ctx.set(dut.ask, asks)
            if asks:
                read = (dice.randrange(1 << 16), dice.randint(1, read_beats))
                flying[tag].append(read)
                ctx.set(dut.ask_tag, tag)
                ctx.set(dut.ask_note, read[0])
            await ctx.tick()

    bench.process(drive)
    bench.run(1000)
    assert looked_up > 200


def test_a_reset_amid_a_read_leaves_nothing_behind():
    from amaranth.hdl import ResetInserter, Signal

    dut = ReadTable(tags=2, reads_per_tag=2, read_beats=4, note=8)
    reset = Signal()
    bench = Bench(ResetInserter(reset)(dut))

    async def drive(ctx):
        for note in (11, 22):
            await _cleared(ctx, dut)
            ctx.set(dut.ask, 1)
            ctx.set(dut.ask_tag, 1)
            ctx.set(dut.ask_note, note)
            await ctx.tick()
            ctx.set(dut.ask, 0)
            ctx.set(dut.beat, 1)
            ctx.set(dut.beat_tag, 1)
            for count in range(2):
                await ctx.tick()
                assert (ctx.get(dut.note), ctx.get(dut.count)) == (note, count)
            ctx.set(dut.beat, 0)
            ctx.set(reset, 1)
            await ctx.tick()
            ctx.set(reset, 0)

    bench.process(drive)
    bench.run(100)


def test_parameters_are_checked():
    good = {"tags": 2, "reads_per_tag": 2, "read_beats": 1, "note": 8}
    with refuses("tags must be at least 2, not 1"):
        ReadTable(**good | {"tags": 1})
    with refuses("reads_per_tag must be a power of two, not 3"):
        ReadTable(**good | {"reads_per_tag": 3})
    with refuses("read_beats must be at least 1, not 0"):
        ReadTable(**good | {"read_beats": 0})
