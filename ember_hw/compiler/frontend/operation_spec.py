"""What the host has to know of an operation, other than an embedding bag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ember_hw.compiler.element_dtypes import FLOAT_NAMES, element_name
from ember_hw.compiler.frontend.operation import Operation
from ember_hw.compiler.frontend.quantized_ops import table_of
from ember_hw.compiler.frontend.row_types import RowTypes
from ember_hw.compiler.quantized_rows import QuantizedTable

#: Symbols of FusedMM's matrices by role.
FUSEDMM_SYMBOLS = {"queries": "qry", "keys": "key", "dense": "tab"}


class Source(NamedTuple):
    """Where a role's value comes from: an input of the model, or one row of it (``edges[0]``)."""

    name: str
    row: int | None = None


@dataclass(frozen=True, eq=False)
class OperationSpec:
    """What the host has to know of an imported operation.

    Attributes
    ----------
    kind : str
        Op class.
    name : str
        What reports call it.
    facts : mapping of str to JSON value
        See the matcher of the kind.
    input_names : tuple of str
        The model's inputs in the order of its `forward`.
    sources : mapping of str to Source
        For each role that the caller provides, where its value comes from.
    weights : mapping of str to (str, (num_embeddings, embedding_dim))
        For each role that the model provides, its name there and its value: float32, of an
        embedding float16, bfloat16 or a QuantizedTable, too.
    size_limits : tuple of (str, int, int, int or None)
        Input, dimension, smallest and largest size, where it was exported for these alone.
    """

    kind: str
    name: str
    facts: Mapping[str, Any]
    input_names: tuple[str, ...]
    sources: Mapping[str, Source]
    weights: Mapping[str, tuple[str, NDArray[Any] | QuantizedTable]] = field(repr=False)
    size_limits: tuple[tuple[str, int, int, int | None], ...] = ()

    @property
    def types(self) -> RowTypes:
        """Element types of rows, weights and result.

        Those of an embedding and of an aggregation may be other than f32.
        """
        if self.kind == "aggregation":
            name = FLOAT_NAMES[self.facts["dtype"]]
            return RowTypes(name, name, name)
        if self.kind != "embedding":
            return RowTypes()
        weight, output = self.weights["weight"][1], self.facts.get("output")
        if isinstance(weight, QuantizedTable):
            return RowTypes(weight.format.name, output=output or "f32")
        rows = element_name(weight.dtype)
        return RowTypes(rows, output=output or rows)

    def model(self) -> dict[str, Any]:
        """Return what the host has to know, as JSON values."""
        return {
            "name": self.name,
            "facts": dict(self.facts),
            "input_names": list(self.input_names),
            "sources": {role: list(source) for role, source in self.sources.items()},
            "weights": {
                role: {"name": name, "shape": list(weight.shape), "dtype": _dtype_name(weight)}
                for role, (name, weight) in self.weights.items()
            },
            "symbols": {symbol: list(read) for symbol, read in self.symbols().items()},
            "size_limits": [list(limit) for limit in self.size_limits],
            "types": list(self.types),
            "table_names": {
                symbol: self.weights[role][0]
                for symbol, (role, *_) in self.symbols().items()
                if role in self.weights
            },
        }

    def tables(self) -> dict[str, NDArray[Any]]:
        """Return the weights by symbol of the function."""
        found: dict[str, NDArray[Any]] = {}
        for symbol, (role, part, parts) in self.symbols().items():
            if role in self.weights:
                _, weight = self.weights[role]
                if isinstance(weight, QuantizedTable):
                    found[symbol] = weight.rows
                    continue
                columns = weight.shape[1] // parts
                found[symbol] = weight[:, part * columns : (part + 1) * columns]
        return found

    def symbols(self) -> dict[str, tuple[str, int, int]]:
        """Return the function's symbol of each matrix that is read, with its role, part and parts.

        A matrix whose rows are read in equal parts is as many matrices in the function. One matrix
        in several roles has one symbol.
        """
        if self.kind == "scores":
            leaves: Any = self.facts["leaves"]
            return {
                score_table(table, part, parts): (f"table{table}", part, parts)
                for table, _, part, parts in leaves
            }
        if self.kind == "fusedmm":
            same: Mapping[str, str] = self.facts["same"]
            return {
                symbol: (role, 0, 1) for role, symbol in FUSEDMM_SYMBOLS.items() if role not in same
            }
        if self.kind == "block_attention":
            return {"key": ("keys", 0, 1), "val": ("values", 0, 1)}
        return {"tab": ("weight" if self.kind == "embedding" else "dense", 0, 1)}


def _dtype_name(weight: NDArray[Any] | QuantizedTable) -> str:
    return weight.codes if isinstance(weight, QuantizedTable) else weight.dtype.name


def score_table(table: int, part: int, parts: int) -> str:
    """Return the symbol of a table of scores, or of one of the equal parts of its columns.

    Examples
    --------
    >>> score_table(0, 0, 1), score_table(0, 1, 2)
    ('tab0', 'tab0_1of2')
    """
    return f"tab{table}" if parts == 1 else f"tab{table}_{part}of{parts}"


def make_spec(
    operation: Operation,
    *,
    name: str,
    input_names: tuple[str, ...],
    sources: Mapping[str, Source],
    weights: Mapping[str, tuple[str, NDArray[Any]]],
    size_limits: tuple[tuple[str, int, int, int | None], ...] = (),
) -> OperationSpec:
    """Return the spec of an operation whose inputs are known.

    Parameters
    ----------
    operation : Operation
        Not an embedding bag.
    name, input_names, sources, weights, size_limits
        As in `OperationSpec`. Of roles with one node, one is enough.
    """
    facts = dict(operation.facts)
    if operation.kind == "fusedmm":
        inputs = operation.inputs
        facts["same"] = {
            role: other
            for role, others in (("keys", ("dense",)), ("queries", ("dense", "keys")))
            for other in others
            if inputs[role] is inputs[other]
        }
        # queries = keys = dense leaves both saying "dense".
        if facts["same"].get("queries") == "keys" and "keys" in facts["same"]:
            facts["same"]["queries"] = facts["same"]["keys"]
    same: Mapping[str, str] = facts.get("same", {})
    if "rows" in facts:
        facts["rows"] = same.get(facts["rows"], facts["rows"])
    return OperationSpec(
        kind=operation.kind,
        name=name,
        facts=facts,
        input_names=input_names,
        sources={role: source for role, source in sources.items() if role not in same},
        weights={
            role: (own, table_of(facts, rows))
            for role, (own, rows) in weights.items()
            if role not in same
        },
        size_limits=size_limits,
    )
