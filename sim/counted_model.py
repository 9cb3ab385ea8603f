"""What the harness counts and keeps of a simulation, beside its outputs."""

from __future__ import annotations

from ctypes import CDLL, byref, c_uint64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .build import ModelShape
from .c_interface import (
    FAILED,
    ChannelCountersStruct,
    CountersStruct,
    ProfileStruct,
    StreamStruct,
    WriteCountersStruct,
)
from .memory_library import COMMAND_DTYPE, READ_DTYPE
from .results import (
    ChannelCounters,
    ChannelState,
    Counters,
    SimulationError,
    StreamState,
    UnitProfile,
    UnitState,
    WriteCounters,
    WriteState,
)
from .top import LEVELS


class CountedModel:
    """A compiled model that is open; see `VerilatorModel`."""

    _library: CDLL
    _handle: int | None
    shape: ModelShape

    def counters(self) -> Counters:
        """Return what was counted since the model was opened or `clear_counters` was called."""
        struct = CountersStruct()
        by_id = (c_uint64 * (1 << max(self.shape.id_bits, self.shape.index_id_bits)))()
        self._library.ember_counters(self._open(), byref(struct), by_id)
        values = {field[0]: getattr(struct, field[0]) for field in CountersStruct._fields_}
        return Counters(**values, read_beats_by_id=np.array(by_id, np.uint64))

    def channel_counters(self, channel: int) -> ChannelCounters:
        """Return what was counted on one read port."""
        self._check_channel(channel)
        struct = ChannelCountersStruct()
        self._library.ember_channel_counters(self._open(), channel, byref(struct))
        return ChannelCounters(*(getattr(struct, field[0]) for field in struct._fields_))

    def write_counters(self) -> WriteCounters:
        """Return what was counted on the port for writes."""
        struct = WriteCountersStruct()
        self._library.ember_write_counters(self._open(), byref(struct))
        return WriteCounters(*(getattr(struct, field[0]) for field in struct._fields_))

    def record_reads(self, on: bool = True, *, most: int = (1 << 64) - 1) -> None:
        """Forget the read bursts of `reads` and keep those from now on, or stop.

        Parameters
        ----------
        on : bool
            False stops.
        most : int
            Bursts to keep of each channel, the first ones.
        """
        self._library.ember_record_reads(self._open(), most if on else 0)

    def reads(self, channel: int = 0) -> NDArray[Any]:
        """Return the read bursts kept, in order.

        Returns
        -------
        READ_DTYPE (N,)
            Cycle of the request's handshake, address, ID, beats, and bytes of a beat.
        """
        return self._records("ember_reads", channel, READ_DTYPE)

    def record_writes(self, *, most: int = (1 << 64) - 1) -> None:
        """Forget the beats of `write_cycles`, and keep those from now on, so many at most."""
        self._library.ember_record_writes(self._open(), most)

    def write_cycles(self) -> NDArray[np.uint64]:
        """Return the cycle of each beat that was written, in order: uint64 (N,)."""
        function = self._library.ember_write_cycles
        cycles = np.zeros(function(self._open(), None, 0), np.uint64)
        function(self._open(), cycles.ctypes.data, len(cycles))
        return cycles

    def dram_commands(self, channel: int = 0) -> NDArray[Any]:
        """Return the commands that a DRAM model issued since it was set; see `record_commands`.

        Returns
        -------
        COMMAND_DTYPE (N,)
            None with another memory.
        """
        return self._records("ember_dram_commands", channel, COMMAND_DTYPE)

    def _records(self, name: str, channel: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        self._check_channel(channel)
        function = getattr(self._library, name)
        records = np.zeros(function(self._open(), channel, None, 0), dtype)
        function(self._open(), channel, records.ctypes.data, len(records))
        return records

    def clear_counters(self) -> None:
        """Count from zero again."""
        self._library.ember_clear_counters(self._open())

    def clear_profile(self) -> None:
        """Forget what `profile` tells."""
        self._library.ember_clear_profile(self._open())

    def profile(self, unit: int = 0) -> UnitProfile:
        """Return what a unit did since `clear_profile`; its sink's part: since that was set."""
        self._check_unit(unit)
        struct = ProfileStruct()
        self._library.ember_profile(self._open(), unit, byref(struct))
        function = self._library.ember_occupancy
        occupancy: list[NDArray[np.uint64]] = []
        for queue in range(LEVELS):
            cycles = np.zeros(function(self._open(), unit, queue, None, 0), np.uint64)
            function(self._open(), unit, queue, cycles.ctypes.data, len(cycles))
            occupancy.append(cycles)
        values = {field[0]: getattr(struct, field[0]) for field in ProfileStruct._fields_}
        return UnitProfile(**values, occupancy=tuple(occupancy))

    def unit_state(self, unit: int = 0) -> UnitState:
        """Return what goes in and out of a unit now, and what it holds."""
        self._check_unit(unit)
        streams = (StreamStruct * 2)()
        self._library.ember_unit_streams(self._open(), unit, streams)
        level = self._library.ember_level
        levels = tuple(int(level(self._open(), unit, queue)) for queue in range(LEVELS))
        bundles, rows = map(_stream_state, streams)
        return UnitState(bundles, rows, levels)

    def channel_state(self, channel: int = 0) -> ChannelState:
        """Return what goes through a read port now."""
        self._check_channel(channel)
        streams = (StreamStruct * 2)()
        outstanding = self._library.ember_channel_streams(self._open(), channel, streams)
        requests, beats = map(_stream_state, streams)
        return ChannelState(requests, beats, int(outstanding))

    def write_state(self) -> WriteState:
        """Return what goes through the port for writes now; nothing does without one."""
        streams = (StreamStruct * 3)()
        outstanding = self._library.ember_write_streams(self._open(), streams)
        addresses, beats, answers = map(_stream_state, streams)
        return WriteState(addresses, beats, answers, int(outstanding))

    def _check_channel(self, channel: int) -> None:
        if not 0 <= channel < len(self.shape.channels):
            raise ValueError(
                f"channel must be 0 to {len(self.shape.channels) - 1}, not {channel!r}"
            )

    def _check_unit(self, unit: int) -> None:
        if not 0 <= unit < self.shape.units:
            raise ValueError(f"unit must be 0 to {self.shape.units - 1}, not {unit!r}")

    def _open(self) -> int:
        if self._handle is None:
            raise ValueError("the model must be open, and has been closed")
        return self._handle

    def _checked(self, result: int) -> int:
        if result == FAILED:
            raise SimulationError(self._library.ember_message(self._open()).decode())
        return result


def _stream_state(struct: StreamStruct) -> StreamState:
    return StreamState(bool(struct.valid), bool(struct.ready))
