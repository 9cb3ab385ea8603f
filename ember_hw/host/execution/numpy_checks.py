"""Checks of execute code for many tokens at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.host.execution.checks import (
    Bound,
    Checked,
    ConvertCheck,
    DivisorCheck,
    IndexCheck,
    RangeCheck,
    RowCheck,
    StepCheck,
)
from ember_hw.host.execution.numpy_frame import Failure, Frame
from ember_hw.host.execution.numpy_operations import Values
from ember_hw.host.execution.numpy_rows import Rows

__all__ = ["check"]


def check(
    frame: Frame, check: Checked, arrays: Mapping[str, NDArray[Any]], rows: Rows | None
) -> None:
    """Raise `Failure` if a check fails for a token of a frame."""
    match check:
        case IndexCheck():
            index = frame[check.index]
            limit = _limit(frame, check.bound, index, arrays, rows)
            bad = (index < 0) | (index >= limit)
            if check.guard is not None:
                bad = bad & (frame[check.guard[0]] < frame[check.guard[1]])
            _refuse(frame, check.number, bad, index, limit)
        case RangeCheck():
            lower, upper, step = (frame[n] for n in (check.lower, check.upper, check.step))
            first = lower if check.offset is None else lower + frame[check.offset]
            limit = _limit(frame, check.bound, first, arrays, rows)
            last = first + (upper - 1 - lower) // step * step
            beyond = first + -((first - limit) // step) * step
            is_outside = (first < 0) | (first >= limit)
            bad = (lower < upper) & (is_outside | (last >= limit))
            _refuse(frame, check.number, bad, np.where(is_outside, first, beyond), limit)
        case DivisorCheck():
            divisor = frame[check.divisor]
            _refuse(frame, check.number, divisor == 0, divisor, np.int64(0))
        case StepCheck():
            step = frame[check.step]
            _refuse(frame, check.number, step < 1, step, np.int64(0))
        case RowCheck():
            assert rows is not None
            is_set = rows.is_set(frame.each(frame[check.row]))
            _refuse(frame, check.number, ~is_set, np.int64(0), np.int64(0))
        case ConvertCheck():
            value = frame[check.value]
            bound = np.float32(2.0**63)
            bad = ~((value >= -bound) & (value < bound))
            _refuse(frame, check.number, bad, np.int64(0), np.int64(0))
        case _:
            raise AssertionError(check)


def _limit(
    frame: Frame,
    bound: Bound,
    index: Values,
    arrays: Mapping[str, NDArray[Any]],
    rows: Rows | None,
) -> Values:
    """Return what an index must be below."""
    if bound.dimension is not None:
        return np.int64(arrays[bound.name].shape[bound.dimension])
    assert rows is not None
    numbers = np.asarray(frame[bound.name])
    lengths = rows.named(bound.name).lengths(numbers.reshape(-1))
    return lengths[:, None] if np.ndim(index) == 2 else lengths


def _refuse(frame: Frame, number: int, bad: Values, value: Values, limit: Values) -> None:
    if not np.any(bad):
        return
    shape = np.broadcast_shapes(np.shape(bad), np.shape(value), np.shape(limit))
    bad, value, limit = (np.broadcast_to(x, shape) for x in (bad, value, limit))
    place = tuple(int(k) for k in np.unravel_index(int(np.argmax(bad)), shape)) if shape else ()
    # A value for all tokens is that of the first one, too.
    token = place[0] if place and shape[0] == frame.times.size else 0
    raise Failure(int(frame.times[token]), number, int(value[place]), int(limit[place]))
