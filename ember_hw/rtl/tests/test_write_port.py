from __future__ import annotations

import random

import pytest

from ember_hw.registers import NO_UNIT, FaultCode
from ember_hw.rtl.axi import Response
from ember_hw.rtl.tests.harness import CONFIG, Bench, gaps, refuses, stamp
from ember_hw.rtl.tests.write_memory import WriteMemory
from ember_hw.rtl.write_port import WRITES_IN_FLIGHT, WritePort, write_beats

BUS = CONFIG.bus_bytes


def _beats(bursts: list[tuple[int, int]]) -> list[dict[str, int]]:
    """Return the beats of bursts, each its address's `stamp`."""
    beats = []
    for address, count in bursts:
        for beat in range(count):
            data = int.from_bytes(stamp(address + beat * BUS, BUS), "little")
            beats.append({"data": data, "bytes": BUS, "last": 0})
    return beats


class _Port(Bench):
    """A port, its memory, and what it has to write."""

    def __init__(self, bursts, *, seed=0, stall=0.0, **memory):
        self.port = WritePort(config=CONFIG)
        super().__init__(self.port, seed=seed)
        self.memory = WriteMemory(self, BUS, stall=stall, **memory)
        self.bursts = bursts
        self.process(self.memory.serve(self.port.axi), background=True)
        requests = [{"address": address, "length": beats - 1} for address, beats in bursts]
        self.taken = self.send(self.port.burst, requests, stall=stall)
        self.send(self.port.beat, _beats(bursts), stall=stall)
        self.answers = self.watch(self.port.answered)
        self.faults = self.watch(self.port.fault.valid, self.port.fault.payload)

    def finish(self, cycles: int = 3000) -> None:
        """Run until every burst is answered."""

        async def wait(ctx):
            while len(self.answers) < len(self.bursts):
                await ctx.tick()
            assert ctx.get(self.port.idle)

        self.process(wait)
        self.run(cycles)


def _random_bursts(seed: int, count: int) -> list[tuple[int, int]]:
    dice = random.Random(seed)
    longest = write_beats(CONFIG)
    starts = dice.sample(range(1024), count)
    return [(start * longest * BUS, dice.randint(1, longest)) for start in starts]


@pytest.mark.parametrize("waits_for_both", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_stalls_on_every_channel_change_nothing(seed, waits_for_both):
    bursts = _random_bursts(seed, 30)
    bench = _Port(bursts, seed=seed, stall=0.3, latency=(1, 40), waits_for_both=waits_for_both)
    bench.finish()
    assert bench.memory.bursts == bursts
    for address, beats in bursts:
        assert bench.memory.read(address, beats * BUS) == stamp(address, beats * BUS)
    assert bench.faults == []


@pytest.mark.parametrize("beats", [1, 4])
def test_a_beat_leaves_every_cycle(beats):
    bursts = [(64 * number, beats) for number in range(20)]
    bench = _Port(bursts)
    bench.finish()
    cycles = bench.memory.beat_cycles
    assert cycles == list(range(cycles[0], cycles[0] + 20 * beats))


def test_so_many_bursts_are_in_flight_and_no_more():
    bench = _Port([(64 * number, 1) for number in range(40)], latency=(100, 100))
    bench.finish()
    assert bench.memory.most_owed == WRITES_IN_FLIGHT
    assert gaps(bench.taken[:WRITES_IN_FLIGHT]) == {1}


def test_errors_are_faults_of_their_bursts_and_come_before_the_answer():
    errors = {128: Response.SLAVE_ERROR.value, 320: Response.DECODE_ERROR.value}
    bench = _Port([(64 * number, 2) for number in range(6)], errors=errors)
    bench.finish()
    codes = {128: FaultCode.WRITE_SLAVE_ERROR, 320: FaultCode.WRITE_DECODE_ERROR}
    assert [fault.payload for fault in bench.faults] == [
        {"code": code, "unit": NO_UNIT, "stream": 0, "address": address}
        for address, code in codes.items()
    ]
    for fault, number in zip(bench.faults, (2, 5), strict=True):
        assert bench.answers[number].cycle == fault.cycle + 1


def test_a_stopped_port_ends_what_it_began():
    bursts = [(64 * number, 8) for number in range(40)]
    bench = _Port(bursts, seed=2, stall=0.4, latency=(1, 20))
    port = bench.port

    async def stop(ctx):
        for _ in range(3):
            await ctx.tick().repeat(40)
            ctx.set(port.stop, 1)
            taken = len(bench.taken)
            await ctx.tick().until(port.idle)
            # One may have been taken in the cycle before.
            assert len(bench.taken) in (taken, taken + 1)
            assert bench.memory.is_idle
            assert bench.memory.bursts == bursts[: len(bench.taken)]
            assert 0 < len(bench.taken) < len(bursts)
            ctx.set(port.stop, 0)

    bench.process(stop)
    bench.finish()
    assert bench.memory.bursts == bursts


@pytest.mark.parametrize("writes", [0, 1, 3, 32])
def test_writes_in_flight_are_a_power_of_two(writes):
    with refuses(f"writes_in_flight must be 2, 4, 8 or 16, not {writes}"):
        WritePort(config=CONFIG, writes_in_flight=writes)
