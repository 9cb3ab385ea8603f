"""Takes operations out of a graph: what is left calls the accelerator for them."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray

from ember_hw.compiler.frontend.bag_specs import bag_spec, tables_spec
from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.operation import Operation
from ember_hw.compiler.frontend.operation_spec import OperationSpec, Source, make_spec
from ember_hw.compiler.frontend.tables import BagGroup, TablesSpec

__all__ = ["replace_group", "replace_operation", "roles_of_caller", "spec_of"]


def roles_of_caller(
    operation: Operation | BagGroup, weights: Mapping[str, object]
) -> tuple[str, ...]:
    """Return the roles whose values a call brings, in order; roles of one node are one.

    Parameters
    ----------
    operation : Operation or BagGroup
        The operation.
    weights : mapping
        Its roles whose values stay from call to call.
    """
    if isinstance(operation, BagGroup):
        return tuple(role for role in operation.inputs if role not in weights)
    seen: dict[torch.fx.Node, str] = {}
    for role, node in operation.inputs.items():
        if role not in weights and not any(operation.inputs[other] is node for other in weights):
            seen.setdefault(node, role)
    if operation.kind == "fusedmm":
        return tuple(seen.values())
    return tuple(role for role in operation.inputs if role not in weights)


def spec_of(
    operation: Operation | BagGroup, weights: Mapping[str, tuple[str, NDArray[Any]]]
) -> EmbeddingBagSpec | OperationSpec | TablesSpec:
    """Return the spec of an operation in a graph. Its inputs are called by their roles.

    Parameters
    ----------
    operation : Operation or BagGroup
        What `find_operations` or `group_bags` found.
    weights : mapping of str to (str, (R, D))
        Roles whose values stay from call to call: name and value.
    """
    names = roles_of_caller(operation, weights)
    sources = {role: Source(role) for role in names}
    if isinstance(operation, BagGroup):
        return tables_spec(operation, input_names=names, sources=sources, weights=weights)
    if operation.kind == "embedding_bag":
        return bag_spec(operation, input_names=names, sources=sources, weight=weights["weight"])
    return make_spec(
        operation,
        name=" ".join(dict.fromkeys(name for name, _ in weights.values())) or operation.kind,
        input_names=names,
        sources=sources,
        weights=weights,
    )


def replace_operation(
    graph_module: torch.fx.GraphModule,
    operation: Operation,
    name: str,
    module: torch.nn.Module,
    replaced: dict[torch.fx.Node, torch.fx.Node],
) -> None:
    """Let a graph call a module where it computed an operation.

    The caller erases what is dead then, and recompiles (`Graph.eliminate_dead_code`).

    Parameters
    ----------
    graph_module : torch.fx.GraphModule
        Holds the operation; changed in place.
    operation : Operation
        What `find_operations` found in it.
    name : str
        What the graph calls the module.
    module : torch.nn.Module
        Takes the operation's inputs, in the order of `Operation.inputs`, and returns its output.
    replaced : dict of Node to Node
        What stands for the outputs of operations that were replaced before; this one is added.
    """
    graph_module.add_submodule(name, module)
    output = operation.output
    inputs = tuple(replaced.get(node, node) for node in operation.inputs.values())
    with graph_module.graph.inserting_after(output):
        call = graph_module.graph.call_module(name, inputs)
    call.meta = dict(output.meta)
    output.replace_all_uses_with(call)
    replaced[output] = call


def replace_group(
    graph_module: torch.fx.GraphModule,
    group: BagGroup,
    name: str,
    module: torch.nn.Module,
    replaced: dict[torch.fx.Node, torch.fx.Node],
) -> None:
    """Let a graph call a module once where it computed several bags.

    The call stands in front of the first bag; what it needs is computed before it.

    Parameters
    ----------
    graph_module, name, module, replaced
        As for `replace_operation`; the module returns the bags' outputs as a list.
    group : BagGroup
        What `group_bags` found in the graph.
    """
    graph_module.add_submodule(name, module)
    graph = graph_module.graph
    order = {node: place for place, node in enumerate(graph.nodes)}
    outputs = group.outputs
    first = min(outputs, key=lambda node: order[node])
    inputs = tuple(replaced.get(node, node) for node in group.inputs.values())
    late = {node for node in inputs if order[node] > order[first]}
    pending = list(late)
    while pending:
        for child in pending.pop().all_input_nodes:
            if order[child] > order[first] and child not in late:
                late.add(child)
                pending.append(child)
    for node in sorted(late, key=lambda node: order[node]):
        first.prepend(node)
    with graph.inserting_before(first):
        call = graph.call_module(name, inputs)
        for number, output in enumerate(outputs):
            rows = graph.call_function(operator.getitem, (call, number))
            rows.meta = dict(output.meta)
            output.replace_all_uses_with(rows)
            replaced[output] = rows
