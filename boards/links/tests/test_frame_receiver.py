from __future__ import annotations

import random

import pytest

from ember_hw.boards.links.frame import Frame, encode
from ember_hw.boards.links.frame_receiver import STORED_BYTES, FrameReceiver
from ember_hw.rtl.tests.harness import Bench, payloads

pytestmark = pytest.mark.rtl


def body(frame: Frame) -> list[int]:
    """What comes out: header and payload."""
    header = [frame.operation, frame.session, frame.sequence, frame.status]
    return [*header, *len(frame.payload).to_bytes(2, "little"), *frame.payload]


def random_frames(count: int, rng: random.Random) -> list[Frame]:
    alphabet = (0x7E, 0x7D, 0x5E, 1, 2)
    return [
        Frame(
            *(rng.choice(alphabet) for _ in range(4)),
            payload=bytes(rng.choices(alphabet, k=rng.randrange(30))),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_only_good_frames_come_out(seed: int) -> None:
    rng = random.Random(seed)
    frames = random_frames(40, rng)
    content, good = bytearray(rng.randbytes(50)), []
    for frame in frames:
        coded = bytearray(encode(frame))
        if rng.random() < 0.3:
            coded[rng.randrange(1, len(coded) - 1)] ^= 1 << rng.randrange(8)
        else:
            good.append(frame)
        content += coded
    bench = Bench(FrameReceiver(), seed=seed)
    bench.send(bench.dut.i, content, stall=0.2)
    wanted = [byte for frame in good for byte in body(frame)]
    got = bench.receive(bench.dut.o, len(wanted), stall=0.3)
    seen = bench.watch(bench.dut.good)
    bench.run(20_000)
    assert payloads(got) == wanted
    assert len(seen) == len(good)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("7e 01 7d 7d 02 7e", id="escape twice"),
        pytest.param("7e 01 02 7d 7e", id="flag after an escape"),
        pytest.param("7e 01 02 03 04 05 06 07 08 7e", id="too short"),
        pytest.param("7e" + "00" * 600 + "7e", id="too long"),
        pytest.param("7e 01 02 03 00 01 00 15 70 cd 22 7e", id="other length"),
    ],
)
def test_what_is_no_frame_is_told_and_leaves_nothing(content: str) -> None:
    frame = Frame(1, 2, 3, 4, b"word")
    bench = Bench(FrameReceiver())
    bad = bench.watch(bench.dut.bad)
    good = bench.watch(bench.dut.good)
    bench.send(bench.dut.i, bytes.fromhex(content) + encode(frame))
    got = bench.receive(bench.dut.o, len(body(frame)))
    bench.run(2_000)
    assert payloads(got) == body(frame)
    assert (len(bad), len(good)) == (1, 1)


def test_a_frame_without_room_is_dropped_whole() -> None:
    first = Frame(1, 2, 3, 4, bytes(300))
    long, short = Frame(1, 2, 3, 4, bytes(520)), Frame(1, 2, 4, 4, b"")
    fit = STORED_BYTES // len(body(long))
    bench = Bench(FrameReceiver())
    overrun = bench.watch(bench.dut.overrun)
    rounds = 3  # in the last one the pointers begin anew
    content = encode(first) + encode(long) * (fit + 1) + encode(short)
    sent = bench.send(bench.dut.i, content * rounds)
    wanted = (body(first) + body(long) * fit + body(short)) * rounds
    got: list[int] = []

    async def take(ctx):
        """Take nothing until a round is in, then all of it."""
        for number in range(rounds):
            while len(sent) < (number + 1) * len(content):
                await ctx.tick()
                if len(got) < number * len(wanted) // rounds + len(body(first)):
                    ctx.set(bench.dut.o.ready, 1)
                    _, _, valid, byte = await ctx.tick().sample(
                        bench.dut.o.valid, bench.dut.o.payload
                    )
                    got.extend([byte] * valid)
                    ctx.set(bench.dut.o.ready, 0)
            ctx.set(bench.dut.o.ready, 1)
            while len(got) < (number + 1) * len(wanted) // rounds:
                _, _, valid, byte = await ctx.tick().sample(bench.dut.o.valid, bench.dut.o.payload)
                got.extend([byte] * valid)
            ctx.set(bench.dut.o.ready, 0)

    bench.process(take)
    bench.run(60_000)
    assert got == wanted
    assert len(overrun) == rounds
