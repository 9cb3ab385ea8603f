"""A memory that takes bursts of writes, and checks the rules of AXI."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from ember_hw.rtl.axi import Burst
from ember_hw.rtl.tests.harness import Bench


@dataclass
class _Write:
    address: int
    beats: int
    due: int  # cycle of the earliest answer


@dataclass
class WriteMemory:
    """Answers writes in order, each when all of its beats are here.

    Attributes
    ----------
    bench : Bench
        Gives the dice.
    bus_bytes : int
    latency : (int, int)
        Fewest and most cycles from the last beat to the answer.
    stall : float
        Chance that AW or W is not taken in a cycle, and that an answer waits a cycle.
    waits_for_both : bool
        Take an address only with a beat, as some memories do.
    errors : dict of int to int
        Response to the burst at an address, where that is not OKAY.
    silent : bool
        Take everything, answer nothing.
    """

    bench: Bench
    bus_bytes: int
    latency: tuple[int, int] = (3, 3)
    stall: float = 0.0
    waits_for_both: bool = False
    errors: dict[int, int] = field(default_factory=dict)
    silent: bool = False
    content: dict[int, int] = field(default_factory=dict)
    bursts: list[tuple[int, int]] = field(default_factory=list)
    beat_cycles: list[int] = field(default_factory=list)

    def __post_init__(self):
        self.addresses: deque[tuple[int, int]] = deque()
        self.beats: deque[tuple[int, int, int]] = deque()
        self.owed: deque[_Write] = deque()
        self.shown: dict[str, tuple] = {}
        self.most_owed = 0

    @property
    def is_idle(self) -> bool:
        """Nothing is to be answered, and no part of a write is here."""
        return not (self.addresses or self.beats or self.owed)

    def read(self, address: int, count: int) -> bytes | None:
        """Return bytes that were written; None if one of them was not."""
        values = [self.content.get(address + i) for i in range(count)]
        return None if None in values else bytes(values)

    def _join(self, cycle: int) -> None:
        """Do the writes whose address and beats are here."""
        while self.addresses:
            address, beats = self.addresses[0]
            assert all(not last for *_, last in list(self.beats)[: beats - 1]), "WLAST is early"
            if len(self.beats) < beats:
                return
            self.addresses.popleft()
            for beat in range(beats):
                data, strobe, last = self.beats.popleft()
                assert bool(last) == (beat == beats - 1), "WLAST must end the burst"
                assert strobe, "a beat must have a byte"
                assert strobe & (strobe + 1) == 0, "strobes must be a beat's first bytes"
                if self.errors.get(address):
                    continue
                for byte in range(strobe.bit_length()):
                    place = address + beat * self.bus_bytes + byte
                    assert place not in self.content, f"{place:#x} is written twice"
                    self.content[place] = data >> 8 * byte & 0xFF
            due = cycle + self.bench.random.randint(*self.latency)
            self.owed.append(_Write(address, beats, due))
            self.bursts.append((address, beats))
            self.most_owed = max(self.most_owed, len(self.owed))

    def _hold(self, channel: str, valid: int, ready: bool, payload: tuple) -> bool:
        """Check that what was shown stays; return whether it is taken."""
        if channel in self.shown:
            expected = (1, self.shown[channel])
            assert (valid, payload) == expected, f"seed {self.bench.seed}: {channel} let go"
        self.shown.pop(channel, None)
        if valid and not ready:
            self.shown[channel] = payload
        return bool(valid and ready)

    def serve(self, bus) -> Callable:
        """Return the coroutine that answers a port."""
        random = self.bench.random
        address = (bus.awaddr, bus.awlen, bus.awsize, bus.awburst)
        beat = (bus.wdata, bus.wstrb, bus.wlast)

        async def responder(ctx):
            cycle = 0
            while True:
                takes = {name: random.random() >= self.stall for name in ("aw", "w", "b")}
                if self.waits_for_both:
                    both = ctx.get(bus.awvalid) and ctx.get(bus.wvalid)
                    takes["aw"] = takes["aw"] and bool(both)
                    takes["w"] = takes["w"] and bool(both or self.addresses)
                ctx.set(bus.awready, takes["aw"])
                ctx.set(bus.wready, takes["w"])
                answers = (
                    bool(self.owed) and self.owed[0].due <= cycle and takes["b"] and not self.silent
                )
                ctx.set(bus.bvalid, answers)
                if answers:
                    ctx.set(bus.bresp, self.errors.get(self.owed[0].address, 0))
                _, _, ready, aw, w, *values = await ctx.tick().sample(
                    bus.bready, bus.awvalid, bus.wvalid, *address, *beat
                )
                assert ready, "BREADY was low"
                if answers:
                    self.owed.popleft()
                asked, written = tuple(values[:4]), tuple(values[4:])
                if self._hold("aw", aw, takes["aw"], asked):
                    first, length, size, burst = asked
                    last = first + (length + 1) * self.bus_bytes - 1
                    assert first % self.bus_bytes == 0, f"{first:#x} is not a multiple of the bus"
                    assert first >> 12 == last >> 12, f"{first:#x} crosses 4 KB"
                    assert (1 << size, burst) == (self.bus_bytes, Burst.INCREMENTING)
                    self.addresses.append((first, length + 1))
                if self._hold("w", w, takes["w"], written):
                    self.beats.append(written)
                    self.beat_cycles.append(cycle)
                self._join(cycle)
                cycle += 1

        return responder
