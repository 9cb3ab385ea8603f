"""Programs of the access unit written by hand, one file of `au` text each, for every op class.

`TASKS` makes each of them a task: seeded inputs, what must come of them, and the limit of its
useful bytes. Each program moves as few bytes beside its rows as there can be: where the outer loop
is long, one stream serves both bounds of the inner one, and no bundle holds a scalar that the
execute side can count itself.
"""

from __future__ import annotations

from collections.abc import Callable

from ember_hw.bench.programs.bags import (
    embedding_bag,
    embedding_bag_queue,
    embedding_bag_requests,
    embedding_bag_weighted,
    gather,
)
from ember_hw.bench.programs.blocks import block_attention
from ember_hw.bench.programs.graphs import fusedmm, knowledge_graph, message_passing, spmm
from ember_hw.bench.programs.tables import tables, tables_of_one_bag, tables_of_shapes
from ember_hw.bench.programs.task import Task, enough, program_text
from ember_hw.config import AcceleratorConfig

__all__ = ["TASKS", "Task", "config_for_all", "program_text"]

#: What makes each task, by its name: of a seed, and of sizes that have defaults.
TASKS: dict[str, Callable[..., Task]] = {
    make.__name__: make
    for make in (
        embedding_bag,
        embedding_bag_weighted,
        embedding_bag_requests,
        embedding_bag_queue,
        gather,
        tables,
        tables_of_one_bag,
        tables_of_shapes,
        spmm,
        message_passing,
        fusedmm,
        knowledge_graph,
        block_attention,
    )
}


def config_for_all(base: AcceleratorConfig, *, input_queue: bool = False) -> AcceleratorConfig:
    """Return a config with at least what every task needs, else as it is.

    Parameters
    ----------
    base : AcceleratorConfig
        Gives the rest.
    input_queue : bool
        Whether it is to have an input queue, which `embedding_bag_queue` needs.
    """
    least = {"traversal_units": 3, "streams_per_unit": 4, "row_entries": 3, "exports": 6}
    return enough(base, [least, {"input_queue": int(input_queue)}])
