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
from ember_hw.host.launch import Launch, LoadedProgram, PreparedRun
from ember_hw.host.launch_plan import LaunchPlan
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


def test_runs_of_one_size_share_a_plan_one_after_the_other() -> None:
    program = bag_program(TABLE)
    loaded = LoadedProgram(program)
    first = loaded.prepare(request(program, (INDICES, OFFSETS)))
    launch = first.launch(0)
    loaded.keep(first)
    second = loaded.prepare(request(program, (INDICES + 5, np.array([0, 1]))))
    assert second.plan is first.plan
    assert second.launch(0) is launch
    regions = {region.symbol: region for region in launch.regions}
    stored = {s: regions[s].data[: regions[s].num_bytes].view(np.int64) for s in ("idx", "off")}
    assert stored["idx"].tolist() == [6, 7, 8]
    assert stored["off"].tolist() == [0, 1, 3]
    assert second.outputs["out"] is not first.outputs["out"]


def test_a_plan_is_one_run_s_at_a_time() -> None:
    program = bag_program(TABLE)
    loaded = LoadedProgram(program)
    runs = [loaded.prepare(request(program, (INDICES + k, OFFSETS))) for k in (0, 1)]
    assert runs[0].plan is not runs[1].plan
    for run, expected in zip(runs, ([1, 2, 3], [2, 3, 4]), strict=True):
        (region,) = (one for one in run.launch(0).regions if one.symbol == "idx")
        assert region.data[:24].view(np.int64).tolist() == expected


def test_plans_of_a_few_sizes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ember_hw.host.launch.HELD_PLANS", 2)
    program = bag_program(TABLE)
    loaded = LoadedProgram(program)
    plans: list[LaunchPlan] = []
    for size in (1, 2, 3, 2, 3, 1):
        run = loaded.prepare(request(program, (np.zeros(size, np.int64), np.array([0]))))
        loaded.keep(run)
        plans.append(run.plan)
    assert plans[3:5] == plans[1:3]
    assert len({id(plan) for plan in plans}) == 4


def test_what_is_large_is_planned_for_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ember_hw.host.launch_plan.HELD_BYTES", 8 * (3 + 3) - 1)
    program = bag_program(TABLE)
    loaded = LoadedProgram(program)
    runs: list[PreparedRun] = []
    for _ in range(2):
        runs.append(loaded.prepare(request(program, (INDICES, OFFSETS))))
        loaded.keep(runs[-1])
    assert runs[0].plan is not runs[1].plan
