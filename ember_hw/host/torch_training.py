# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# Not all types of torch are known.
"""Graphs that are trained: what a bag's gradient needs besides its rows is made where it is needed.

torch's operator returns with the pooled rows what its backward pass takes: the bag of each lookup,
sizes, places of maxima. A device computes the rows alone. So the gradients of a joint graph are
exchanged, before it is cut into a forward and a backward graph, for ones that take indices and
offsets; torch's operators compute them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from ember_hw.compiler.frontend.match_embeddings import match_embedding_bag
from ember_hw.compiler.frontend.operation import Operation, Refusal
from ember_hw.compiler.frontend.torch_graph import bind_arguments, describe
from ember_hw.errors import UnsupportedError
from ember_hw.host.nn.gradients import BagBackward, BagGradient
from ember_hw.host.nn.lookups import BagCall
from ember_hw.host.request import normalise_request

__all__ = ["GraphGradient", "exchange_gradients", "with_reason"]

#: Key of a bag's metadata: why a device doesn't compute it, so that its gradient stays torch's.
_REFUSED = "ember_hw_refused"
_ATEN: Any = torch.ops.aten
_BAG = _ATEN._embedding_bag.default
_OF_TABLE = _ATEN._embedding_bag_backward.default
_OF_WEIGHTS = _ATEN._embedding_bag_per_sample_weights_backward.default

Tensor = torch.Tensor
Node = torch.fx.Node


class GraphGradient:
    """A gradient of a bag in a backward graph; it calls torch's operators.

    Parameters
    ----------
    operation : Operation
        The bag.
    node : Node
        What torch had in the graph: the gradient of the table, or of the weights of lookups.

    Attributes
    ----------
    what : str
        "weight" or "per_sample_weights": what it is the gradient of.
    where : str
        The node, and its line.
    calls : int
        How often it was computed.
    """

    def __init__(self, operation: Operation, node: Node) -> None:
        self.what = "weight" if node.target is _OF_TABLE else "per_sample_weights"
        self.where = describe(node)
        self.calls = 0
        self._facts = operation.facts
        self._name = str(operation.inputs["weight"].name)
        given = bind_arguments(node)
        self._sparse = bool(given.get("sparse"))
        self._scale_grad_by_freq = bool(given.get("scale_grad_by_freq"))

    def __str__(self) -> str:
        return f"gradient of {self.what} in torch: {self.where}, {self.calls} calls"

    def function(self) -> Callable[..., Tensor]:
        """Return what a graph calls in place of the node."""

        def bag_gradient(
            grad: Tensor,
            indices: Tensor,
            offsets: Tensor,
            scales: Tensor | None,
            weight: Tensor | None,
            rows: int,
        ) -> Tensor:
            self.calls += 1
            backward = self._backward(grad, indices, offsets, scales, weight, rows)
            return backward.of_weight(rows) if self.what == "weight" else backward.of_scales()

        return bag_gradient

    def _backward(
        self,
        grad: Tensor,
        indices: Tensor,
        offsets: Tensor,
        scales: Tensor | None,
        weight: Tensor | None,
        rows: int,
    ) -> BagBackward:
        padding_idx, mode = self._facts["padding_idx"], self._facts["mode"]
        lookup = normalise_request(
            indices,
            offsets,
            num_embeddings=rows,
            include_last_offset=self._facts["include_last_offset"],
            padding_idx=padding_idx,
            mode=mode,
            table_name=self._name,
        )
        kept = None
        if padding_idx is not None and scales is not None:
            kept = torch.nonzero(indices != padding_idx % rows).reshape(-1)
        shape = (rows, grad.shape[1])
        table = torch.empty(shape, dtype=grad.dtype, device="meta")  # nothing of it is read
        gradient = BagGradient(
            BagCall(self._name, table, lookup, mode),
            indices,
            scales,
            kept,
            self._scale_grad_by_freq,
            self._sparse,
        )
        return BagBackward(gradient, grad.contiguous(), weight, scales)


def exchange_gradients(
    graph_module: torch.fx.GraphModule, refusal: Callable[[Operation], str | None]
) -> list[GraphGradient]:
    """Let a joint graph compute gradients of bags without what comes with their pooled rows.

    Parameters
    ----------
    graph_module : torch.fx.GraphModule
        Forward and backward pass in one graph; changed in place.
    refusal : callable
        Says why a device doesn't compute a bag, None if it does. The gradients of others stay
        torch's, and the reason is noted at the bag for `with_reason`.

    Returns
    -------
    list of GraphGradient
        What stands in the graph now.
    """
    gradients: list[GraphGradient] = []
    for bag in graph_module.graph.find_nodes(op="call_function", target=_BAG):
        nodes = _gradients_of(bag)
        if not nodes:
            continue
        operation, reason = _without(nodes, bag)
        if operation is not None:
            reason = refusal(operation)
        if operation is None or reason is not None:
            bag.meta[_REFUSED] = reason
            continue
        for node in nodes:
            gradients.append(GraphGradient(operation, node))
            _exchange(graph_module.graph, node, bag, gradients[-1])
    return gradients


def with_reason(refusal: Refusal) -> Refusal:
    """Return the refusal of a node; of a bag that kept its gradient, with the reason for that."""
    for node in (refusal.node, *refusal.node.all_input_nodes):
        if _REFUSED in node.meta:
            return Refusal(node, node.meta[_REFUSED])
    return refusal


def _gradients_of(bag: Node) -> list[Node]:
    """Return the nodes that take a bag's other results, none unless all of them are gradients."""
    results = [user for user in bag.users if user.target is operator.getitem and user.args[1]]
    nodes = list(dict.fromkeys(user for result in results for user in result.users))
    return nodes if all(node.target in (_OF_TABLE, _OF_WEIGHTS) for node in nodes) else []


def _without(nodes: list[Node], bag: Node) -> tuple[Operation | None, str | None]:
    """Match a bag as if it had no gradients; return it, or why it isn't the device's."""
    taken = [node.args for node in nodes]
    for node in nodes:
        node.args = ()
    try:
        return match_embedding_bag(bag), None
    except UnsupportedError as error:
        return None, str(error)
    finally:
        for node, arguments in zip(nodes, taken, strict=True):
            node.args = arguments


def _exchange(graph: torch.fx.Graph, node: Node, bag: Node, gradient: GraphGradient) -> None:
    """Put a gradient in the place of torch's node."""
    given, of_bag = bind_arguments(node), bind_arguments(bag)
    # A table that isn't needed isn't saved: an optimizer may write it before the backward pass.
    needs_table = gradient.what != "weight" or of_bag["mode"] == 2
    with graph.inserting_before(node):
        rows: Any = given.get("num_weights")
        if rows is None:
            rows = of_bag["weight"].meta["val"].shape[0]
            if not isinstance(rows, int):
                size = rows
                rows = graph.call_function(_ATEN.sym_size.int, (of_bag["weight"], 0))
                rows.meta["val"] = size
        made = graph.call_function(
            gradient.function(),
            (
                given["grad"],
                given["indices"],
                given["offsets"],
                of_bag["per_sample_weights"],
                of_bag["weight"] if needs_table else None,
                rows,
            ),
        )
    made.meta = dict(node.meta)
    node.replace_all_uses_with(made)
    graph.erase_node(node)
