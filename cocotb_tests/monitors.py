"""Watches every port of the access unit each cycle: rules of the protocol, and what passed.

A broken rule fails the running test at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from cocotb_tests.read_ports import Channel, Read, ReadPortMonitor, read_ports
from ember_hw.config import AcceleratorConfig


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
        In the order of AR; those of one cycle in the order of their ports.
    row_data_beats, line_data_beats : int
        Beats on R.
    shared_cycles : int
        Cycles with a beat of a row and one of a line.
    queue_words : list of int
        TDEST of each word that was taken from the input queue.
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
    row_data_beats: int = 0
    line_data_beats: int = 0
    shared_cycles: int = 0
    queue_words: list[int] = field(default_factory=list[int])
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
    """

    def __init__(self, dut: Any, config: AcceleratorConfig) -> None:
        self.config = config
        self.seen = Seen()
        self.cycles = 0
        self._dut = dut
        self._bundle = Channel(dut, "m_axis_bundle_t", ("data", "last"))
        self._row = Channel(dut, "m_axis_row_t", ("data", "keep", "last"))
        self._b = Channel(dut, "s_axil_b", ("resp",))
        self._r = Channel(dut, "s_axil_r", ("data", "resp"))
        self._words: Channel | None = None
        if config.input_queue:
            self._words = Channel(dut, "s_axis_index_t", ("data", "dest"))
        self._memory = [ReadPortMonitor(dut, config, port) for port in read_ports(config)]
        cocotb.start_soon(self._watch())

    @property
    def outstanding(self) -> int:
        """Reads in flight."""
        return self._in_flight(is_row=True) + self._in_flight(is_row=False)

    def clear(self) -> Seen:
        """Forget what passed; return it."""
        seen, self.seen = self.seen, Seen()
        return seen

    def map(self, spans: Sequence[tuple[int, int]]) -> None:
        """Set first address and end of each region that may be read."""
        for port in self._memory:
            port.mapped = list(spans)

    def _in_flight(self, *, is_row: bool) -> int:
        return sum(port.in_flight(is_row=is_row) for port in self._memory)

    async def _watch(self) -> None:
        dut, edge = self._dut, RisingEdge(self._dut.clk)
        watched = (self._bundle, self._row, self._b, self._r, *self._memory)
        while True:
            await edge
            if dut.rst.value:
                for part in watched:
                    part.reset()
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
            if self._words is not None:
                self._words.reset()
            self.seen.queue_reset_cycles += 1
            return
        bundle, beat = self._bundle.sample(), self._row.sample()
        if bundle is not None:
            self.seen.bundles.append((bundle[0], bundle[1]))
        if beat is not None:
            self.seen.row_beats.append((beat[0], beat[1], beat[2]))
        word = None if self._words is None else self._words.sample()
        if word is not None:
            self.seen.queue_words.append(word[1])

    def _sample_memory(self) -> None:
        seen, asked, came = self.seen, False, []
        for port in self._memory:
            read, is_row = port.sample()
            if read is not None:
                seen.reads.append(read)
                asked = asked or read.is_row
            if is_row is not None:
                came.append(is_row)
        rows = sum(came)
        seen.row_data_beats += rows
        seen.line_data_beats += len(came) - rows
        seen.shared_cycles += 0 < rows < len(came)
        if asked:
            most = self.config.outstanding_reads
            rows = self._in_flight(is_row=True)
            assert rows <= most, f"{rows} row reads in flight, which may be {most}"
            seen.most_row_reads = max(seen.most_row_reads, rows)
