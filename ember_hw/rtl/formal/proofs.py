"""Every proof: which block in which size, and what is asked of the solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ember_hw.rtl.credits import Credits
from ember_hw.rtl.fifos import ReservedFifo, StreamFifo
from ember_hw.rtl.formal import buffers, queues
from ember_hw.rtl.formal.bench import Bench
from ember_hw.rtl.formal.solver import Mode
from ember_hw.rtl.reorder_buffer import ReorderBuffer


@dataclass(frozen=True)
class Proof:
    """A question to the solver.

    Attributes
    ----------
    make : callable
        Makes the bench; the block is elaborated in the call.
    mode : Mode
        `Mode.PROVE` or `Mode.BOUNDED`.
    depth : int
        Cycles of the induction or of the search.
    cover_depth : int
        Cycles within which each cover statement holds: the assumptions leave room for what matters.
    """

    make: Callable[[], Bench]
    mode: Mode
    depth: int
    cover_depth: int


PROOFS: dict[str, Proof] = {
    "short_queue": Proof(
        lambda: queues.stream_fifo(StreamFifo(shape=4, depth_entries=3)), Mode.PROVE, 2, 12
    ),
    "full_short_queue": Proof(
        lambda: queues.stream_fifo(StreamFifo(shape=4, depth_entries=16)), Mode.PROVE, 2, 20
    ),
    "long_queue": Proof(
        lambda: queues.stream_fifo(StreamFifo(shape=4, depth_entries=20)), Mode.PROVE, 2, 25
    ),
    "reserved_queue": Proof(
        lambda: queues.reserved_fifo(ReservedFifo(shape=4, credits=5)), Mode.PROVE, 2, 12
    ),
    "credits": Proof(
        lambda: buffers.credits(Credits(places=512, burst_beats=64)), Mode.PROVE, 1, 12
    ),
    "reorder_buffer": Proof(
        lambda: buffers.reorder_buffer(ReorderBuffer(shape=2, places=8, burst_beats=4)),
        Mode.PROVE,
        6,
        30,
    ),
}
