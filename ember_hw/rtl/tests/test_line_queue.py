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
    assert seen[0][2] >= 3
    if not stall:
        assert [cycle for _, _, cycle in seen] == list(range(3, 3 + len(seen)))


def test_the_depth_is_checked():
    for depth in (1, 6):
        with refuses(f"depth_beats must be a power of two, 2 or more, not {depth}"):
            LineQueue(beat_bits=16, word_bits=8, depth_beats=depth, streams=2)
