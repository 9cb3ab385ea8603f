from __future__ import annotations

import random

import pytest

from ember_hw.rtl.tests.harness import Bench, refuses
from ember_hw.rtl.wide_memory import WideMemory


@pytest.mark.parametrize(("word_bits", "group_words", "groups"), [(5, 1, 2), (8, 2, 4), (3, 4, 8)])
def test_a_group_is_written_at_once_and_read_word_by_word(
    word_bits: int, group_words: int, groups: int
):
    dut = WideMemory(word_bits=word_bits, group_words=group_words, groups=groups)
    bench = Bench(dut)
    dice = random.Random(1)
    words = [dice.randrange(1 << word_bits) for _ in range(group_words * groups)]

    async def drive(ctx):
        for group in range(groups):
            part = words[group * group_words : (group + 1) * group_words]
            ctx.set(dut.write, 1)
            ctx.set(dut.write_group, group)
            ctx.set(dut.write_data, sum(word << word_bits * i for i, word in enumerate(part)))
            await ctx.tick()
        ctx.set(dut.write, 0)
        for number in dice.sample(range(len(words)), len(words)):
            ctx.set(dut.read, 1)
            ctx.set(dut.read_word, number)
            await ctx.tick()
            assert ctx.get(dut.read_data) == words[number]
            ctx.set(dut.read, 0)
            ctx.set(dut.read_word, 0)
            await ctx.tick()
            assert ctx.get(dut.read_data) == words[number]

    bench.process(drive)
    bench.run(200)


@pytest.mark.parametrize("group_words", [0, 3])
def test_group_words_are_checked(group_words: int):
    with refuses(f"group_words must be a power of two, not {group_words}"):
        WideMemory(word_bits=8, group_words=group_words, groups=4)


def test_groups_are_checked():
    with refuses("groups must be at least 2, not 1"):
        WideMemory(word_bits=8, group_words=2, groups=1)
