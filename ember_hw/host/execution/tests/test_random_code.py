"""Random code: the engines agree in results, counts and errors, wherever the queues are cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ember_hw.errors import DeviceError
from ember_hw.host.execution.tests.codes import (
    CONFIG,
    ELEMENTS,
    EVENTS,
    chunk_of,
    nest_of,
    run_code,
)
from ember_hw.host.execution.tests.random_codes import ROWS, random_arrays, random_code
from ember_hw.host.execution.tests.runs import ENGINES, cut
from ember_hw.host.reference import bit_equal
from ember_hw.isa import event_mask


def outcome(seed: int, engine: str, highest: int) -> tuple[str, dict[str, Any], dict[int, int]]:
    """Run random code on random queues with indices below `highest`: error, arrays, calls."""
    code = random_code(seed)
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 40))
    masks = [event_mask([event], CONFIG) for event in EVENTS]
    events = [sum(m for m in masks if random.random() < 0.5) for _ in range(count)]
    scalars = np.empty((count, 4), np.uint32)
    scalars[:, 0] = random.integers(0, highest, count)
    values = np.array([-2, -1, -0.0, 0, 0.5, 1, np.inf, np.nan], np.float32)
    scalars[:, 1:] = random.choice(values, (count, 3)).view(np.uint32)
    rows = random.choice(values[:6], (17, ELEMENTS))
    whole = chunk_of(nest_of(code), events, scalars, rows)
    arrays = random_arrays(seed)
    pieces = cut(whole, np.random.default_rng(seed), 1 + seed % 4)
    try:
        side = run_code(code, list(pieces), arrays, engine, {"N": ROWS})
    except DeviceError as error:
        return str(error), {}, {}
    return "", arrays, side.calls


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 32))
def test_engines_agree_bit_for_bit(seed: int) -> None:
    (error, arrays, calls), (other_error, others, other_calls) = (
        outcome(seed, engine, ROWS) for engine in ENGINES
    )
    assert error == other_error
    assert calls == other_calls
    assert all(bit_equal(array, others[symbol]) for symbol, array in arrays.items())


@pytest.mark.parametrize("seed", range(6))
def test_engines_refuse_the_same(seed: int) -> None:
    """A token's index leads outside: both name the same access, value and limit."""
    errors = {outcome(seed, engine, 9)[0] for engine in ENGINES}
    assert len(errors) == 1
