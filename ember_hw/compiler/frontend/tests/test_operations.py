# pyright: basic
"""Each op class from ordinary torch code, by both routes, down to scf."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ember_hw.bench.fuzzing.op_models import CASES, Model, OpCase
from ember_hw.compiler.frontend.tests.operations import (
    captured,
    imported,
    run_at_scf,
    run_operation,
)


def _inputs(case: OpCase, columns: int, size: int, seed: int) -> tuple[torch.Tensor, ...]:
    arrays = case.inputs(np.random.default_rng(seed), columns, size)
    return tuple(torch.from_numpy(np.ascontiguousarray(array)) for array in arrays)


def _close(found, expected) -> None:
    # torch is free in its order of summation
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module", params=CASES, ids=str)
def exported(request):
    """A case with its model and the spec from torch.export; one export for many sizes."""
    case: OpCase = request.param
    model = Model(case.function, 2 * case.columns)
    return case, model, imported(model, _inputs(case, 2 * case.columns, 6, 0))


@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(size=st.integers(0, 9), seed=st.integers(0, 1000))
def test_exported_model_computes_what_torch_does(exported, size, seed):
    case, model, spec = exported
    assert spec.kind == case.kind
    inputs = _inputs(case, 2 * case.columns, size, seed)
    with torch.no_grad():
        expected = model(*inputs)
    found = run_at_scf(spec, inputs)
    assert found.shape == expected.shape
    _close(found, expected)


@pytest.mark.parametrize(
    ("case", "columns"), [(case, (1, 5)[number % 2]) for number, case in enumerate(CASES)], ids=str
)
def test_captured_graph_has_the_same_operation(case: OpCase, columns: int):
    model = Model(case.function, columns * case.columns)
    inputs = _inputs(case, columns * case.columns, 6, columns)
    values, findings = captured(model, inputs)
    assert findings.refusals == ()
    (operation,) = findings.operations
    assert operation.kind == case.kind
    found = run_operation(operation, values)
    _close(found, values[operation.output])
    with torch.no_grad():
        _close(found, model(*inputs))
