"""What the block tests share: streams driven and watched cycle by cycle, and a read memory."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from amaranth.hdl import Elaboratable, Shape, Value
from amaranth.lib import data
from amaranth.sim import Simulator

from ember_hw.config import AcceleratorConfig

#: As little of everything as still runs a loop in a loop.
CONFIG = AcceleratorConfig(
    name="test",
    data_width_bits=64,
    address_width_bits=32,
    traversal_units=2,
    streams_per_unit=2,
    row_entries=2,
    exports=3,
    bundle_scalars=2,
    outstanding_reads=4,
    max_burst_beats=8,
    reorder_buffer_beats=16,
    token_entries=16,
    lines_per_stream=2,
    bundle_entries=16,
    descriptor_entries=8,
)


@contextmanager
def refuses(message: str) -> Iterator[None]:
    """Expect a ValueError whose whole text is `message`."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the text is compared below
        yield
    assert str(caught.value) == message
    for entry in caught.traceback:
        refused = entry.frame.f_locals.get("self")
        if isinstance(refused, Elaboratable):
            # Amaranth warns of components that are not used, sometime later, in another test.
            refused._MustUse__used = True


def unpack(shape, bits: int) -> Any:
    """Return bits as what their layout says: dicts, lists and integers."""
    if isinstance(shape, data.StructLayout):
        return {
            name: unpack(field.shape, bits >> field.offset & (1 << field.width) - 1)
            for name, field in shape
        }
    if isinstance(shape, data.ArrayLayout):
        width = Shape.cast(shape.elem_shape).width
        return [
            unpack(shape.elem_shape, bits >> width * i & (1 << width) - 1)
            for i in range(shape.length)
        ]
    cast = Shape.cast(shape)
    if cast.signed and bits >> cast.width - 1:
        return bits - (1 << cast.width)
    return bits


@dataclass(frozen=True)
class Taken:
    """A payload that moved, and the cycle in which it did."""

    cycle: int
    payload: object


class Bench:
    """One simulation of a block; every stall in it comes from one seed.

    Cycles count from 0, the first after the reset.
    """

    def __init__(self, dut, *, seed: int = 0):
        self.dut = dut
        self.seed = seed
        self.random = random.Random(seed)
        self.simulator = Simulator(dut)
        self.simulator.add_clock(1e-6)

    def process(self, testbench, *, background: bool = False) -> None:
        """Add a coroutine of one argument, the simulator's context."""
        self.simulator.add_testbench(testbench, background=background)

    def send(self, port, payloads, *, stall: float = 0.0, start: int = 0) -> list[Taken]:
        """Put payloads into a stream; the list fills as they are taken."""
        payloads, taken = list(payloads), []

        async def driver(ctx):
            cycle = 0
            while cycle < start:
                await ctx.tick()
                cycle += 1
            for payload in payloads:
                while self.random.random() < stall:
                    await ctx.tick()
                    cycle += 1
                ctx.set(port.payload, payload)
                ctx.set(port.valid, 1)
                ready = False
                while not ready:
                    _, _, ready = await ctx.tick().sample(port.ready)
                    cycle += 1
                taken.append(Taken(cycle - 1, payload))
                ctx.set(port.valid, 0)

        self.process(driver)
        return taken

    def receive(
        self, port, count: int, *, stall: float = 0.0, start: int = 0, forever: bool = False
    ) -> list[Taken]:
        """Take payloads from a stream, and check that one that was shown holds until it is taken.

        The first is not taken before the cycle `start`. With `forever` the simulation does not wait
        for `count` of them.
        """
        taken: list[Taken] = []
        layout = port.signature.members["payload"].shape
        bits = Value.cast(port.payload)

        async def monitor(ctx):
            shown = None
            cycle = 0
            while forever or len(taken) < count:
                takes = cycle >= start and self.random.random() >= stall
                ctx.set(port.ready, takes)
                _, _, valid, payload = await ctx.tick().sample(port.valid, bits)
                if shown is not None:
                    assert (valid, payload) == (1, shown), f"seed {self.seed}: payload let go"
                shown = payload if valid and not takes else None
                if valid and takes:
                    taken.append(Taken(cycle, unpack(layout, payload)))
                cycle += 1
            ctx.set(port.ready, 0)

        self.process(monitor, background=forever)
        return taken

    def watch(self, strobe, payload=None) -> list[Taken]:
        """Note `payload` in every cycle in which `strobe` is high."""
        seen: list[Taken] = []
        shape = payload.shape() if payload is not None else 1
        bits = Value.cast(payload) if payload is not None else Value.cast(strobe)

        async def monitor(ctx):
            cycle = 0
            while True:
                _, _, high, value = await ctx.tick().sample(strobe, bits)
                if high:
                    seen.append(Taken(cycle, unpack(shape, value)))
                cycle += 1

        self.process(monitor, background=True)
        return seen

    def run(self, cycles: int) -> None:
        """Run until every foreground coroutine has ended.

        Raises
        ------
        AssertionError
            They have not after that many cycles.
        """

        async def watchdog(ctx):
            for _ in range(cycles):
                await ctx.tick()
            raise AssertionError(f"seed {self.seed}: not done after {cycles} cycles")

        self.process(watchdog, background=True)
        self.simulator.run()


def payloads(taken: list[Taken]) -> list:
    """Return what moved, without the cycles."""
    return [item.payload for item in taken]


