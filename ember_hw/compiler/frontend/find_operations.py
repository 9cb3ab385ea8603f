"""Finds everything in a torch graph that the accelerator computes, and says why the rest isn't."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from ember_hw.compiler.frontend.match_aggregation import AGGREGATION_OPS, match_aggregation
from ember_hw.compiler.frontend.match_block_attention import ATTENTION_OPS, match_block_attention
from ember_hw.compiler.frontend.match_embeddings import (
    BAG_OPS,
    EMBEDDING_OPS,
    match_embedding,
    match_embedding_bag,
)
from ember_hw.compiler.frontend.match_plain_attention import SOFTMAX_OPS, match_plain_attention
from ember_hw.compiler.frontend.match_quantized import QUANTIZED_OPS, match_quantized
from ember_hw.compiler.frontend.match_scores import SCORE_OPS, match_scores
from ember_hw.compiler.frontend.match_sparse import SPARSE_OPS, is_sparse_product, match_sparse
from ember_hw.compiler.frontend.operation import Operation, Refusal
from ember_hw.compiler.frontend.torch_graph import describe
from ember_hw.errors import UnsupportedError

__all__ = ["Findings", "find_operations", "mutation_of"]

Node = torch.fx.Node
_COPY: Any = torch.ops.aten.copy_.default


@dataclass(frozen=True, eq=False)
class Findings:
    """What `find_operations` found.

    Attributes
    ----------
    operations : tuple of Operation
        In the order of the graph. No two compute one node.
    refusals : tuple of Refusal
        Nodes that look like an operation, in the order of the graph.
    """

    operations: tuple[Operation, ...]
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True)
class _Matcher:
    """Which nodes to try, how, and whether a failure is worth a word."""

    is_candidate: Callable[[Node], bool]
    match: Callable[[Node], Operation]
    is_told: bool = True


def _calls(*targets: Any) -> Callable[[Node], bool]:
    return lambda node: node.target in targets


# What takes in others comes first. A sum that isn't a score is no embedding operation, and the
# embeddings in it are tried by themselves.
_MATCHERS = (
    _Matcher(_calls(*ATTENTION_OPS), match_block_attention),
    _Matcher(_calls(*SOFTMAX_OPS), match_plain_attention, is_told=False),
    _Matcher(_calls(*AGGREGATION_OPS), match_aggregation),
    _Matcher(_calls(*SPARSE_OPS), match_sparse),
    _Matcher(is_sparse_product, match_sparse),
    _Matcher(_calls(*SCORE_OPS), match_scores, is_told=False),
    _Matcher(_calls(*BAG_OPS), match_embedding_bag),
    _Matcher(_calls(*EMBEDDING_OPS), match_embedding),
    _Matcher(_calls(*QUANTIZED_OPS), match_quantized),
)


def find_operations(graph: torch.fx.Graph | torch.fx.GraphModule) -> Findings:
    """Find the embedding operations of a graph of ATen operators.

    The graph comes from `torch.export` or from `aot_autograd`; each node has its value's shape and
    dtype in ``meta["val"]``.

    Parameters
    ----------
    graph : torch.fx.Graph or torch.fx.GraphModule
        A functional graph: nothing in it writes in place, but for copies to inputs at its end.

    Returns
    -------
    Findings
        Operations, and refused nodes with reasons.
    """
    if isinstance(graph, torch.fx.GraphModule):
        graph = graph.graph
    nodes = [node for node in graph.nodes if node.op == "call_function"]
    order = {node: place for place, node in enumerate(graph.nodes)}
    writer = mutation_of(graph.nodes)
    operations: list[Operation] = []
    refusals: list[Refusal] = []
    taken: set[Node] = set()
    for matcher in _MATCHERS:
        for node in filter(matcher.is_candidate, nodes):
            if node in taken:
                continue
            try:
                if writer is not None:
                    raise UnsupportedError(
                        f"the graph must be functional to compute {describe(node)}, and "
                        f"{describe(writer)} writes in place; write it without the trailing _",
                        node=node.name,
                    )
                operation = matcher.match(node)
            except UnsupportedError as error:
                if matcher.is_told:
                    refusals.append(Refusal(node, str(error)))
                continue
            inside = operation.nodes()
            if inside & taken:
                continue
            taken |= inside
            operations.append(operation)
    return Findings(
        tuple(sorted(operations, key=lambda operation: order[operation.output])),
        tuple(sorted(refusals, key=lambda refusal: order[refusal.node])),
    )


def mutation_of(nodes: Iterable[Node]) -> Node | None:
    """Return the first node that writes in place, None for a functional graph.

    A copy to an input that nothing reads afterwards is how a functional graph ends, and none.
    """
    written: dict[Node, Node] = {}
    for node in nodes:
        if node.op == "output":
            continue
        for child in node.all_input_nodes:
            if child in written:
                return written[child]
        schema: Any = getattr(node.target, "_schema", None)
        if schema is None or not schema.is_mutable:
            continue
        target = node.args[0]
        if node.target is not _COPY or not isinstance(target, Node) or target.op != "placeholder":
            return node
        written[target] = node
    return None
