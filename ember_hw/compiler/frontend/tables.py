"""Several embedding bags of one model that run as one program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ember_hw.compiler.backend.row_length import longest_rows
from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES
from ember_hw.compiler.frontend.checked_table import checked_table
from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.emit_tables import elements_of_line
from ember_hw.compiler.frontend.operation import Operation, refuse
from ember_hw.compiler.frontend.row_types import RowTypes, rows_title
from ember_hw.compiler.frontend.torch_graph import describe
from ember_hw.compiler.program import JsonValue
from ember_hw.compiler.quantized_rows import format_of
from ember_hw.config import AcceleratorConfig

__all__ = ["MERGED_LEVELS", "BagGroup", "TablesSpec", "check_group", "difference", "group_bags"]

#: Opt levels that can run many tables as one program: rows are read whole.
MERGED_LEVELS = (2, 3)

#: A checked call: rows and columns of each table, and lookups of each bag of each.
_CHECKED_SHAPES, _CHECKED_BAGS = ((5, 3), (3, 17), (7, 1)), 3
_CHECKED_LENGTHS = (2, 0, 1, 0, 3, 0, 0, 0, 4)

Node = torch.fx.Node


@dataclass(frozen=True, eq=False)
class BagGroup:
    """Embedding bags of a graph that one program can compute.

    Attributes
    ----------
    members : tuple of Operation
        Two or more, in the order of the graph. None needs what another one computes.
    """

    members: tuple[Operation, ...]

    @property
    def kind(self) -> str:
        """Name of the host's binding."""
        return "tables"

    @property
    def node(self) -> Node:
        """The node that messages name: that of the first bag."""
        return self.members[0].node

    @property
    def where(self) -> str:
        """Say where the bags are in the model."""
        return f"{len(self.members)} bags from {describe(self.node)} on"

    @property
    def outputs(self) -> tuple[Node, ...]:
        """The pooled rows of each bag."""
        return tuple(member.output for member in self.members)

    @cached_property
    def inputs(self) -> dict[str, Node]:
        """Inputs of all bags by role; `0.indices` is that of the first one."""
        return {
            f"{number}.{role}": node
            for number, member in enumerate(self.members)
            for role, node in member.inputs.items()
        }

    @property
    def tables(self) -> tuple[str, ...]:
        """Roles whose rows are looked up."""
        return tuple(
            f"{number}.{role}"
            for number, member in enumerate(self.members)
            for role in member.tables
        )

    @property
    def sizes(self) -> dict[str, tuple[Any, ...]]:
        """Shape of each input by role, as of an `Operation`; each bag has letters of its own."""
        return {
            f"{number}.{role}": tuple(_numbered(size, number) for size in shape)
            for number, member in enumerate(self.members)
            for role, shape in member.sizes.items()
        }

    def nodes(self) -> frozenset[Node]:
        """Collect the nodes that nothing needs any more once the bags give their outputs."""
        return frozenset(node for member in self.members for node in member.nodes())


def _numbered(size: Any, number: int) -> Any:
    return (f"{size[0]}{number}", *size[1:]) if isinstance(size, tuple) else f"{size}{number}"


def group_bags(
    operations: Sequence[Operation], results: Sequence[object] = ()
) -> list[Operation | BagGroup]:
    """Put embedding bags together that one program can compute.

    These have the same mode, dtypes of indices and of tables, and use of weights, and none of them
    needs another one's result.

    Parameters
    ----------
    operations : sequence of Operation
        What `find_operations` found.
    results : sequence of object
        Nodes in the order in which bags should stand in groups; by default that of the graph.

    Returns
    -------
    list of Operation and BagGroup
        Each operation once, alone or in a group of two or more, in the order of the first ones.
    """
    depths = _depths(operations)
    groups: dict[object, list[Operation]] = {}
    for operation in operations:
        key: object = operation
        if operation.kind == "embedding_bag":
            key = _kind(operation), depths[operation.output]
        groups.setdefault(key, []).append(operation)
    wanted = {node: place for place, node in enumerate(results)}
    return [
        BagGroup(tuple(sorted(members, key=lambda member: wanted.get(member.output, 0))))
        if len(members) > 1
        else members[0]
        for members in groups.values()
    ]


