from __future__ import annotations

import pytest

from ember_hw.rtl.layouts import tag_bits
from ember_hw.rtl.read_arbiter import ReadArbiter
from ember_hw.rtl.tests.harness import CONFIG, Bench, ReadMemory, refuses, stamp


class Channel(Bench):
    """Units that read through one channel, one burst after the other of every ID."""

    def __init__(self, units: int, *, seed: int = 0, stall: float = 0.0, **memory):
        super().__init__(ReadArbiter(config=CONFIG, units=units), seed=seed)
        self.stall = stall
        self.memory = ReadMemory(self, bus_bytes=8, **memory)
        self.process(self.memory.serve_axi(self.dut.channel, stall=stall), background=True)
        self.asked: list[list[tuple[int, int, int]]] = [[] for _ in range(units)]
        self.ask_cycles: list[list[int]] = [[] for _ in range(units)]
        self.got: list[dict[int, list]] = [{} for _ in range(units)]
        for number, port in enumerate(self.dut.units):
            self.process(self._collect(number, port), background=True)

    def ask(self, number: int, count: int, beats: int | None = None) -> None:
        """Ask for so many bursts."""
        port = self.dut.units[number]

        async def drive(ctx):
            ctx.set(port.rready, 1)
            cycle = 0
            for i in range(count):
                while self.random.random() < self.stall:
                    await ctx.tick()
                    cycle += 1
                length = beats or self.random.randint(1, 8)
                address = self.random.randrange(0, 1 << 20, 64)
                ctx.set(port.arvalid, 1)
                ctx.set(port.araddr, address)
                ctx.set(port.arlen, length - 1)
                ctx.set(port.arid, i % 5)
                ctx.set(port.arcache, i % 16)
                ready = False
                while not ready:
                    _, _, ready = await ctx.tick().sample(port.arready)
                    cycle += 1
                self.asked[number].append((address, length, i % 5))
                self.ask_cycles[number].append(cycle)
                ctx.set(port.arvalid, 0)
            while sum(len(beats) for beats in self.got[number].values()) < sum(
                length for _, length, _ in self.asked[number]
            ):
                await ctx.tick()

        self.process(drive)

    def _collect(self, number: int, port):
        async def collect(ctx):
            while True:
                _, _, valid, tag, word, last = await ctx.tick().sample(
                    port.rvalid, port.rid, port.rdata, port.rlast
                )
                if valid:
                    self.got[number].setdefault(tag, []).append((word, last))

        return collect

    def check(self) -> None:
        """Compare what each unit got with what it asked for, ID by ID."""
        for asked, got in zip(self.asked, self.got, strict=True):
            expected: dict[int, list] = {}
            for address, length, tag in asked:
                for i in range(length):
                    word = int.from_bytes(stamp(address + 8 * i, 8), "little")
                    expected.setdefault(tag, []).append((word, int(i == length - 1)))
            assert got == expected, f"seed {self.seed}"


@pytest.mark.parametrize(
    ("units", "seed", "stall"), [(1, 1, 0.3), (2, 2, 0.0), (3, 3, 0.4), (8, 4, 0.2)]
)
def test_each_unit_gets_its_own_beats(units: int, seed: int, stall: float):
    channel = Channel(units, seed=seed, stall=stall, latency=(1, 20), interleave=True, pause=stall)
    for number in range(units):
        channel.ask(number, 20)
    channel.run(4000)
    channel.check()
    assert {tag >> tag_bits(CONFIG) for _, _, tag in channel.memory.requests} == set(range(units))


def test_units_that_wait_take_turns():
    channel = Channel(4, latency=(2, 2))
    for number in range(4):
        channel.ask(number, 30, beats=1)
    channel.run(500)
    channel.check()
    sources = [tag >> tag_bits(CONFIG) for _, _, tag in channel.memory.requests]
    for first in range(0, 120, 4):
        assert sorted(sources[first : first + 4]) == [0, 1, 2, 3]


def test_a_unit_alone_asks_every_cycle():
    channel = Channel(2, latency=(2, 2))
    channel.ask(1, 30, beats=1)
    channel.run(200)
    cycles = channel.ask_cycles[1]
    assert cycles == list(range(cycles[0], cycles[0] + 30))


def test_the_channel_waits_for_the_unit_whose_beat_it_is():
    dut = ReadArbiter(config=CONFIG, units=3)
    bench = Bench(dut)

    async def drive(ctx):
        for number in range(3):
            ctx.set(dut.channel.rid, number << tag_bits(CONFIG) | 2)
            for port in dut.units:
                ctx.set(port.rready, 1)
            assert ctx.get(dut.channel.rready)
            ctx.set(dut.units[number].rready, 0)
            assert not ctx.get(dut.channel.rready)
            await ctx.tick()

    bench.process(drive)
    bench.run(10)


def test_what_a_read_says_of_itself_is_kept():
    dut = ReadArbiter(config=CONFIG, units=2)
    bench = Bench(dut)

    async def drive(ctx):
        port, channel = dut.units[1], dut.channel
        fields = {"araddr": 0x1240, "arlen": 5, "arid": 3, "arcache": 0b0011}
        for name, value in fields.items():
            ctx.set(getattr(port, name), value)
        ctx.set(port.arvalid, 1)
        await ctx.tick()
        assert ctx.get(channel.arvalid)
        seen = {name: ctx.get(getattr(channel, name)) for name in fields}
        assert seen == fields | {"arid": 1 << tag_bits(CONFIG) | 3}
        assert (ctx.get(channel.arsize), ctx.get(channel.arburst).value) == (3, 1)

    bench.process(drive)
    bench.run(10)


@pytest.mark.parametrize("units", [0, 9])
def test_units_are_checked(units: int):
    with refuses(f"units must be from 1 to 8, not {units}"):
        ReadArbiter(config=CONFIG, units=units)
