from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.backend.execute_code import ExecuteCode, Extent, Memory
from ember_hw.compiler.program import Argument, Program
from ember_hw.errors import ProgramError
from ember_hw.host.bindings.embedding_bag import request
from ember_hw.host.launch import Launch, LoadedProgram
from ember_hw.host.tests.programs import bag_program

TABLE = np.zeros((10, 8), np.float32)
INDICES, OFFSETS = np.array([1, 2, 3]), np.array([0, 2])


def launch_of(program: Program, indices: Any = INDICES, offsets: Any = OFFSETS) -> Launch:
    (launch,) = LoadedProgram(program).launches(request(program, (indices, offsets)))
    return launch


@pytest.mark.parametrize("argument", [Argument("psw", "memref<?xf32>"), Argument("psw", "index")])
def test_argument_that_no_lookup_provides_is_refused(argument: Argument) -> None:
    program = replace(bag_program(TABLE), arguments=(argument,))
    message = (
        "argument of program 'bag' must be one of off, idx, tab, out, B, which its binding brings, "
        "not 'psw'"
    )
    with pytest.raises(ProgramError, match=f"^{re.escape(message)}$"):
        launch_of(program)


@pytest.mark.parametrize("extent", [3, "rows"])
def test_scratch_memory_is_made_for_each_run(extent: int | str) -> None:
    scratch = Argument("scratch", "memref<?x2xi32>", "scratch", (extent, 2))
    program = bag_program(TABLE)
    rows = Extent("rows", "idx", 0)
    program = replace(
        program,
        arguments=(*program.arguments, scratch),
        host_code=ExecuteCode((Memory("idx", "i64", 1),), entry=(rows,)),
    )
    run = LoadedProgram(program).prepare(request(program, (INDICES, OFFSETS)))
    assert (run.arrays["scratch"].shape, run.arrays["scratch"].dtype) == ((3, 2), np.int32)


def test_extents_of_scratch_memory_need_host_code() -> None:
    scratch = Argument("scratch", "memref<?xf32>", "scratch", ("count",))
    program = bag_program(TABLE)
    program = replace(program, arguments=(*program.arguments, scratch))
    message = "host code of program 'bag' must define 'count', and it has none"
    with pytest.raises(ProgramError, match=f"^{message}$"):
        launch_of(program)


def test_launch_says_what_its_request_carries() -> None:
    program = bag_program(TABLE)
    assert launch_of(program).arguments == (0, 0, 0, 0)
    nest = replace(program.nests[0], registers={"B": 1})
    assert launch_of(replace(program, nests=(nest,))).arguments == (0, 2, 0, 0)


@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
@pytest.mark.parametrize("given", [np.int32, np.int64])
def test_indices_reach_memory_in_the_program_s_dtype(index_dtype: str, given: Any) -> None:
    program = bag_program(TABLE, index_dtype=index_dtype)
    launch = launch_of(program, INDICES.astype(given), OFFSETS.astype(given))
    regions = {region.symbol: region for region in launch.regions}
    stored = regions["idx"].data[: regions["idx"].num_bytes].view(index_dtype)
    assert stored.tolist() == [1, 2, 3]
    assert regions["off"].data[: regions["off"].num_bytes].view(np.int64).tolist() == [0, 2, 3]
    assert launch.microcode.get("unit1.stream0", "elements") == stored.size
