"""READs and WRITEs keep their order and their distance on the data pins."""

from __future__ import annotations

from typing import Any

import pytest
from amaranth.sim import Simulator

from ember_hw.boards.sdram.chip import BURST_WORDS
from ember_hw.boards.sdram.sequencer import Sequencer
from ember_hw.boards.sdram.tests.chips import CLOCK_MHZ, SMALL

pytestmark = pytest.mark.rtl

CLOCKS = SMALL.clocks(CLOCK_MHZ)
TURN = CLOCKS.cl + 1


def _part(bank: int, beats: int = 1, *, write: int = 0, beat: int = 0) -> dict[str, int]:
    return {"bank": bank, "beat": beat, "length": beats - 1, "write": write, "tag": 3, "last": 1}


def _run(parts: list[dict[str, int]], **low: range) -> list[tuple[Any, ...]]:
    """Commands as (cycle, name, bank, beat, last); inputs are high but in the ranges given."""
    dut = Sequencer(chip=SMALL, clocks=CLOCKS, tag_bits=2)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    seen: list[tuple[Any, ...]] = []

    async def drive(ctx):
        waiting = list(parts)
        ahead = 0
        for cycle in range(120):
            ctx.set(dut.segment.valid, bool(waiting))
            if waiting:
                ctx.set(dut.segment.payload, waiting[0])
            ctx.set(dut.ready, 0 if cycle in low.get("ready", ()) else 0b1111)
            for name in ("has_room", "has_data"):
                ctx.set(getattr(dut, name), cycle not in low.get(name, ()))
            ctx.set(dut.hold, cycle in low.get("free", ()))
            issues = ctx.get(dut.read) | ctx.get(dut.write)
            assert issues == ahead
            ahead = ctx.get(dut.ahead)
            for name in ("read", "write"):
                if ctx.get(getattr(dut, name)):
                    assert ctx.get(dut.tag) == 3
                    assert ctx.get(dut.done) == ctx.get(dut.last)
                    place = tuple(ctx.get(signal) for signal in (dut.bank, dut.beat, dut.last))
                    seen.append((cycle, name, *place))
            if ctx.get(dut.segment.ready) and waiting:
                waiting.pop(0)
            await ctx.tick()

    simulator.add_testbench(drive)
    simulator.run()
    return seen


def test_beats_follow_without_a_gap_across_parts():
    seen = _run([_part(1, 3, beat=5), _part(2, 2)])
    assert seen == [
        (2, "read", 1, 5, 0),
        (2 + BURST_WORDS, "read", 1, 6, 0),
        (2 + 2 * BURST_WORDS, "read", 1, 7, 1),
        (2 + 3 * BURST_WORDS, "read", 2, 0, 0),
        (2 + 4 * BURST_WORDS, "read", 2, 1, 1),
    ]


def test_data_pins_turn_round_before_a_write_and_not_after():
    cycles = [item[0] for item in _run([_part(0), _part(1, write=1), _part(2)])]
    assert cycles == [2, 2 + BURST_WORDS + TURN, 2 + 2 * BURST_WORDS + TURN]


@pytest.mark.parametrize(
    ("part", "low"),
    [
        (_part(0), "ready"),
        (_part(0), "free"),
        (_part(0), "has_room"),
        (_part(0, write=1), "has_data"),
    ],
)
def test_beat_waits_for_what_it_needs(part, low):
    assert [item[0] for item in _run([part], **{low: range(30)})] == [31]


def test_beat_that_is_decided_goes_in_the_first_clock_of_a_hold():
    # Decided in clock 1.
    assert [item[0] for item in _run([_part(0)], free=range(2, 30))] == [2]


def test_write_needs_no_room_and_read_no_data():
    never = range(200)
    assert [item[1] for item in _run([_part(0, write=1)], has_room=never)] == ["write"]
    assert [item[1] for item in _run([_part(0)], has_data=never)] == ["read"]
