from __future__ import annotations

import random

import pytest

from ember_hw.boards.links.uart import Uart
from ember_hw.rtl.tests.harness import Bench, payloads, refuses

pytestmark = pytest.mark.rtl


def wire(bench: Bench, levels: list[float], bits: list[int]) -> None:
    """Put bits on `rx`, each for so many cycles; fractions add up."""

    async def drive(ctx):
        now = 0.0
        cycle = 0
        for bit, duration in zip(bits, levels, strict=True):
            ctx.set(bench.dut.rx, bit)
            now += duration
            while cycle < now:
                await ctx.tick()
                cycle += 1
        ctx.set(bench.dut.rx, 1)

    bench.process(drive)


def frame_bits(byte: int, stop: int = 1) -> list[int]:
    return [0, *(byte >> i & 1 for i in range(8)), stop]


@pytest.mark.parametrize(("clock_hz", "baud"), [(4_000, 1_000), (50_000, 3_000), (25_000, 1_000)])
@pytest.mark.parametrize("drift", [-0.02, 0.0, 0.02])
def test_bytes_of_a_clock_that_is_off_are_received(clock_hz: int, baud: int, drift: float) -> None:
    bench = Bench(Uart(clock_hz=clock_hz, baud=baud), seed=1)
    sent = [0x00, 0xFF, 0x55, *random.Random(1).randbytes(20)]
    bits = [bit for byte in sent for bit in frame_bits(byte)]
    wire(bench, [clock_hz / baud * (1 + drift)] * len(bits), bits)
    got = bench.receive(bench.dut.o, len(sent))
    bench.run(100_000)
    assert payloads(got) == sent


def test_bits_are_sent_within_a_cycle_of_their_time() -> None:
    ratio = 50_000 / 3_000
    bench = Bench(Uart(clock_hz=50_000, baud=3_000), seed=1)
    sent = [0x55, 0x00, 0xA3]
    bench.send(bench.dut.i, sent)
    levels: list[int] = []

    async def look(ctx):
        for _ in range(int(31 * ratio)):
            _, _, level = await ctx.tick().sample(bench.dut.tx)
            levels.append(level)

    bench.process(look)
    bench.run(2_000)
    first = levels.index(0)
    for number, byte in enumerate(sent):
        begin = first + number * 10 * ratio + number * 2  # a cycle or two between bytes
        for position, bit in enumerate(frame_bits(byte)):
            assert levels[round(begin + (position + 0.5) * ratio)] == bit


def test_a_byte_without_its_stop_bit_and_a_spike_are_dropped() -> None:
    bench = Bench(Uart(clock_hz=8_000, baud=1_000))
    bits = [*frame_bits(0x12, stop=0), 1, 1, 0, 1, *frame_bits(0x34)]
    levels = [8.0] * 12 + [2.0, 80.0] + [8.0] * 10
    wire(bench, levels, bits)
    got = bench.receive(bench.dut.o, 1)
    bench.run(2_000)
    assert payloads(got) == [0x34]


def test_a_byte_that_is_not_taken_keeps_its_value_and_the_next_is_lost() -> None:
    bench = Bench(Uart(clock_hz=4_000, baud=1_000))
    bits = [bit for byte in (1, 2) for bit in frame_bits(byte)]
    wire(bench, [4.0] * 20, bits)
    got = bench.receive(bench.dut.o, 1, start=90)
    bench.run(2_000)
    assert payloads(got) == [1]


@pytest.mark.parametrize("baud", [0, 251])
def test_a_rate_that_is_too_high_is_refused(baud: int) -> None:
    with refuses(f"baud must be from 1 to 250, a quarter of the clock, not {baud}"):
        Uart(clock_hz=1_000, baud=baud)