class _BagKind(NamedTuple):
    """What bags of one program have in common."""

    mode: str
    index_dtype: str
    weighted: bool
    rows: str
    output: str


def _kind(bag: Operation) -> _BagKind:
    facts = bag.facts
    rows = str(bag.inputs["weight"].meta["val"].dtype).removeprefix("torch.")
    if "packing" in facts:
        _, codes, scale_dtype = facts["packing"]
        rows = rows_title(format_of(codes, scale_dtype).name)
    return _BagKind(
        facts["mode"],
        facts["index_dtype"],
        "per_sample_weights" in bag.inputs,
        rows,
        facts.get("output") or rows,
    )


def difference(
    first: Operation | BagGroup, other: Operation | BagGroup, names: Mapping[str, str]
) -> str | None:
    """Say why two bags can't be in one program; None where their kinds don't tell.

    Parameters
    ----------
    first, other : Operation or BagGroup
        Of `group_bags`.
    names : mapping of str to str
        What the model calls tables, by the names of their nodes.
    """
    bag, its = (o.members[0] if isinstance(o, BagGroup) else o for o in (first, other))
    if bag.kind != "embedding_bag" or its.kind != "embedding_bag":
        return None
    wanted, found = _kind(bag), _kind(its)
    nodes = [o.inputs["weight"].name for o in (bag, its)]
    tables = [names.get(name, name) for name in nodes]
    titles = {
        "mode": "mode",
        "index_dtype": "dtype of indices",
        "weighted": "use of per_sample_weights",
        "rows": "dtype of table",
        "output": "output dtype",
    }
    for field, title in titles.items():
        if getattr(wanted, field) != getattr(found, field):
            return (
                f"{title} of the bag in table {tables[1]!r} must be {getattr(wanted, field)}, as "
                f"of that in table {tables[0]!r}, to run in the same program, not "
                f"{getattr(found, field)}, in {describe(other.node)}"
            )
    return None


def _depths(operations: Sequence[Operation]) -> dict[Node, int]:
    """Return by output how many operations stand before one another on the way to it.

    Groups of one depth never wait for each other.
    """
    if not operations:
        return {}
    outputs = {operation.output for operation in operations}
    depths: dict[Node, int] = {}
    for node in operations[0].output.graph.nodes:
        before = max((depths[child] for child in node.all_input_nodes), default=0)
        depths[node] = before + (node in outputs)
    return depths


def check_group(group: BagGroup, opt_level: int, config: AcceleratorConfig) -> None:
    """Refuse a group that can't be one program at an opt level, or has rows that are too long.

    Raises
    ------
    UnsupportedError
        Names the rule, and the table or the bags.
    """
    if opt_level not in MERGED_LEVELS:
        refuse(
            group.node,
            f"opt_level must be 2 or 3 to compute {group.where} at once, not {opt_level}",
        )
    for member in group.members:
        table = member.inputs["weight"]
        longest = longest_rows(config, table.meta["val"].element_size())[opt_level]
        columns = int(table.meta["val"].shape[1])
        if "packing" in member.facts:
            columns, codes, scale_dtype = member.facts["packing"]
            longest = format_of(codes, scale_dtype).elements(longest)
        if not 1 <= columns <= longest:
            refuse(
                member.node,
                f"embedding_dim of table {table.name!r} must be in [1, {longest}] at opt_level "
                f"{opt_level} on config {config.name!r}, not {columns}, in {describe(member.node)}",
            )


