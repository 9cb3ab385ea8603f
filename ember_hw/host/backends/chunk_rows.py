"""The rows of a chunk as the reduce unit's models want them: numbers of fp32."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.interpreters.microcode_issue import Chunk
from ember_hw.compiler.interpreters.reduce import widened
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import RowFormat
from ember_hw.isa.reduce import ACCUMULATOR_BEATS, NUMBER_BYTES, row_bytes
from ember_hw.registers import NO_UNIT, FaultCode, fault_error

__all__ = ["row_numbers", "row_spans"]


def row_spans(chunk: Chunk) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the first beat of each row of a chunk, and its bytes."""
    ends = np.flatnonzero(chunk.row_last)
    firsts = np.concatenate((np.zeros(1, np.intp), ends[:-1] + 1)) if len(ends) else ends
    before = np.concatenate(([0], np.cumsum(chunk.row_keep, dtype=np.int64)))
    return firsts, before[ends + 1] - before[firsts]


def row_numbers(
    chunk: Chunk,
    firsts: NDArray[np.intp],
    sizes: NDArray[np.int64],
    header: Mapping[str, int],
    length: int,
    config: AcceleratorConfig,
) -> NDArray[np.float32]:
    """Return rows as numbers of fp32, (R, D).

    Parameters
    ----------
    chunk : Chunk
        Holds them.
    firsts, sizes : integers (R,)
        First beat of each, and its bytes.
    header : mapping of str to int
        Record ``reduce``.
    length : int
        Bytes of D numbers of fp32.
    config : AcceleratorConfig
        Of the unit.

    Raises
    ------
    DeviceError
        A row is of another length, or the length is none: the fault UNEXPECTED_ROW_LENGTH.
    """
    most = ACCUMULATOR_BEATS * config.bus_bytes
    format, half_scale = RowFormat(header["format"]), header["half_scale"]
    bytes_of_row = row_bytes(length, format, half_scale)
    if length % NUMBER_BYTES or not 0 < length <= most or (sizes != bytes_of_row).any():
        raise fault_error(FaultCode.UNEXPECTED_ROW_LENGTH, NO_UNIT)
    beats = -(-bytes_of_row // config.bus_bytes)
    places = firsts[:, None] + np.arange(beats)
    data = chunk.row_beats[places].reshape(len(firsts), beats * config.bus_bytes)
    data = data[:, :bytes_of_row]
    return widened(np.ascontiguousarray(data), format, half_scale)
