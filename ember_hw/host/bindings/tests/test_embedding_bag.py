from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ember_hw.errors import ProgramError
from ember_hw.host.bindings.embedding_bag import check, lookup_request, request
from ember_hw.host.bindings.inputs import checked_lookups
from ember_hw.host.tests.programs import bag_program

TABLE = np.zeros((10, 8), np.float32)
INDICES, OFFSETS = np.array([1, 2, 3]), np.array([0, 2])


@pytest.mark.parametrize(
    "inputs",
    [
        (INDICES, OFFSETS),
        [INDICES, OFFSETS],
        {"offsets": OFFSETS, "indices": INDICES},
        {"indices": INDICES.astype(np.int32), "offsets": OFFSETS},
    ],
)
def test_inputs_are_taken_in_order_or_by_name(inputs: Any) -> None:
    request = lookup_request(bag_program(TABLE), inputs)
    assert request.indices.tolist() == [1, 2, 3]
    assert request.offsets.tolist() == [0, 2, 3]


@pytest.mark.parametrize("inputs", [(np.array([[1, 2]]),), (np.array([[1, 2]]), None)])
def test_offsets_may_be_left_out_with_2d_indices(inputs: Any) -> None:
    assert lookup_request(bag_program(TABLE), inputs).offsets.tolist() == [0, 2]


def test_checked_lookup_is_taken_as_it_is() -> None:
    program = bag_program(TABLE)
    lookup = lookup_request(program, (INDICES, OFFSETS))
    taken = request(program, [lookup])
    assert taken.arrays["idx"] is lookup.indices
    assert checked_lookups([lookup]) == [lookup]
    assert checked_lookups([]) is None
    assert checked_lookups([lookup, INDICES]) is None
    assert checked_lookups((lookup,)) is None


RULE = "inputs of program 'bag' must be (indices, offsets), "


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((INDICES, OFFSETS, OFFSETS), RULE + "not 3 values"),
        ({"indices": INDICES, "weights": OFFSETS}, RULE + "not 'weights'"),
        ({"offsets": OFFSETS}, RULE + "and 'indices' must not be left out"),
        ((), RULE + "and 'indices' must not be left out"),
        (INDICES, RULE + "as a tuple or by name, not ndarray"),
    ],
)
def test_inputs_that_don_t_match_are_refused(inputs: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=f"^{re.escape(message)}$"):
        lookup_request(bag_program(TABLE), inputs)


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (
            ["indices", 0, 4, 4],
            "indices.shape[0] must be 4, as the program was exported for, not 3",
        ),
        (
            ["offsets", 0, 0, 1],
            "offsets.shape[0] must be in [0, 1], as the program was exported for, not 2",
        ),
        (
            ["offsets", 0, 5, None],
            "offsets.shape[0] must be at least 5, as the program was exported for, not 2",
        ),
    ],
)
def test_sizes_that_an_export_excludes_are_refused(limit: list[Any], message: str) -> None:
    program = bag_program(TABLE)
    program = replace(program, model={**program.model, "size_limits": [limit]})
    message += "; export it again with Dim.AUTO for this dimension"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        lookup_request(program, (INDICES, OFFSETS))


def test_size_of_the_export_comes_before_the_rules_of_a_request() -> None:
    program = bag_program(TABLE)
    program = replace(program, model={**program.model, "size_limits": [["indices", 0, 4, 4]]})
    with pytest.raises(ValueError, match=r"^indices\.shape\[0\] must be 4, "):
        lookup_request(program, (np.array([99, 99]), OFFSETS))
    with pytest.raises(TypeError, match=r"^indices must be a NumPy array"):
        lookup_request(program, ([1, 2], OFFSETS))


def test_sizes_that_an_export_allows_pass() -> None:
    program = bag_program(TABLE)
    limits = [["indices", 0, 3, 3], ["offsets", 0, 0, None], ["indices", 1, 7, 7]]
    program = replace(program, model={**program.model, "size_limits": limits})
    assert lookup_request(program, (INDICES, OFFSETS)).num_bags == 2


@pytest.mark.parametrize(
    ("table", "found"),
    [
        (TABLE.astype(np.float16), "float16 of shape (10, 8)"),
        (TABLE[:9], "float32 of shape (9, 8)"),
    ],
)
def test_other_table_than_the_model_s_is_refused(table: np.ndarray, found: str) -> None:
    program = replace(bag_program(TABLE), tables={"tab": table})
    message = f"table 'tab' of program 'bag' must be float32 of shape (10, 8), not {found}"
    with pytest.raises(ProgramError, match=f"^{re.escape(message)}$"):
        check(program)
