"""Watches every port of the access unit each cycle: rules of the protocol, and what passed.

A broken rule fails the running test at once.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.layouts import tag_bits

_BOUNDARY_BYTES = 4096


@dataclass(frozen=True)
class Read:
    """One read that was asked for on AR.

    Attributes
    ----------
    address : int
        Byte address of its first beat.
    beats : int
        Its length.
    tag : int
        ARID.
    is_row : bool
        Asked for by the gather engine, not by a memory stream.
    """

    address: int
    beats: int
    tag: int
    is_row: bool


class _Channel:
    """A VALID/READY channel: VALID stays, and the payload holds, until READY."""

    def __init__(self, dut: Any, prefix: str, payload: tuple[str, ...], stem: str = "") -> None:
        self.name = prefix
        self._valid = getattr(dut, f"{prefix}{stem}valid")
        self._ready = getattr(dut, f"{prefix}{stem}ready")
        self._payload = [getattr(dut, f"{prefix}{stem}{signal}") for signal in payload]
        self._held: list[int] | None = None

    def sample(self) -> list[int] | None:
        """Return the payload if it passes at this edge."""
        if not self._valid.value:
            assert self._held is None, f"{self.name}: VALID fell before READY"
            return None
        now = [int(signal.value) for signal in self._payload]
        assert self._held in (None, now), f"{self.name}: {self._held} became {now} before READY"
        passes = bool(self._ready.value)
        self._held = None if passes else now
        return now if passes else None

    def reset(self) -> None:
        self._held = None


@dataclass
class Seen:
    """What passed since the last `clear`.

    Attributes
    ----------
    bundles : list of (int, int)
        TDATA and TLAST.
    row_beats : list of (int, int, int)
        TDATA, TKEEP and TLAST.
    reads : list of Read
        In the order of AR.
    data_beats : list of bool
        Beats on R, whether of a row.
    irqs : int
        Cycles with the interrupt high.
    queue_reset_cycles : int
        Cycles with the queues in reset.
    most_row_reads : int
        Most row reads in flight at one time.
    """

    bundles: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    row_beats: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    reads: list[Read] = field(default_factory=list[Read])
    data_beats: list[bool] = field(default_factory=list[bool])
    irqs: int = 0
    queue_reset_cycles: int = 0
    most_row_reads: int = 0


class Monitor:
    """Samples all ports at each rising edge.

    Parameters
    ----------
    dut : handle of the flat top
    config : AcceleratorConfig

    Attributes
    ----------
    seen : Seen
    cycles : int
        Edges without reset so far.
    mapped : list of (int, int)
        First address and end of each region that may be read.
    """

    def __init__(self, dut: Any, config: AcceleratorConfig) -> None:
        self.config = config
        self.seen = Seen()
        self.cycles = 0
        self.mapped: list[tuple[int, int]] = []
        self._dut = dut
        self._bundle = _Channel(dut, "m_axis_bundle_t", ("data", "last"))
        self._row = _Channel(dut, "m_axis_row_t", ("data", "keep", "last"))
        fields = ("addr", "len", "id", "size", "burst", "lock", "cache", "prot", "qos")
        self._ar = _Channel(dut, "m_axi_ar", fields)
        self._b = _Channel(dut, "s_axil_b", ("resp",))
        self._r = _Channel(dut, "s_axil_r", ("data", "resp"))
        # Beats still to come of each read, oldest first, by ID.
        self._awaited: dict[int, list[int]] = defaultdict(list)
        cocotb.start_soon(self._watch())

    @property
    def outstanding(self) -> int:
        """Reads in flight."""
        return sum(len(reads) for reads in self._awaited.values())

    def clear(self) -> Seen:
        """Forget what passed; return it."""
        seen, self.seen = self.seen, Seen()
        return seen

    async def _watch(self) -> None:
        dut, edge = self._dut, RisingEdge(self._dut.clk)
        channels = (self._bundle, self._row, self._ar, self._b, self._r)
        while True:
            await edge
            if dut.rst.value:
                self._awaited.clear()
                for channel in channels:
                    channel.reset()
                continue
            self.cycles += 1
            self._sample_memory()
            self._sample_queues()
            self._b.sample()
            self._r.sample()
            self.seen.irqs += int(dut.irq.value)

    def _sample_queues(self) -> None:
        dut = self._dut
        if not dut.m_axis_aresetn.value:
            shown = dut.m_axis_bundle_tvalid.value or dut.m_axis_row_tvalid.value
            assert not shown, "TVALID must be low while the queues are in reset"
            self._bundle.reset()
            self._row.reset()
            self.seen.queue_reset_cycles += 1
            return
        bundle, beat = self._bundle.sample(), self._row.sample()
        if bundle is not None:
            self.seen.bundles.append((bundle[0], bundle[1]))
        if beat is not None:
            self.seen.row_beats.append((beat[0], beat[1], beat[2]))

    def _sample_memory(self) -> None:
        dut = self._dut
        assert dut.m_axi_rready.value, "RREADY must stay high: every beat has its place"
        if dut.m_axi_rvalid.value:
            tag, last = int(dut.m_axi_rid.value), bool(dut.m_axi_rlast.value)
            reads = self._awaited[tag]
            assert reads, f"the bench must answer reads only, not ID {tag}"
            reads[0] -= 1
            assert last == (reads[0] == 0), f"the bench's RLAST is misplaced, ID {tag}"
            if last:
                reads.pop(0)
            self.seen.data_beats.append(self._is_row(tag))
        asked = self._ar.sample()
        if asked is not None:
            self._check_read(*asked)

    def _check_read(self, address: int, length: int, tag: int, size: int, *rest: int) -> None:
        burst, lock, cache, prot, qos = rest
        config, beats = self.config, length + 1
        end = address + beats * config.bus_bytes
        what = f"read of {beats} beats at {address:#x}"
        assert 1 << size == config.bus_bytes, f"{what}: ARSIZE {size}"
        assert burst == axi.Burst.INCREMENTING.value, f"{what}: ARBURST {burst}"
        assert (lock, prot, qos) == (0, 0, 0), f"{what}: ARLOCK, ARPROT, ARQOS {lock, prot, qos}"
        assert cache in (0b0011, 0b1111), f"{what}: ARCACHE {cache:#b}"
        assert address % config.bus_bytes == 0, f"{what}: not aligned"
        assert address // _BOUNDARY_BYTES == (end - 1) // _BOUNDARY_BYTES, f"{what}: crosses 4 KB"
        assert any(low <= address and end <= high for low, high in self.mapped), (
            f"{what}: outside {[(hex(low), hex(high)) for low, high in self.mapped]}"
        )
        is_row = self._is_row(tag)
        limit = config.max_burst_beats if is_row else config.line_beats
        assert beats <= limit, f"{what}: more than {limit} beats"
        self._awaited[tag].append(beats)
        rows = Tally(self._is_row(other) for other, held in self._awaited.items() for _ in held)
        self.seen.most_row_reads = max(self.seen.most_row_reads, rows[True])
        assert rows[True] <= config.outstanding_reads, f"{what}: too many in flight"
        self.seen.reads.append(Read(address, beats, tag, is_row))

    def _is_row(self, tag: int) -> bool:
        return not tag >> (tag_bits(self.config) - 1)
