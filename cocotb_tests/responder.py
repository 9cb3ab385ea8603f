"""A memory for the read channels that does what AXI allows and cocotbext-axi doesn't do.

It answers reads of different IDs in any order, interleaves their beats, waits long, and errs on
chosen beats with SLVERR or DECERR. Reads of one ID are answered in order, as AXI requires.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import cocotb
from cocotb.triggers import RisingEdge

from cocotb_tests.read_ports import ReadPort, read_ports
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.axi import Response

#: Answers which response a beat gets: address of the beat to response.
Errors = Callable[[int], Response]


@dataclass(eq=False)
class _Answer:
    """A read that is being answered."""

    tag: int
    address: int
    beats: int
    due: int


class ReadResponder:
    """Answers the read channels of all ports, each port on its own.

    Parameters
    ----------
    dut : handle of the flat top
    config : AcceleratorConfig
    seed : int
        Of order, latency and stalls.
    order : str
        ``fifo``: as asked. ``lifo``: the latest first. ``random``: any.
    interleave : bool
        Choose a read anew for each beat, not for each burst.
    latency_cycles : (int, int)
        Least and most cycles from AR to the first beat.
    stall_share : float
        Share of cycles in which ARREADY is low, and of those without a beat.
    gather : int
        Answer nothing until so many reads wait, or nothing new has come for 200 cycles: makes a
        deep reordering certain.

    Attributes
    ----------
    errors : callable
        Response of the beat at an address; OKAY everywhere at first.
    regions : list of (int, bytes)
        Memory; a read outside gets DECERR.
    """

    def __init__(
        self,
        dut: Any,
        config: AcceleratorConfig,
        *,
        seed: int,
        order: Literal["fifo", "lifo", "random"] = "fifo",
        interleave: bool = False,
        latency_cycles: tuple[int, int] = (1, 1),
        stall_share: float = 0.0,
        gather: int = 1,
    ) -> None:
        self.errors: Errors = lambda address: Response.OKAY
        self.regions: list[tuple[int, bytes]] = []
        self.order = order
        self.interleave = interleave
        self.latency_cycles = latency_cycles
        self.stall_share = stall_share
        self.gather = gather
        self._ports = [_Port(self, dut, port, seed) for port in read_ports(config)]

    @property
    def reorderings(self) -> int:
        """Reads that overtook an earlier one."""
        return sum(port.reorderings for port in self._ports)

    def load(self, address: int, size_bytes: int) -> bytes | None:
        """Return bytes of memory; None outside every region."""
        for base, content in self.regions:
            if base <= address and address + size_bytes <= base + len(content):
                return content[address - base : address - base + size_bytes]
        return None


class _Port:
    """The responder at one port."""

    def __init__(self, owner: ReadResponder, dut: Any, port: ReadPort, seed: int) -> None:
        self.reorderings = 0
        self._owner = owner
        self._dut = dut
        self._beat_bytes = port.beat_bytes
        self._random = random.Random(f"{seed} responder {port.number}")
        names = ("arvalid", "arready", "arid", "araddr", "arlen")
        names += ("rvalid", "rid", "rdata", "rresp", "rlast")
        self._pins = {name: getattr(dut, f"{port.prefix}_{name}") for name in names}
        self._waiting: deque[_Answer] = deque()
        self._current: _Answer | None = None
        self._cycle = 0
        self._latest = 0
        self._be_silent()
        cocotb.start_soon(self._run())

    def _be_silent(self) -> None:
        self._pins["arready"].value = 0
        self._pins["rvalid"].value = 0

    async def _run(self) -> None:
        pins, edge = self._pins, RisingEdge(self._dut.clk)
        while True:
            await edge
            self._cycle += 1
            if self._dut.rst.value:
                self._waiting.clear()
                self._current = None
                self._be_silent()
                continue
            if pins["arvalid"].value and pins["arready"].value:
                self._take()
            pins["arready"].value = int(not self._stalls())
            # RREADY is always high (the monitor holds that), so a beat passes in one cycle.
            answer = None if self._stalls() else self._choose()
            pins["rvalid"].value = int(answer is not None)
            if answer is not None:
                self._send(answer)

    def _stalls(self) -> bool:
        return self._random.random() < self._owner.stall_share

    def _take(self) -> None:
        pins = self._pins
        self._latest = self._cycle
        self._waiting.append(
            _Answer(
                int(pins["arid"].value),
                int(pins["araddr"].value),
                int(pins["arlen"].value) + 1,
                self._cycle + self._random.randint(*self._owner.latency_cycles),
            )
        )

    def _choose(self) -> _Answer | None:
        """Return the read whose beat comes next; of each ID only the oldest may be chosen."""
        owner = self._owner
        if self._current is not None and not owner.interleave:
            return self._current
        if len(self._waiting) < owner.gather and self._cycle - self._latest < 200:
            return None
        oldest: dict[int, _Answer] = {}
        for answer in self._waiting:
            oldest.setdefault(answer.tag, answer)
        ready = [answer for answer in oldest.values() if answer.due <= self._cycle]
        if not ready:
            return None
        if owner.order == "random":
            return self._random.choice(ready)
        return ready[-1 if owner.order == "lifo" else 0]

    def _send(self, answer: _Answer) -> None:
        pins = self._pins
        data = self._owner.load(answer.address, self._beat_bytes)
        response = Response.DECODE_ERROR if data is None else self._owner.errors(answer.address)
        is_last = answer.beats == 1
        if self._current is not answer and answer is not self._waiting[0]:
            self.reorderings += 1
        # What comes with an error must not matter.
        noise = self._random.getrandbits(8 * self._beat_bytes)
        failed = data is None or response.value >= Response.SLAVE_ERROR.value
        pins["rdata"].value = noise if failed else int.from_bytes(data or b"", "little")
        pins["rresp"].value = response.value
        pins["rid"].value = answer.tag
        pins["rlast"].value = int(is_last)
        answer.address += self._beat_bytes
        answer.beats -= 1
        self._current = None if is_last else answer
        if is_last:
            self._waiting.remove(answer)
