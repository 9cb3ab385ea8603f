from __future__ import annotations

import pytest

from ember_hw.rtl.line_queue import LineQueue
from ember_hw.rtl.tests.harness import Bench, refuses


@pytest.mark.parametrize(
    ("seed", "words", "depth", "streams", "stall"),
    [(1, 4, 8, 3, 0.0), (2, 2, 2, 1, 0.3), (3, 4, 16, 6, 0.7)],
)
def test_words_leave_in_order_with_their_stream(
    seed: int, words: int, depth: int, streams: int, stall: float
):
    dut = LineQueue(beat_bits=8 * words, word_bits=8, depth_beats=depth, streams=streams)
    bench = Bench(dut, seed=seed)
    beats = [
        (bench.random.randrange(streams), bench.random.randrange(1 << 8 * words)) for _ in range(60)
    ]
    seen = []

    async def drive(ctx):
        sent, cycle = 0, 0
        while len(seen) < words * len(beats):
            waiting = sent - len(seen) // words
            # Words that are in the queue's registers have left its memory.
            puts = sent < len(beats) and waiting < depth and bench.random.random() >= stall
            ctx.set(dut.beat_valid, puts)
            if puts:
                ctx.set(dut.beat_stream, beats[sent][0])
                ctx.set(dut.beat, beats[sent][1])
                sent += 1
            _, _, valid, word = await ctx.tick().sample(dut.word_valid, dut.word)
            if valid:
                seen.append((valid, word, cycle))
            cycle += 1

    bench.process(drive)
    bench.run(3000)
    assert [(valid, word) for valid, word, _ in seen] == [
        (1 << stream, beat >> 8 * i & 0xFF) for stream, beat in beats for i in range(words)
    ]
    if not stall:
        # The first word has nothing to wait for; those behind it come through the memory.
        assert [cycle for _, _, cycle in seen] == [1, *range(3, 2 + len(seen))]


def test_the_first_word_of_each_beat_leaves_at_once_where_none_waits():
    dut = LineQueue(beat_bits=16, word_bits=8, depth_beats=2, streams=2)
    bench = Bench(dut)
    words = bench.watch(dut.word_valid.any(), dut.word)

    async def drive(ctx):
        for beat in (0x0201, 0x0403, 0x0605):
            ctx.set(dut.beat, beat)
            ctx.set(dut.beat_valid, 1)
            await ctx.tick()
            ctx.set(dut.beat_valid, 0)
            await ctx.tick().repeat(3)

    bench.process(drive)
    bench.run(50)
    assert [(word.cycle, word.payload) for word in words] == [
        (1, 1),
        (3, 2),
        (5, 3),
        (7, 4),
        (9, 5),
        (11, 6),
    ]


def test_the_depth_is_checked():
    for depth in (1, 6):
        with refuses(f"depth_beats must be a power of two, 2 or more, not {depth}"):
            LineQueue(beat_bits=16, word_bits=8, depth_beats=depth, streams=2)
