"""`torch.compile(model, backend="ember_hw")`: embedding operations on a device, the rest in torch.

Examples
--------
::

    import ember_hw.host.torch_backend as torch_backend

    record = torch_backend.Record()
    fast = torch.compile(
        model, backend="ember_hw", options={"device": device, "record": record}
    )
    logits = fast(*inputs)
    print(record)
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ember_hw.compiler.frontend.find_operations import find_operations
from ember_hw.compiler.frontend.operation import Operation, Refusal
from ember_hw.compiler.frontend.partition import replace_group, replace_operation
from ember_hw.compiler.frontend.tables import BagGroup, check_group, group_bags
from ember_hw.compiler.frontend.torch_graph import describe
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import EmberError
from ember_hw.host.accelerated import MODEL_NAME, AcceleratedOperation
from ember_hw.host.device import Device, open_device
from ember_hw.host.torch_training import GraphGradient, exchange_gradients, with_reason

__all__ = [
    "AcceleratedOperation",
    "Record",
    "backend",
    "boxed",
    "inputs_at",
    "refusal_of",
]

_OPTIONS = ("device", "config", "opt_level", "record")
#: Parts of the name that Dynamo gives a graph's input, and those that hold others.
_PARTS = re.compile(r"\['([^']+)'\]|\.(\w+)")
_HOLDERS = ("_modules", "_parameters", "_buffers")
#: Kinds whose tables stay from call to call, wherever they come from.
_OWN_TABLES = ("embedding_bag", "embedding", "scores")


@dataclass(eq=False)
class Record:
    """What ran where, and why not on the device; fills while graphs are compiled and run.

    Attributes
    ----------
    operations : list of AcceleratedOperation
        What the device computes.
    refusals : list of Refusal
        What looks like an embedding operation and was left to torch, with the reason.
    separate : list of Refusal
        Bags that one program could compute together and that run one by one: the first one, and
        why.
    graphs : int
        Graphs that torch handed over. 0 after a call says that torch ran the model by itself, as
        it does without a word for models with sparse tensors.
    gradient_graphs : int
        Backward passes of these graphs, which torch runs.
    gradients : list of GraphGradient
        Gradients of bags that a device computes: what of a backward pass isn't torch's own graph,
        though its operators compute it.
    seconds : float
        What compiling took, without torch's own work: finding operations, programs, microcode.
    """

    operations: list[AcceleratedOperation] = field(default_factory=list[AcceleratedOperation])
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    separate: list[Refusal] = field(default_factory=list[Refusal])
    graphs: int = 0
    gradient_graphs: int = 0
    gradients: list[GraphGradient] = field(default_factory=list[GraphGradient])
    seconds: float = 0.0

    @property
    def calls(self) -> int:
        """How often the device computed an operation."""
        return sum(operation.calls for operation in self.operations)

    def __str__(self) -> str:
        lines = [f"graphs: {self.graphs}"]
        if not self.graphs:
            lines.append(
                "torch handed over no graph: it has not run yet, or has sparse tensors "
                "(use ember_hw.spmm)"
            )
        lines += [
            f"on the device: {operation.kind}, {operation.where}, {operation.calls} calls"
            for operation in self.operations
        ]
        if self.gradient_graphs:
            lines.append(f"backward passes in torch: {self.gradient_graphs}")
        lines += [str(gradient) for gradient in self.gradients]
        lines += [f"one by one: {refusal.reason}" for refusal in self.separate]
        lines += [f"left to torch: {refusal.reason}" for refusal in self.refusals]
        return "\n".join(lines)


def backend(
    graph_module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Compile a graph of Dynamo: torch calls this for ``backend="ember_hw"``.

    Of a graph that is trained the forward pass is compiled, and torch runs the backward pass.

    Parameters
    ----------
    graph_module : torch.fx.GraphModule
        The graph.
    example_inputs : sequence
        Its inputs.
    options : mapping, optional
        `device`: a `Device`, or the name of a backend of `open_device` ("interpreter" by default);
        `config`: the access unit of a device by name; `opt_level`: 0 to 3, 3 by default; `record`:
        a `Record` that is filled.

    Raises
    ------
    ValueError
        An option has another name.
    TypeError
        A `config` is given along with a device that has one.
    """
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import default_partition

    given = dict(options or {})
    for name in given:
        if name not in _OPTIONS:
            raise ValueError(f"option must be one of {', '.join(_OPTIONS)}, not {name!r}")
    record = given.get("record") or Record()
    device = _device(given)

    names = [_model_name(node) for node in graph_module.graph.find_nodes(op="placeholder")]
    opt_level = int(given.get("opt_level", 3))

    def compile_forward(graph: torch.fx.GraphModule, _inputs: Sequence[Any]) -> Any:
        began = time.perf_counter()
        inputs = graph.graph.find_nodes(op="placeholder")
        if len(inputs) == len(names):
            for node, name in zip(inputs, names, strict=True):
                node.meta[MODEL_NAME] = name
        compiled = _compile(graph, device, opt_level, record)
        record.seconds += time.perf_counter() - began
        return boxed(compiled)

    def partition(joint: torch.fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Any:
        began = time.perf_counter()
        static = inputs_at(joint, options["static_lifetime_input_indices"])

        def refusal(operation: Operation) -> str | None:
            return refusal_of(operation, static) or _misfit(operation, static, device, opt_level)

        record.gradient_graphs += 1
        record.gradients += exchange_gradients(joint, refusal)
        record.seconds += time.perf_counter() - began
        return default_partition(joint, inputs, **options)

    def leave(graph: torch.fx.GraphModule, _inputs: Sequence[Any]) -> Any:
        return boxed(graph)

    compiler: Any = aot_autograd(
        fw_compiler=compile_forward, bw_compiler=leave, partition_fn=partition
    )
    return compiler(graph_module, example_inputs)


def _model_name(node: torch.fx.Node) -> str:
    """Return what a model calls an input of its graph: ``L['self']._modules['bag']._parameters``..

    Examples
    --------
    >>> node = torch.fx.Graph().placeholder("l_self_bags_0_weight")
    >>> _model_name(node)
    'l_self_bags_0_weight'
    """
    source: Any = getattr(node, "_dynamo_source", None)
    if source is None:
        return node.name
    parts = [first or second for first, second in _PARTS.findall(str(source.name))]
    names = [part for part in parts if part not in _HOLDERS]
    return ".".join(names[1:] or names) or node.name


def boxed(graph: torch.fx.GraphModule) -> Any:
    """Return a graph in the calling convention of aot_autograd: one list, which is emptied."""

    def run(arguments: list[Any]) -> Any:
        given = tuple(arguments)
        arguments.clear()
        return graph.forward(*given)

    boxed: Any = run
    boxed._boxed_call = True
    return boxed


_opened: dict[tuple[str, AcceleratorConfig | None], Device] = {}


def _device(options: Mapping[str, Any]) -> Device:
    """Return the device of the options; one by name is opened once."""
    device, config = options.get("device", "interpreter"), options.get("config")
    if isinstance(device, Device):
        if config is not None and config != device.config:
            raise TypeError(
                f"config must be left out with a device, or be its own ({device.config.name!r}), "
                f"not {config.name!r}"
            )
        return device
    if (device, config) not in _opened:
        _opened[device, config] = open_device(device, config=config)
    return _opened[device, config]


def _compile(
    graph_module: torch.fx.GraphModule, device: Device, opt_level: int, record: Record
) -> torch.fx.GraphModule:
    record.graphs += 1
    findings = find_operations(graph_module)
    record.refusals += [with_reason(refusal) for refusal in findings.refusals]
    static = _static_inputs(graph_module)
    accepted: list[Operation] = []
    for operation in findings.operations:
        reason = refusal_of(operation, static)
        if reason is None:
            accepted.append(operation)
        else:
            record.refusals.append(Refusal(operation.node, reason))
    replaced: dict[torch.fx.Node, torch.fx.Node] = {}
    for found in group_bags(accepted):
        if isinstance(found, BagGroup):
            name = f"ember_{len(record.operations)}"
            try:
                check_group(found, opt_level, device.config)
                module = AcceleratedOperation(found, found.tables, device, opt_level)
            except EmberError as error:
                record.separate.append(Refusal(found.node, _separately(found, error)))
            else:
                replace_group(graph_module, found, name, module, replaced)
                record.operations.append(module)
                continue
        for single in found.members if isinstance(found, BagGroup) else (found,):
            name = f"ember_{len(record.operations)}"
            weights = _weights_of(single, static)
            try:
                module = AcceleratedOperation(single, weights, device, opt_level)
            except EmberError as error:
                record.refusals.append(Refusal(single.node, _does_not_fit(single, error)))
            else:
                replace_operation(graph_module, single, name, module, replaced)
                record.operations.append(module)
    graph_module.graph.eliminate_dead_code()
    graph_module.recompile()
    return graph_module


def _weights_of(operation: Operation, static: set[torch.fx.Node]) -> list[str]:
    """Return the roles of an operation whose values stay from call to call."""
    return [
        role
        for role in operation.tables
        if role in operation.inputs
        and (operation.kind in _OWN_TABLES or operation.inputs[role] in static)
    ]


def _separately(group: BagGroup, error: EmberError) -> str:
    return (
        f"{group.where} must fit one program to run at once: {error}; "
        f'AcceleratorConfig.preset("tables") at opt_level 2 or 3 is made for them'
    )


def _static_inputs(graph_module: torch.fx.GraphModule) -> set[torch.fx.Node]:
    """Return the inputs of a graph that are parameters and buffers."""
    from torch._guards import TracingContext

    context: Any = TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    return inputs_at(graph_module, getattr(metadata, "static_input_indices", ()))


def inputs_at(
    graph_module: torch.fx.GraphModule, indices: Iterable[int] | None
) -> set[torch.fx.Node]:
    """Return the inputs of a graph at some places."""
    inputs = graph_module.graph.find_nodes(op="placeholder")
    return {inputs[index] for index in indices or () if index < len(inputs)}


def refusal_of(operation: Operation, static: set[torch.fx.Node]) -> str | None:
    """Say why an operation can't run in a compiled graph, None if it can."""
    output: torch.Tensor = operation.output.meta["val"]
    if not output.is_contiguous():
        return (
            f"the result must be contiguous, not of strides {tuple(output.stride())}, in "
            f"{describe(operation.node)}"
        )
    for role in _weights_of(operation, static):
        node = operation.inputs[role]
        if node not in static:
            return (
                f"{role} {node.name!r} must be a parameter or buffer of the model to be loaded, "
                f"not computed or passed in, in {describe(operation.node)}"
            )
    return None


def _misfit(
    operation: Operation, static: set[torch.fx.Node], device: Device, opt_level: int
) -> str | None:
    """Say why an operation doesn't fit a device, None if it does."""
    try:
        AcceleratedOperation(operation, _weights_of(operation, static), device, opt_level)
    except EmberError as error:
        return _does_not_fit(operation, error)
    return None


def _does_not_fit(operation: Operation, error: EmberError) -> str:
    return f"{describe(operation.node)} must fit the device: {error}"
