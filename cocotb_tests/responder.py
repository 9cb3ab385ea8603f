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
    """Answers the AXI4 read channels ``m_axi``.

    Parameters
    ----------
    dut : handle of the flat top
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
    reorderings : int
        Reads that overtook an earlier one.
    """

    def __init__(
        self,
        dut: Any,
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
        self.reorderings = 0
        self._dut = dut
        self._random = random.Random(f"{seed} responder")
        self._order = order
        self._interleave = interleave
        self._latency_cycles = latency_cycles
        self._stall_share = stall_share
        self._gather = gather
        self._bus_bytes = len(dut.m_axi_rdata) // 8
        self._waiting: deque[_Answer] = deque()
        self._current: _Answer | None = None
        self._cycle = 0
        self._latest = 0
        dut.m_axi_arready.value = 0
        dut.m_axi_rvalid.value = 0
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        dut, edge = self._dut, RisingEdge(self._dut.clk)
        while True:
            await edge
            self._cycle += 1
            if dut.rst.value:
                self._waiting.clear()
                self._current = None
                dut.m_axi_arready.value = 0
                dut.m_axi_rvalid.value = 0
                continue
            if dut.m_axi_arvalid.value and dut.m_axi_arready.value:
                self._take()
            dut.m_axi_arready.value = int(not self._stalls())
            # RREADY is always high (the monitor holds that), so a beat passes in one cycle.
            answer = None if self._stalls() else self._choose()
            dut.m_axi_rvalid.value = int(answer is not None)
            if answer is not None:
                self._send(answer)

    def _stalls(self) -> bool:
        return self._random.random() < self._stall_share

    def _take(self) -> None:
        dut = self._dut
        self._latest = self._cycle
        self._waiting.append(
            _Answer(
                int(dut.m_axi_arid.value),
                int(dut.m_axi_araddr.value),
                int(dut.m_axi_arlen.value) + 1,
                self._cycle + self._random.randint(*self._latency_cycles),
            )
        )

    def _choose(self) -> _Answer | None:
        """Return the read whose beat comes next; of each ID only the oldest may be chosen."""
        if self._current is not None and not self._interleave:
            return self._current
        if len(self._waiting) < self._gather and self._cycle - self._latest < 200:
            return None
        oldest: dict[int, _Answer] = {}
        for answer in self._waiting:
            oldest.setdefault(answer.tag, answer)
        ready = [answer for answer in oldest.values() if answer.due <= self._cycle]
        if not ready:
            return None
        if self._order == "random":
            return self._random.choice(ready)
        return ready[-1 if self._order == "lifo" else 0]

    def _send(self, answer: _Answer) -> None:
        dut = self._dut
        data = self._load(answer.address)
        response = Response.DECODE_ERROR if data is None else self.errors(answer.address)
        is_last = answer.beats == 1
        if self._current is not answer and answer is not self._waiting[0]:
            self.reorderings += 1
        # What comes with an error must not matter.
        noise = self._random.getrandbits(8 * self._bus_bytes)
        failed = data is None or response.value >= Response.SLAVE_ERROR.value
        dut.m_axi_rdata.value = noise if failed else int.from_bytes(data or b"", "little")
        dut.m_axi_rresp.value = response.value
        dut.m_axi_rid.value = answer.tag
        dut.m_axi_rlast.value = int(is_last)
        answer.address += self._bus_bytes
        answer.beats -= 1
        self._current = None if is_last else answer
        if is_last:
            self._waiting.remove(answer)

    def _load(self, address: int) -> bytes | None:
        for base, content in self.regions:
            if base <= address and address + self._bus_bytes <= base + len(content):
                return content[address - base : address - base + self._bus_bytes]
        return None
