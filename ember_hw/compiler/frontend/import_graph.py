"""Reads an exported graph that is one operation, and where its inputs come from."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from numpy.typing import NDArray
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from ember_hw.compiler.element_dtypes import tensor_array
from ember_hw.compiler.frontend.bag_specs import bag_spec, tables_spec
from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.find_operations import find_operations, mutation_of
from ember_hw.compiler.frontend.match_embeddings import RENORM_OPS, refuse_renorm
from ember_hw.compiler.frontend.operation import Operation, refuse
from ember_hw.compiler.frontend.operation_spec import OperationSpec, Source, make_spec
from ember_hw.compiler.frontend.patterns import is_call, skip_copies
from ember_hw.compiler.frontend.tables import BagGroup, TablesSpec, difference, group_bags
from ember_hw.compiler.frontend.torch_graph import (
    describe,
    is_fixed,
    size_expression,
    value_of,
)
from ember_hw.errors import CompileError, UnsupportedError

__all__ = ["ImportedGraph", "import_graph"]

# torch.export starts each free size at 2, and that of offsets with include_last_offset at 3, which
# says nothing about the model.
_LARGEST_USUAL_LOWER_BOUND = 3
_ASSERT: Any = torch.ops.aten._assert_scalar.default
_SELECT: Any = torch.ops.aten.select.int
_SIZE_OPS: tuple[Any, ...] = (torch.ops.aten.sym_size.int, torch.ops.aten.sym_numel.default)
#: Kinds whose tables must be the model's own: lookups in these are of rows that stay.
_OWN_TABLES = ("embedding_bag", "embedding", "scores", "tables")
#: What takes a model with more in it.
_WHOLE = "or the whole model with torch.compile(model, backend='ember_hw')"

Node = torch.fx.Node


@dataclass(frozen=True, eq=False)
class ImportedGraph:
    """A graph that is one operation.

    Attributes
    ----------
    operation : Operation or BagGroup
        The operation.
    spec : EmbeddingBagSpec, OperationSpec or TablesSpec
        What the host has to know of it.
    shapes : mapping of str to tuple
        The recorded shape of each input of the model by name.
    """

    operation: Operation | BagGroup
    spec: EmbeddingBagSpec | OperationSpec | TablesSpec
    shapes: Mapping[str, tuple[Any, ...]]


def import_graph(program: ExportedProgram) -> ImportedGraph:
    """Read an exported program, before or after its decomposition.

    Raises
    ------
    UnsupportedError
        The graph holds anything but one supported operation; names the torch node.
    CompileError
        The graph holds no call at all, or an input that nothing reads.
    """
    for node in program.graph.nodes:
        if node.target in RENORM_OPS:
            refuse_renorm(node)
    if mutation_of(program.graph.nodes) is not None:
        with warnings.catch_warnings():
            # torch warns of its own deprecated internals
            warnings.simplefilter("ignore", FutureWarning)
            program = cast(Any, program).run_decompositions({})
    operation = _only_operation(program)
    _check_output(program, operation)
    return _Reader(program, operation).read()


def _only_operation(program: ExportedProgram) -> Operation | BagGroup:
    calls = [node for node in program.graph.nodes if node.op not in ("placeholder", "output")]
    findings = find_operations(program.graph)
    if findings.refusals:
        refusal = findings.refusals[0]
        raise UnsupportedError(refusal.reason, node=refusal.node.name)
    if not calls:
        raise CompileError("model must hold an embedding operation, not no call at all")
    if not findings.operations:
        _refuse_op(calls[0])
    first, *others = group_bags(findings.operations, _results(program))
    if others:
        inputs = program.graph_signature.input_specs
        names = {spec.arg.name: spec.target for spec in inputs if spec.target}
        reason = difference(first, others[0], names)
        if reason is None:
            reason = (
                f"{describe(others[0].node)} must be the only embedding operation of the model, "
                f"not a second one after node {first.node.name!r}"
            )
        refuse(others[0].node, f"{reason}; compile each by itself, {_WHOLE}")
    inside = first.nodes()
    sources = set(first.inputs.values())
    for node in calls:
        if node in inside or node in sources or node.target in _SIZE_OPS:
            continue
        if not node.users and node.target is operator.getitem:
            continue
        if first.kind == "block_attention" and _is_about_sizes(node):
            continue
        _refuse_op(node)
    return first


def _is_about_sizes(node: Node) -> bool:
    """Whether a node only computes with sizes, to check them: blocks must be whole.

    The binding checks the same.
    """
    value = value_of(node)
    is_number = isinstance(value, int | torch.SymInt | torch.SymBool)
    return is_number or node.target is _ASSERT


def _refuse_op(node: Node) -> None:
    refuse(
        node,
        f"{describe(node)} must be part of an embedding operation, not another operation; "
        f"compile the embedding operation by itself, {_WHOLE}",
    )


def _results(program: ExportedProgram) -> tuple[Any, ...]:
    results: Any = program.graph.output_node().args[0]
    return tuple(results)


def _check_output(program: ExportedProgram, operation: Operation | BagGroup) -> None:
    results = _results(program)
    kinds = {spec.kind for spec in program.graph_signature.output_specs}
    if isinstance(operation, BagGroup):
        if kinds != {OutputKind.USER_OUTPUT} or results != operation.outputs:
            refuse(
                operation.node,
                f"model must return the rows of its {len(operation.members)} bags, each once, and "
                f"nothing else, not ({', '.join(str(result) for result in results)})",
            )
        return
    if kinds != {OutputKind.USER_OUTPUT} or results != (operation.output,):
        refuse(
            operation.node,
            f"model must return the rows of node {operation.node.name!r} and nothing else, not "
            f"({', '.join(str(result) for result in results)})",
        )


class _Reader:
    """Resolves the inputs of the one operation of a program."""

    def __init__(self, program: ExportedProgram, operation: Operation | BagGroup) -> None:
        self.program = program
        self.operation = operation
        self.kinds: dict[str, Any] = {
            spec.arg.name: spec for spec in program.graph_signature.input_specs if spec.arg.name
        }
        self.used: set[Node] = set()

    def read(self) -> ImportedGraph:
        operation = self.operation
        sources: dict[str, Source] = {}
        weights: dict[str, tuple[str, NDArray[Any]]] = {}
        for role, node in operation.inputs.items():
            if self._is_input(node):
                if role in operation.tables and operation.kind in _OWN_TABLES:
                    refuse(
                        operation.node,
                        f"{_kind_of_role(role)} must be a parameter or buffer of the model, not "
                        f"the input {node.name!r}, in {describe(operation.node)}",
                    )
                sources[role] = self._source(node)
            elif node.op == "placeholder" and role in operation.tables:
                weights[role] = self._weight(node)
            else:
                self._refuse_input(role, node)
        names = self._input_names()
        limits = self._size_limits()
        shapes = {
            node.name: tuple(getattr(value_of(node), "shape", ()))
            for node in self.program.graph.find_nodes(op="placeholder")
            if node.name in names
        }
        spec: EmbeddingBagSpec | OperationSpec | TablesSpec
        if isinstance(operation, BagGroup):
            spec = tables_spec(
                operation,
                input_names=names,
                sources=sources,
                weights=weights,
                size_limits=limits,
            )
        elif operation.kind == "embedding_bag":
            spec = bag_spec(
                operation,
                input_names=names,
                sources=sources,
                weight=weights["weight"],
                size_limits=limits,
            )
        else:
            spec = make_spec(
                operation,
                name=" ".join(dict.fromkeys(name for name, _ in weights.values()))
                or operation.kind,
                input_names=names,
                sources=sources,
                weights=weights,
                size_limits=limits,
            )
        return ImportedGraph(operation, spec, shapes)

    def _is_input(self, node: Node) -> bool:
        """Whether a node is an input of the model, or one row of it."""
        if is_call(node, _SELECT):
            source, dimension, row = node.args
            source = skip_copies(source)
            is_row = (
                isinstance(source, Node)
                and self._is_input(source)
                and source.op == "placeholder"
                and dimension == 0
                and isinstance(row, int)
                and row >= 0
                and len(value_of(source).shape) == 2
            )
            return bool(is_row)
        return node.op == "placeholder" and self.kinds[node.name].kind is InputKind.USER_INPUT

    def _source(self, node: Node) -> Source:
        if is_call(node, _SELECT):
            whole: Any = skip_copies(node.args[0])
            row: Any = node.args[2]
            self.used.add(whole)
            return Source(whole.name, row)
        self.used.add(node)
        return Source(node.name)

    def _refuse_input(self, role: str, node: Node) -> None:
        operation = self.operation
        if node.op == "placeholder":
            refuse(
                operation.node,
                f"{role} must be an input of the model, not the constant "
                f"{self.kinds[node.name].target!r}, in {describe(operation.node)}",
            )
        if role in operation.tables:
            _refuse_op(node)
        refuse(
            node,
            f"{describe(node)} must be an input of the model, not computed in it; pass "
            f"{role} as it is",
        )

    def _input_names(self) -> tuple[str, ...]:
        names: list[str] = []
        for node in self.program.graph.find_nodes(op="placeholder"):
            if self.kinds[node.name].kind is not InputKind.USER_INPUT or value_of(node) is None:
                continue
            if not node.users:
                raise CompileError(
                    f"input {node.name!r} must be used by the model, not ignored; drop it, and "
                    f"don't export with one tensor as the example of two inputs",
                    node=node.name,
                )
            names.append(node.name)
        return tuple(names)

    def _weight(self, node: Node) -> tuple[str, NDArray[Any]]:
        where = f"in {describe(self.operation.node)}"
        target = self.kinds[node.name].target
        stored: Any = self.program.state_dict.get(target)
        if stored is None:
            stored = self.program.constants[target]
        if stored.is_meta:
            refuse(
                self.operation.node,
                f"table {target!r} must be dense, not a meta tensor, {where}",
            )
        if stored.shape[1] == 0:
            refuse(self.operation.node, f"embedding_dim must be at least 1, not 0, {where}")
        return target, tensor_array(stored.contiguous())

    def _size_limits(self) -> tuple[tuple[str, int, int, int | None], ...]:
        """List the sizes that the export fixed or bounded."""
        limits: list[tuple[str, int, int, int | None]] = []
        constraints = cast(Any, self.program).range_constraints
        for node in self.program.graph.find_nodes(op="placeholder"):
            if node not in self.used:
                continue
            for dimension, size in enumerate(value_of(node).shape):
                expression = size_expression(size)
                if is_fixed(expression):
                    limits.append((node.name, dimension, int(expression), int(expression)))
                    continue
                bounds: Any = constraints.get(expression)
                if bounds is None:
                    continue
                smallest = int(bounds.lower) if bounds.lower > _LARGEST_USUAL_LOWER_BOUND else 0
                largest = int(bounds.upper) if bounds.upper.is_Integer else None
                if smallest or largest is not None:
                    limits.append((node.name, dimension, smallest, largest))
        return tuple(limits)


def _kind_of_role(role: str) -> str:
    return "weight" if role == "weight" else "table"
