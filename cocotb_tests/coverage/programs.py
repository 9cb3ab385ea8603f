"""Programs that the access unit runs to be covered: the case table, op classes, random ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ember_hw.bench.fuzzing.case import Case, Environment
from ember_hw.bench.fuzzing.faults import random_case
from ember_hw.bench.programs import TASKS, Task
from ember_hw.compiler.interpreters.scalar_values import TooLongError
from ember_hw.config import AcceleratorConfig
from ember_hw.host.bindings.embedding_bag import bind
from ember_hw.host.launch import Launch, LoadedProgram
from ember_hw.host.tests.cases import CASES
from ember_hw.host.tests.programs import bag_program
from ember_hw.sim.options import IdealMemory, TestMemory

#: Sizes of the op classes' tasks: a few hundred tokens each.
_SIZES: dict[str, dict[str, Any]] = {
    "embedding_bag": {"lookups": 300},
    "embedding_bag_weighted": {"lookups": 300},
    "embedding_bag_requests": {"requests": 6, "bags": 3, "lookups": 20},
    "embedding_bag_queue": {"requests": 6, "bags": 3, "lookups": 20},
    "gather": {"lookups": 300},
    "tables": {"count": 8, "bags": 8},
    "tables_of_one_bag": {"count": 100},
    "tables_of_shapes": {"count": 8, "bags": 8},
    "spmm": {"edges": 300},
    "message_passing": {"edges": 300},
    "fusedmm": {"edges": 300},
    "knowledge_graph": {"triples": 100},
    "block_attention": {"blocks": 8},
}


def case_table(config: AcceleratorConfig) -> Iterator[tuple[str, Case]]:
    """Yield the lookups of the case table at each opt level."""
    for lookup in CASES:
        for opt_level in range(4):
            program = bag_program(
                lookup.table(),
                opt_level,
                config=config,
                index_dtype=lookup.indices.dtype.name,
                include_last_offset=lookup.include_last_offset,
            )
            launches = LoadedProgram(program).launches(bind(program, lookup.request()))
            case = _case(launches, Environment(memory=IdealMemory(latency_cycles=30)))
            if _is_short(case):
                yield f"{lookup.name}/O{opt_level}", case


def op_classes(config: AcceleratorConfig) -> Iterator[tuple[str, Case]]:
    """Yield the op classes' programs that fit the config."""
    for number, (name, make) in enumerate(TASKS.items()):
        task = make(number, **_SIZES[name])
        if task.config(config) != config:
            continue
        memory = TestMemory(seed=number, latency_cycles=(1, 60))
        yield name, _case(task.launches(config), Environment(memory=memory), task)


def random_programs(config: AcceleratorConfig, count: int) -> Iterator[tuple[str, Case]]:
    """Yield random programs with random faults and surroundings."""
    for seed in range(count):
        yield f"seed {seed}", random_case(config, seed)


def _case(launches: list[Launch], environment: Environment, task: Task | None = None) -> Case:
    lines = {} if task is None else task.lines
    return Case(
        seed=0,
        kind="legal",
        microcode=launches[0].microcode,
        regions=tuple((region.base, region.data) for region in launches[0].regions),
        requests=tuple(launch.arguments for launch in launches),
        lines={place: tuple(line.tobytes() for line in held) for place, held in lines.items()},
        environment=environment,
    )


def _is_short(case: Case) -> bool:
    """Whether a case has no more tokens than a case may."""
    try:
        return not case.whole.faults
    except TooLongError:
        return False
