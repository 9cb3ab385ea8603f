"""What of a model `torch.compile` would give to a device, told without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch

from ember_hw.compiler.frontend.find_operations import find_operations
from ember_hw.compiler.frontend.torch_graph import describe
from ember_hw.host.torch_backend import boxed, inputs_at, refusal_of
from ember_hw.host.torch_training import exchange_gradients, with_reason

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True)
class Explanation:
    """What of a model the device would compute, and why not the rest.

    Attributes
    ----------
    operations : tuple of (str, str)
        Kind of each operation, and the node, with its line, that it was found at.
    refusals : tuple of str
        Reason of each node that looks like an embedding operation and is left to torch.
    graphs : int
        Graphs that torch handed over; 0 for a model with sparse tensors.
    gradient_graphs : int
        Backward passes, which torch runs; 0 unless asked for.
    gradients : tuple of (str, str)
        Of the bags among the operations: what a gradient is of ("weight" or
        "per_sample_weights"), and the node, with its line, that it stands for.
    """

    operations: tuple[tuple[str, str], ...]
    refusals: tuple[str, ...]
    graphs: int
    gradient_graphs: int = 0
    gradients: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        lines = [f"graphs: {self.graphs}"]
        lines += [f"on the device: {kind}, {where}" for kind, where in self.operations]
        if self.gradient_graphs:
            lines.append(f"backward passes in torch: {self.gradient_graphs}")
        lines += [f"gradient of {what} in torch: {where}" for what, where in self.gradients]
        lines += [f"left to torch: {reason}" for reason in self.refusals]
        return "\n".join(lines)


def explain(model: Any, *inputs: Any, training: bool = False) -> Explanation:
    """List what of a model would run on a device, without one.

    Parameters
    ----------
    model : torch.nn.Module or callable
        The model; it is run once by torch.
    *inputs : tensor
        A call of it.
    training : bool
        Look at the graphs of a training step, forward and backward.

    Examples
    --------
    >>> import torch
    >>> bag = torch.nn.EmbeddingBag(10, 4, mode="sum")
    >>> print(explain(bag, torch.tensor([[1, 2]])).operations[0][0])
    embedding_bag
    """
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import default_partition

    operations: list[tuple[str, str]] = []
    refusals: list[str] = []
    gradients: list[tuple[str, str]] = []
    graphs = gradient_graphs = 0

    def look(graph: torch.fx.GraphModule, _inputs: Sequence[Any]) -> Any:
        nonlocal graphs
        graphs += 1
        findings = find_operations(graph)
        operations.extend((found.kind, describe(found.node)) for found in findings.operations)
        refusals.extend(with_reason(refusal).reason for refusal in findings.refusals)
        return boxed(graph)

    def partition(joint: torch.fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Any:
        nonlocal gradient_graphs
        gradient_graphs += 1
        static = inputs_at(joint, options["static_lifetime_input_indices"])
        made = exchange_gradients(joint, lambda operation: refusal_of(operation, static))
        gradients.extend((gradient.what, gradient.where) for gradient in made)
        return default_partition(joint, inputs, **options)

    def leave(graph: torch.fx.GraphModule, _inputs: Sequence[Any]) -> Any:
        return boxed(graph)

    compiler: Any = aot_autograd(fw_compiler=look, bw_compiler=leave, partition_fn=partition)
    compiled: Any = cast(Any, torch).compile(model, backend=compiler)
    with torch.set_grad_enabled(training):
        compiled(*inputs)
    return Explanation(
        tuple(operations), tuple(refusals), graphs, gradient_graphs, tuple(gradients)
    )
