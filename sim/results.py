"""What runs of the simulation bring back, and the accesses that a run can make."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from ember_hw.errors import EmberError


class SimulationError(EmberError):
    """The simulated hardware broke a rule of its interfaces, or one of its own assertions."""


class RunState(Enum):
    """Why a run returned."""

    OUTPUT_FULL = 0
    """A buffer is full. Simulated time stands still until the next run."""
    PROGRAM_ENDED = 1
    """Every awaited unit raised `irq` since the latest write to its registers, or the list of
    accesses is done; no read or write is outstanding and no output waits."""
    IDLE_TIMEOUT = 2
    """No channel had a handshake for `max_idle_cycles`."""
    CYCLE_LIMIT = 3
    """`max_cycles` have passed."""


@dataclass(frozen=True)
class UnitOutput:
    """What one unit delivered in a run.

    Attributes
    ----------
    bundles : uint8 (n, bundle_bytes)
        View of the bundles taken; event bits lowest.
    row_beats : uint8 (m, bus_bytes)
        View of the row beats taken, written whole: a row's bytes are the first of its beats.
    row_last : bool (m,)
        Which beats end a row.
    row_cycles : uint64 (m,)
        Cycle of each beat's handshake.

    The views belong to the model and change with the next run; copy what must stay.
    """

    bundles: NDArray[np.uint8]
    row_beats: NDArray[np.uint8]
    row_last: NDArray[np.bool_]
    row_cycles: NDArray[np.uint64]


@dataclass(frozen=True)
class RunResult:
    """What one run brought.

    Attributes
    ----------
    state : RunState
        Why it returned.
    outputs : tuple of UnitOutput
        By unit.
    cycles : int
        Cycles that passed.
    """

    state: RunState
    outputs: tuple[UnitOutput, ...]
    cycles: int

    @property
    def bundles(self) -> NDArray[np.uint8]:
        """Bundles of the first unit."""
        return self.outputs[0].bundles

    @property
    def row_beats(self) -> NDArray[np.uint8]:
        """Row beats of the first unit."""
        return self.outputs[0].row_beats

    @property
    def row_last(self) -> NDArray[np.bool_]:
        """Which of them end a row."""
        return self.outputs[0].row_last

    @property
    def row_cycles(self) -> NDArray[np.uint64]:
        """Cycle of each of them."""
        return self.outputs[0].row_cycles


@dataclass(frozen=True)
class ChannelCounters:
    """What the harness counted on one read port.

    Attributes
    ----------
    read_requests, read_beats, read_bytes, read_errors, peak_outstanding_reads : int
        As `Counters`.
    refused_cycles : int
        Cycles in which a request waited for the memory.
    """

    read_requests: int
    read_beats: int
    read_bytes: int
    read_errors: int
    peak_outstanding_reads: int
    refused_cycles: int


@dataclass(frozen=True)
class Counters:
    """What the harness counted since the model was opened or the counters were cleared.

    Attributes
    ----------
    cycles : int
        Clock cycles.
    start_to_done_cycles : int
        From the latest register write before `irq` rose (the start command) to that rise.
    read_requests, read_beats, read_bytes, read_errors : int
        AXI4 bursts asked for, beats answered, their bytes, and beats that weren't OKAY, of all
        channels.
    peak_outstanding_reads : int
        Most bursts in flight at once on one channel.
    bundles, row_beats, row_bytes : int
        Handshakes of the two streams, and the bytes that TKEEP marked, of all units.
    read_beats_by_id : uint64 (2**id_bits,)
        Beats answered, by AXI4 ID.
    """

    cycles: int
    start_to_done_cycles: int
    read_requests: int
    read_beats: int
    read_bytes: int
    read_errors: int
    peak_outstanding_reads: int
    bundles: int
    row_beats: int
    row_bytes: int
    read_beats_by_id: NDArray[np.uint64]


@dataclass(frozen=True)
class WriteCounters:
    """What the harness counted on the port for writes; all 0 without one.

    Attributes
    ----------
    write_requests, write_beats, write_bytes : int
        Bursts and beats handed over, and the bytes that WSTRB marked.
    write_errors : int
        Bursts whose answer wasn't OKAY.
    peak_outstanding_writes : int
        Most bursts at once whose answer wasn't taken.
    """

    write_requests: int
    write_beats: int
    write_bytes: int
    write_errors: int
    peak_outstanding_writes: int


@dataclass(frozen=True)
class UnitProfile:
    """What a unit did while it ran, as far as a simulation sees it from inside.

    Attributes
    ----------
    running_cycles : int
        Cycles in which it ran.
    fill_cycles : int
        Until the first row beat was delivered; the first bundle where there were no rows.
    drain_cycles : int
        From the last one to the end. Of a unit that writes its results, beats that were written
        take the place of rows.
    execute_cycles : int
        That the sink needs for all it was given, were nothing ever late.
    occupancy : tuple of uint64 (L,)
        For each queue, in the order of the high-water counters: cycles in which it held 0, 1, ..
        entries. All are empty without probes.
    """

    running_cycles: int
    fill_cycles: int
    drain_cycles: int
    execute_cycles: int
    occupancy: tuple[NDArray[np.uint64], ...]


@dataclass(frozen=True)
class StreamState:
    """Both sides of a stream at one moment."""

    valid: bool
    ready: bool


@dataclass(frozen=True)
class UnitState:
    """What goes in and out of a unit at one moment, and what it holds.

    Attributes
    ----------
    bundles, rows : StreamState
        Of its queues; behind a reduce unit there are no bundles, and rows are results; neither is
        there if the unit writes them.
    levels : tuple of int
        Entries of the queues inside, as `UnitProfile.occupancy`; all 0 without probes.
    """

    bundles: StreamState
    rows: StreamState
    levels: tuple[int, ...]


@dataclass(frozen=True)
class ChannelState:
    """What goes through a read port at one moment.

    Attributes
    ----------
    requests, beats : StreamState
        AR and R.
    outstanding : int
        Bursts that were asked for and haven't come whole.
    """

    requests: StreamState
    beats: StreamState
    outstanding: int


@dataclass(frozen=True)
class WriteState:
    """What goes through the port for writes at one moment.

    Attributes
    ----------
    addresses, beats, answers : StreamState
        AW, W and B.
    outstanding : int
        Bursts that were asked for and haven't been answered.
    """

    addresses: StreamState
    beats: StreamState
    answers: StreamState
    outstanding: int


class AccessKind(Enum):
    """What a register access of a list does."""

    WRITE = 0
    """Writes `value`. An answer that isn't OKAY abandons the rest of the list."""
    WAIT = 1
    """Reads again and again, until the bits under `mask` are at most `value`."""
    STOP_IF = 2
    """Reads once. If the bits under `mask` are `value`, the rest of the list is abandoned."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """A register access that a run makes while the units run.

    Attributes
    ----------
    kind : AccessKind
        What it does.
    address : int
        Byte address of the register.
    value, mask : int
        See `AccessKind`.
    """

    kind: AccessKind
    address: int
    value: int
    mask: int = 0xFFFFFFFF
