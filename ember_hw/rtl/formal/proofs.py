"""Every proof, all by induction: which block in which size, and over how many cycles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.burst_splitter import BurstSplitter
from ember_hw.rtl.credits import Credits
from ember_hw.rtl.execute.result_bursts import ResultBursts
from ember_hw.rtl.fifos import ReservedFifo, StreamFifo
from ember_hw.rtl.formal import arbiters, buffers, bursts, ports, queues, writes
from ember_hw.rtl.formal.bench import Bench
from ember_hw.rtl.index_port import IndexPort
from ember_hw.rtl.memory_port import MemoryPort
from ember_hw.rtl.memory_ports import MemoryPorts
from ember_hw.rtl.read_arbiter import ReadArbiter
from ember_hw.rtl.read_table import ReadTable
from ember_hw.rtl.reorder_buffer import ReorderBuffer
from ember_hw.rtl.stream_arbiter import StreamArbiter
from ember_hw.rtl.write_port import WritePort

_TINY = AcceleratorConfig.preset("tiny")
_WRITES = _TINY.with_changes(address_width_bits=32)
_TWO_PORTS = _TINY.with_changes(memory_ports=2, port_interleave_bytes=64, address_width_bits=32)


@dataclass(frozen=True)
class Proof:
    """A block in one size, and its properties.

    Attributes
    ----------
    make : callable
        Makes the bench; the block is elaborated in the call.
    depth : int
        Cycles of the induction.
    cover_depth : int
        Cycles within which each cover statement holds: the assumptions leave room for what matters.
        0: not asked, another size of the same block was.
    """

    make: Callable[[], Bench]
    depth: int
    cover_depth: int = 0


PROOFS: dict[str, Proof] = {
    "short_queue": Proof(lambda: queues.stream_fifo(StreamFifo(shape=4, depth_entries=3)), 2, 12),
    "full_short_queue": Proof(lambda: queues.stream_fifo(StreamFifo(shape=4, depth_entries=16)), 2),
    "long_queue": Proof(lambda: queues.stream_fifo(StreamFifo(shape=4, depth_entries=20)), 2, 25),
    "reserved_queue": Proof(lambda: queues.reserved_fifo(ReservedFifo(shape=4, credits=5)), 2, 12),
    "credits": Proof(lambda: buffers.credits(Credits(places=512, burst_beats=64)), 1, 12),
    "reorder_buffer": Proof(
        lambda: buffers.reorder_buffer(ReorderBuffer(shape=2, places=8, burst_beats=4)),
        6,
        30,
    ),
    "read_table": Proof(
        lambda: buffers.read_table(ReadTable(tags=4, reads_per_tag=4, read_beats=8, note=3)),
        2,
        20,
    ),
    "read_table_of_one_read_a_tag": Proof(
        lambda: buffers.read_table(ReadTable(tags=3, reads_per_tag=1, read_beats=5, note=3)), 2
    ),
    "bursts_of_8": Proof(lambda: bursts.burst_splitter(BurstSplitter(config=_TINY)), 1, 12),
    "bursts_of_axi3": Proof(
        lambda: bursts.burst_splitter(
            BurstSplitter(
                config=AcceleratorConfig(memory_protocol="axi3", max_burst_beats=16, memory_ports=4)
            )
        ),
        1,
    ),
    "bursts_of_one_page": Proof(
        lambda: bursts.burst_splitter(BurstSplitter(config=AcceleratorConfig())), 1, 12
    ),
    "bursts_of_interleaved_ports": Proof(
        lambda: bursts.burst_splitter(
            BurstSplitter(
                config=AcceleratorConfig(
                    data_width_bits=128, memory_ports=4, port_interleave_bytes=64
                )
            )
        ),
        1,
    ),
    "arbiter": Proof(lambda: arbiters.stream_arbiter(StreamArbiter(shape=3, inputs=5)), 1, 12),
    "arbiter_of_8": Proof(lambda: arbiters.stream_arbiter(StreamArbiter(shape=2, inputs=8)), 1),
    "index_port": Proof(lambda: arbiters.index_port(IndexPort(config=_TINY)), 1, 12),
    "memory_port": Proof(lambda: ports.memory_port(MemoryPort(config=_TINY)), 1, 12),
    "memory_port_of_axi3": Proof(
        lambda: ports.memory_port(MemoryPort(config=_TINY.with_changes(memory_protocol="axi3"))), 1
    ),
    "index_lines_own_port": Proof(
        lambda: ports.memory_port(
            MemoryPort(config=_TINY.with_changes(index_port_bits=256), index=True)
        ),
        1,
        12,
    ),
    "requests_of_a_port": Proof(
        lambda: ports.requests_of_a_port(MemoryPorts(config=_TWO_PORTS), number=1),
        1,
        12,
    ),
    "beats_of_a_port": Proof(
        lambda: ports.beats_of_a_port(MemoryPorts(config=_TWO_PORTS), number=1), 1, 12
    ),
    "write_port": Proof(
        lambda: writes.write_port(WritePort(config=_WRITES, writes_in_flight=4)), 1, 12
    ),
    "result_bursts": Proof(lambda: writes.result_bursts(ResultBursts(config=_WRITES)), 1, 14),
    "units_share_a_channel": Proof(
        lambda: arbiters.read_arbiter(ReadArbiter(config=_TINY, units=3)), 1, 12
    ),
}
