from __future__ import annotations

import random

import pytest

from ember_hw.boards.links.frame import MAX_DATA_BYTES, Frame, encode
from ember_hw.boards.links.frame_sender import FrameSender
from ember_hw.rtl.tests.harness import Bench, payloads

pytestmark = pytest.mark.rtl


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_answers_are_sent_as_the_host_decodes_them(stall: float) -> None:
    rng = random.Random(1)
    slots = [bytes(rng.choices((0x7E, 0x7D, 3), k=MAX_DATA_BYTES)) for _ in range(4)]
    stored = b"".join(slots)
    answers, wanted = [], b""
    for slot in (0, 3, 1, 2, 2):
        length = rng.choice((0, 1, 2, 33))
        header = {"operation": 0x7D, "session": 0x7E, "sequence": slot, "status": 5}
        answers.append({"header": {**header, "length": length}, "slot": slot})
        wanted += encode(Frame(0x7D, 0x7E, slot, 5, slots[slot][:length]))
    bench = Bench(FrameSender(), seed=1)

    async def memory(ctx):
        while True:
            _, _, address = await ctx.tick().sample(bench.dut.read_address)
            ctx.set(bench.dut.read_data, stored[address])

    bench.process(memory, background=True)
    bench.send(bench.dut.i, answers)
    got = bench.receive(bench.dut.o, len(wanted), stall=stall)
    bench.run(3_000)
    assert bytes(payloads(got)) == wanted