@dataclass(frozen=True, eq=False)
class TablesSpec:
    """What the host has to know of bags that run as one program.

    Attributes
    ----------
    bags : tuple of EmbeddingBagSpec
        Of the same mode, dtypes of indices and tables, and use of weights.
    symbols : tuple of str
        What the program calls each bag's table; bags with one symbol share a table.
    input_names : tuple of str
        The model's inputs in the order of its `forward`.
    size_limits : tuple of (str, int, int, int or None)
        As of an `EmbeddingBagSpec`.
    """

    bags: tuple[EmbeddingBagSpec, ...]
    symbols: tuple[str, ...]
    input_names: tuple[str, ...]
    size_limits: tuple[tuple[str, int, int, int | None], ...] = ()

    @property
    def kind(self) -> str:
        """Name of the host's binding."""
        return "tables"

    @property
    def mode(self) -> str:
        """What all bags do with their rows."""
        return self.bags[0].mode

    @property
    def index_dtype(self) -> str:
        """Dtype of all indices."""
        return self.bags[0].index_dtype.name

    @property
    def types(self) -> RowTypes:
        """Element types of the rows of all tables, of weights and of pooled rows."""
        return self.bags[0].types

    @property
    def is_weighted(self) -> bool:
        """Whether lookups have weights."""
        return self.bags[0].weights_name is not None

    def model(self) -> dict[str, JsonValue]:
        """Return what the host has to know, as JSON values."""
        tables = self.tables()
        pairs = list(zip(self.symbols, self.bags, strict=True))
        return {
            "name": f"{len(self.bags)} bags in {len(tables)} tables",
            "mode": self.mode,
            "index_dtype": self.index_dtype,
            "types": list(self.types),
            "bags": [{**bag.model(), "table": symbol} for symbol, bag in pairs],
            "input_names": list(self.input_names),
            "size_limits": [list(limit) for limit in self.size_limits],
            "stacks": {"flat": list(tables)},
            "table_names": {symbol: bag.name for symbol, bag in pairs},
        }

    def tables(self) -> dict[str, NDArray[Any]]:
        """Return the tables by symbol, each once."""
        pairs = zip(self.symbols, self.bags, strict=True)
        return {symbol: table for symbol, bag in pairs for table in bag.tables().values()}

    def check_call(self, seed: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return a small call of the function, and what its rows must be in the program's order.

        Its tables are others than the model's: neither their number nor their shapes are part of
        the program.
        """
        random = np.random.default_rng(seed)
        types = self.types
        checked = [
            checked_table(types.rows, random.standard_normal(shape)) for shape in _CHECKED_SHAPES
        ]
        units = [table.memory.size // elements_of_line(types.rows) for table in checked]
        places = np.cumsum([0, *units[:-1]])
        offsets = np.cumsum([0, *_CHECKED_LENGTHS])
        numbers = np.repeat(np.arange(len(_CHECKED_LENGTHS)), _CHECKED_LENGTHS) // _CHECKED_BAGS
        indices = np.array([random.integers(0, _CHECKED_SHAPES[number][0]) for number in numbers])
        weights = random.standard_normal(indices.size).astype(ELEMENT_DTYPES[types.weights])
        factors = weights.astype(np.float32)
        start = -np.inf if self.mode == "max" else 0.0
        widest = max(table.numbers.shape[1] for table in checked)
        out = np.full((len(_CHECKED_LENGTHS), widest), start, np.float32)
        expected = out.copy()
        written = np.zeros(out.shape, np.bool_)
        for bag, length in enumerate(_CHECKED_LENGTHS):
            table = checked[bag // _CHECKED_BAGS].numbers
            pooled = np.full(table.shape[1], start if length else 0.0, np.float32)
            for j in range(offsets[bag], offsets[bag + 1]):
                row = table[indices[j]]
                row = factors[j] * row if self.is_weighted else row
                pooled = np.maximum(pooled, row) if self.mode == "max" else pooled + row
            if self.mode == "mean":
                pooled = pooled / np.float32(max(length, 1))
            expected[bag, : pooled.size] = pooled
            written[bag, : pooled.size] = True
        arguments: dict[str, Any] = {
            "place": places,
            "rows": np.array([rows for rows, _ in _CHECKED_SHAPES]),
            "length": np.array([table.length_bytes for table in checked]),
            "pitch": np.array([table.pitch_bytes for table in checked]),
            "off": offsets,
            "idx": indices.astype(self.index_dtype),
            **({"psw": weights} if self.is_weighted else {}),
            "flat": np.concatenate([table.memory for table in checked]),
            types.accumulator: out,
        }
        reference = {types.accumulator: expected}
        if types.accumulator != "out":
            # Nothing is written behind a narrower table's columns.
            reference["out"] = np.where(written, expected, 0).astype(types.output_dtype())
            arguments["out"] = np.zeros_like(reference["out"])
        arguments |= {"T": len(_CHECKED_SHAPES), "B": _CHECKED_BAGS}
        return arguments, reference
