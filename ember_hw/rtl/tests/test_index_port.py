from __future__ import annotations

import pytest

from ember_hw import isa
from ember_hw.rtl.index_port import IndexPort
from ember_hw.rtl.tests.harness import CONFIG, Bench, gaps, payloads

PORTS = CONFIG.traversal_units * CONFIG.streams_per_unit


@pytest.mark.parametrize("seed", [1, 2])
def test_every_line_is_asked_for_once_in_its_streams_order(seed: int):
    dut = IndexPort(config=CONFIG)
    bench = Bench(dut, seed=seed)
    lines = [[bench.random.randrange(1 << 26) for _ in range(15)] for _ in range(PORTS)]
    for port, numbers in enumerate(lines):
        bench.send(dut.lines[port], numbers, stall=0.6)
    requests = bench.receive(dut.request, 15 * PORTS, stall=0.4)
    bench.run(1000)
    for port, numbers in enumerate(lines):
        mine = [asked for asked in payloads(requests) if asked["stream"] == port]
        assert [asked["line"] for asked in mine] == numbers


def test_one_line_a_cycle_the_outer_unit_first():
    dut = IndexPort(config=CONFIG)
    bench = Bench(dut)
    for port in range(PORTS):
        bench.send(dut.lines[port], range(5))
    requests = bench.receive(dut.request, 5 * PORTS)
    bench.run(100)
    assert gaps(requests) == {1}
    assert [asked["stream"] for asked in payloads(requests)] == sorted(list(range(PORTS)) * 5)


def test_a_line_has_its_streams_hint():
    dut = IndexPort(config=CONFIG)
    bench = Bench(dut)
    hints = [isa.Hint(port % 3) for port in range(PORTS)]
    for port in range(PORTS):
        bench.send(dut.lines[port], [port], start=2)
    requests = bench.receive(dut.request, PORTS)

    async def set_hints(ctx):
        for port, hint in enumerate(hints):
            ctx.set(dut.hints[port], hint)

    bench.process(set_hints)
    bench.run(50)
    assert [asked["hint"] for asked in payloads(requests)] == hints