def gaps(taken: list[Taken]) -> set[int]:
    """Return the distances in cycles of consecutive payloads: ``{1}`` where there is no bubble."""
    return {b.cycle - a.cycle for a, b in pairwise(taken)}


def stamp(address: int, count: int) -> bytes:
    """Return the bytes of a memory in which each word holds its own address, scrambled."""
    words = range(address // 4, -(-(address + count) // 4))
    text = b"".join((word * 0x9E3779B1 & 0xFFFFFFFF).to_bytes(4, "little") for word in words)
    return text[address % 4 : address % 4 + count]


@dataclass
class _Burst:
    ready_cycle: int
    beats: deque


class ReadMemory:
    """Answers bursts beat by beat: those of one tag in order, others as the dice fall.

    Parameters
    ----------
    bench : Bench
        Gives the dice.
    bus_bytes : int
    read : callable
        ``read(address, count)`` gives bytes; `stamp` if there is nothing to say.
    latency : (int, int)
        Fewest and most cycles from a request to its first beat.
    interleave : bool
        Beats of different tags mix; else each burst is answered at one go, in order.
    pause : float
        Chance that a cycle has no beat.
    errors : dict of int to int
        Response of the beat at an address, where that is not OKAY.
    """

    def __init__(
        self,
        bench: Bench,
        *,
        bus_bytes: int,
        read: Callable[[int, int], bytes] = stamp,
        latency: tuple[int, int] = (3, 3),
        interleave: bool = False,
        pause: float = 0.0,
        errors: dict[int, int] | None = None,
    ):
        self.random = bench.random
        self.seed = bench.seed
        self.bus_bytes = bus_bytes
        self.read = read
        self.latency = latency
        self.interleave = interleave
        self.pause = pause
        self.errors = errors or {}
        self.requests: list[tuple[int, int, int]] = []
        self.waiting: dict[int, deque[_Burst]] = defaultdict(deque)
        self.order: deque[int] = deque()
        self.shown: tuple | None = None

    def forget(self) -> None:
        """Drop every burst, as a reset does."""
        self.waiting.clear()
        self.order.clear()
        self.shown = None

    @property
    def is_idle(self) -> bool:
        """Nothing is to be answered."""
        return not any(self.waiting.values())

    def ask(self, cycle: int, address: int, beats: int, tag: int) -> None:
        """Accept a burst."""
        assert address % self.bus_bytes == 0, f"{address:#x} is not a multiple of the bus"
        last = address + beats * self.bus_bytes - 1
        assert address >> 12 == last >> 12, f"seed {self.seed}: {address:#x} crosses 4 KB"
        self.requests.append((address, beats, tag))
        burst = _Burst(cycle + self.random.randint(*self.latency), deque())
        for i in range(beats):
            at = address + i * self.bus_bytes
            word = int.from_bytes(self.read(at, self.bus_bytes), "little")
            burst.beats.append((tag, word, int(i == beats - 1), self.errors.get(at, 0)))
        self.waiting[tag].append(burst)
        self.order.append(tag)

    def answer(self, cycle: int) -> tuple[int, int, int, int] | None:
        """Return a beat (tag, data, last, response), or None in a cycle without one."""
        if self.random.random() < self.pause:
            return None
        tags = [tag for tag, bursts in self.waiting.items() if bursts]
        if not self.interleave:
            tags = [self.order[0]] if self.order else []
        ready = [tag for tag in tags if self.waiting[tag][0].ready_cycle <= cycle]
        if not ready:
            return None
        tag = self.random.choice(ready)
        burst = self.waiting[tag][0]
        beat = burst.beats.popleft()
        if not burst.beats:
            self.waiting[tag].popleft()
            self.order.remove(tag)
        return beat

    def serve_stream(self, request, beat_valid, beat, *, stall: float = 0.0) -> Callable:
        """Return the coroutine that answers a request stream with beats of `read_beat_layout`."""

        async def responder(ctx):
            cycle = 0
            while True:
                takes = self.random.random() >= stall
                ctx.set(request.ready, takes)
                found = self.answer(cycle)
                ctx.set(beat_valid, found is not None)
                if found is not None:
                    tag, word, last, response = found
                    ctx.set(beat, {"tag": tag, "data": word, "last": last, "response": response})
                _, _, valid, asked = await ctx.tick().sample(request.valid, request.payload)
                if valid and takes:
                    self.ask(cycle, asked.address, asked.length + 1, asked.tag)
                cycle += 1

        return responder

    def serve_axi(self, bus, *, stall: float = 0.0) -> Callable:
        """Return the coroutine that answers AXI4 reads; it checks that AR holds while stalled."""

        async def responder(ctx):
            cycle = 0
            while True:
                takes = self.random.random() >= stall
                ctx.set(bus.arready, takes)
                found = self.answer(cycle)
                ctx.set(bus.rvalid, found is not None)
                if found is not None:
                    for signal, value in zip(
                        (bus.rid, bus.rdata, bus.rlast, bus.rresp), found, strict=True
                    ):
                        ctx.set(signal, value)
                _, _, valid, address, length, tag, rready = await ctx.tick().sample(
                    bus.arvalid, bus.araddr, bus.arlen, bus.arid, bus.rready
                )
                assert rready or found is None, f"seed {self.seed}: RREADY was low"
                if self.shown is not None:
                    assert (valid, address, length, tag) == (1, *self.shown), f"seed {self.seed}"
                self.shown = (address, length, tag) if valid and not takes else None
                if valid and takes:
                    self.ask(cycle, address, length + 1, tag)
                cycle += 1

        return responder
