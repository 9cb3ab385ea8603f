from __future__ import annotations

import pytest

from ember_hw.rtl.stream_arbiter import StreamArbiter
from ember_hw.rtl.tests.harness import Bench, gaps, payloads, refuses


@pytest.mark.parametrize(
    ("seed", "inputs", "stall"), [(1, 1, 0.4), (2, 2, 0.0), (3, 3, 0.5), (4, 8, 0.3)]
)
def test_each_stream_keeps_its_order_and_loses_nothing(seed: int, inputs: int, stall: float):
    dut = StreamArbiter(shape=16, inputs=inputs)
    bench = Bench(dut, seed=seed)
    sent = [[bench.random.randrange(1 << 16) for _ in range(25)] for _ in range(inputs)]
    for number, words in enumerate(sent):
        bench.send(dut.i[number], words, stall=stall)
    received = bench.receive(dut.o, 25 * inputs, stall=stall)
    bench.run(2000)
    taken = payloads(received)
    for number, words in enumerate(sent):
        assert [item["payload"] for item in taken if item["source"] == number] == words


@pytest.mark.parametrize("inputs", [2, 3, 5])
def test_streams_that_wait_take_turns_without_a_bubble(inputs: int):
    dut = StreamArbiter(shape=8, inputs=inputs)
    bench = Bench(dut)
    for number in range(inputs):
        bench.send(dut.i[number], range(10))
    taken = bench.receive(dut.o, 10 * inputs)
    bench.run(200)
    assert gaps(taken) == {1}
    sources = [item["source"] for item in payloads(taken)]
    for first in range(0, len(sources), inputs):
        assert sorted(sources[first : first + inputs]) == list(range(inputs))


def test_a_stream_that_just_came_waits_for_each_other_once():
    dut = StreamArbiter(shape=8, inputs=4)
    bench = Bench(dut)
    for number in (0, 1, 2):
        bench.send(dut.i[number], range(20))
    bench.send(dut.i[3], [7], start=10)
    taken = bench.receive(dut.o, 61)
    bench.run(200)
    late = next(item.cycle for item in taken if item.payload["source"] == 3)
    assert late <= 10 + 4


def test_inputs_are_checked():
    with refuses("inputs must be at least 1, not 0"):
        StreamArbiter(shape=8, inputs=0)
