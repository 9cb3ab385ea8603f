from __future__ import annotations

import pytest

from ember_hw import isa
from ember_hw.rtl import axi
from ember_hw.rtl.layouts import tag_bits
from ember_hw.rtl.memory_port import MemoryPort
from ember_hw.rtl.tests.harness import CONFIG, Bench, ReadMemory, payloads, stamp

# As many tags as the tests have reads: they have no clients to hold them back.
MANY = CONFIG.with_changes(outstanding_reads=64)
TOP = 1 << tag_bits(MANY) - 1


def _requests(bench: Bench, count: int, tags: int) -> list[dict]:
    return [
        {
            "address": bench.random.randrange(0, 1 << 20, 64),
            "length": bench.random.choice([1, 2, 8]) - 1,
            "tag": number % tags,
            "hint": bench.random.choice(list(isa.Hint)),
        }
        for number in range(count)
    ]


@pytest.mark.parametrize(("seed", "stall"), [(1, 0.0), (2, 0.5)])
def test_each_beat_goes_to_the_client_that_asked(seed: int, stall: float):
    dut = MemoryPort(config=MANY)
    bench = Bench(dut, seed=seed)
    memory = ReadMemory(bench, bus_bytes=8, latency=(1, 20), interleave=True, pause=stall)
    index, rows = _requests(bench, 20, 4), _requests(bench, 20, 4)
    beats = {
        client: sum(request["length"] + 1 for request in requests)
        for client, requests in (("index", index), ("row", rows))
    }
    bench.process(memory.serve_axi(dut.axi, stall=stall), background=True)
    bench.send(dut.index_request, index, stall=stall)
    bench.send(dut.row_request, rows, stall=stall)
    seen = {
        "index": bench.watch(dut.index_valid, dut.beat),
        "row": bench.watch(dut.row_valid, dut.beat),
    }

    async def wait(ctx):
        while any(len(seen[client]) < count for client, count in beats.items()):
            _, _, idle = await ctx.tick().sample(dut.idle)
            assert not idle or memory.is_idle, f"seed {seed}"
        await ctx.tick().repeat(2)
        assert ctx.get(dut.idle)

    bench.process(wait)
    bench.run(2000)
    assert {tag & TOP for _, _, tag in memory.requests} == {0, TOP}
    for client, requests in (("index", index), ("row", rows)):
        for tag in range(4):
            words = [
                int.from_bytes(stamp(request["address"] + 8 * i, 8), "little")
                for request in requests
                if request["tag"] == tag
                for i in range(request["length"] + 1)
            ]
            mine = [beat for beat in payloads(seen[client]) if beat["tag"] == tag]
            assert [beat["data"] for beat in mine] == words, f"seed {seed}"


def test_index_reads_go_first_one_a_cycle():
    dut = MemoryPort(config=MANY)
    bench = Bench(dut)
    index, rows = _requests(bench, 6, 4), _requests(bench, 6, 4)
    bench.send(dut.index_request, index)
    bench.send(dut.row_request, rows)
    asked = bench.watch(dut.axi.arvalid, dut.axi.araddr)

    async def ready(ctx):
        ctx.set(dut.axi.arready, 1)
        await ctx.tick().repeat(20)

    bench.process(ready)
    bench.run(50)
    assert payloads(asked) == [request["address"] for request in index + rows]
    assert [item.cycle for item in asked] == list(range(1, 13))


@pytest.mark.parametrize(
    ("hint", "cache"),
    [(isa.Hint.NONE, 0b1111), (isa.Hint.KEEP, 0b1111), (isa.Hint.NON_TEMPORAL, 0b0011)],
)
def test_ar_says_what_kind_of_read_it_is(hint: isa.Hint, cache: int):
    dut = MemoryPort(config=MANY)
    bench = Bench(dut)
    bench.send(dut.row_request, [{"address": 64, "length": 7, "tag": 3, "hint": hint}])

    async def check(ctx):
        axi = dut.axi
        await ctx.tick().until(axi.arvalid)
        names = ("araddr", "arlen", "arsize", "arcache", "arprot", "arlock", "arqos")
        values = [ctx.get(getattr(axi, name)) for name in names]
        assert values == [64, 7, 3, cache, 0, 0, 0]
        assert ctx.get(axi.arburst).value == 1
        assert ctx.get(axi.arid) == 3
        assert ctx.get(dut.waiting)

    bench.process(check)
    bench.run(50)


def test_a_stop_keeps_what_was_shown_and_takes_nothing_more():
    dut = MemoryPort(config=MANY)
    bench = Bench(dut)
    sent = bench.send(dut.row_request, _requests(bench, 2, 4))

    async def check(ctx):
        await ctx.tick().until(dut.axi.arvalid)
        ctx.set(dut.stop, 1)
        address = ctx.get(dut.axi.araddr)
        for _ in range(5):
            await ctx.tick()
            assert ctx.get(dut.axi.arvalid)
            assert ctx.get(dut.axi.araddr) == address
            assert not ctx.get(dut.idle)
        ctx.set(dut.axi.arready, 1)
        await ctx.tick().repeat(3)
        assert not ctx.get(dut.axi.arvalid)
        assert not ctx.get(dut.idle)
        assert len(sent) == 1
        ctx.set(dut.axi.rvalid, 1)
        ctx.set(dut.axi.rlast, 1)
        await ctx.tick()
        ctx.set(dut.axi.rvalid, 0)
        assert not ctx.get(dut.idle)  # the beat is on its way to its client
        await ctx.tick()
        assert ctx.get(dut.idle)
        ctx.set(dut.stop, 0)

    bench.process(check)
    bench.run(100)
    assert len(sent) == 2


def test_axi3_has_shorter_lengths_and_no_qos():
    config = MANY.with_changes(memory_protocol="axi3", max_burst_beats=8)
    dut = MemoryPort(config=config)
    members = dut.axi.signature.members
    assert (members["arlen"].shape, members["arlock"].shape) == (4, 2)
    assert "arqos" not in members
    assert axi.ReadSignature(config) != axi.ReadSignature(MANY)
    bench = Bench(dut)
    memory = ReadMemory(bench, bus_bytes=8)
    bench.process(memory.serve_axi(dut.axi), background=True)
    requests = _requests(bench, 10, 4)
    bench.send(dut.row_request, requests)
    seen = bench.watch(dut.row_valid)

    async def wait(ctx):
        while len(seen) < sum(request["length"] + 1 for request in requests):
            await ctx.tick()

    bench.process(wait)
    bench.run(500)


def test_the_index_lines_own_port_has_its_own_width_and_no_client_bit():
    config = MANY.with_changes(index_port_bits=256)
    dut = MemoryPort(config=config, index=True)
    assert len(dut.axi.rdata) == 256
    assert len(dut.axi.arid) == tag_bits(config) - 1
    assert dut.axi.signature != axi.ReadSignature(config)
    bench = Bench(dut)
    memory = ReadMemory(bench, bus_bytes=32)
    bench.process(memory.serve_axi(dut.axi), background=True)
    requests = [{"address": 64 * i, "length": 1, "tag": i, "hint": 0} for i in range(4)]
    bench.send(dut.index_request, requests)
    beats = bench.watch(dut.index_valid, dut.beat)
    rows = bench.watch(dut.row_valid)

    async def wait(ctx):
        while len(beats) < 8:
            await ctx.tick()

    bench.process(wait)
    bench.run(100)
    assert not rows
    assert [beat["tag"] for beat in payloads(beats)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [beat["data"].to_bytes(32, "little") for beat in payloads(beats)] == [
        stamp(32 * i, 32) for i in range(8)
    ]
