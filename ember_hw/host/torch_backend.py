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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from ember_hw.compiler.build import build
from ember_hw.compiler.frontend.emit_operation import emit_scf
from ember_hw.compiler.frontend.find_operations import find_operations
from ember_hw.compiler.frontend.operation import Operation, Refusal
from ember_hw.compiler.frontend.partition import replace_operation, roles_of_caller, spec_of
from ember_hw.compiler.frontend.torch_graph import describe
from ember_hw.compiler.program import Program
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import EmberError
from ember_hw.host.device import Device, open_device

__all__ = ["AcceleratedOperation", "Record", "backend", "explain"]

_OPTIONS = ("device", "config", "opt_level", "record")
#: Kinds whose tables stay from call to call, wherever they come from.
_OWN_TABLES = ("embedding_bag", "embedding", "scores")


class AcceleratedOperation(torch.nn.Module):
    """An operation of a graph that a device computes.

    Parameters
    ----------
    operation : Operation
        What it is.
    weights : tuple of str
        Roles whose values stay from call to call.
    device : Device
        Computes it.
    opt_level : int
        0 to 3.

    Attributes
    ----------
    calls : int
        How often the device computed it.
    program : Program
        What runs; its tables are those of the last call.

    Raises
    ------
    EmberError
        It can't become a program for the device.
    """

    def __init__(
        self, operation: Operation, weights: Sequence[str], device: Device, opt_level: int
    ) -> None:
        super().__init__()
        self.kind = operation.kind
        self.where = describe(operation.node)
        self.calls = 0
        self._operation = operation
        self._weights = tuple(weights)
        self._roles = roles_of_caller(operation, dict.fromkeys(weights))
        self._device = device
        self._versions: dict[str, tuple[int, ...]] = {}
        self._held: dict[str, torch.Tensor] = {}
        # Only the shapes of tables matter here; zeros take no memory until they are written.
        shapes = {role: _shape(operation.inputs[role]) for role in self._weights}
        zeros = {
            role: (operation.inputs[role].name, np.zeros(shape, np.float32))
            for role, shape in shapes.items()
        }
        self.program: Program = _program(spec_of(operation, zeros), opt_level, device.config)

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        """Compute the operation.

        Parameters
        ----------
        *values : tensor
            The operation's inputs, in the order of its roles.

        Returns
        -------
        tensor
            Its output, on the device of torch that the graph has it on.
        """
        given = dict(zip(self._operation.inputs, values, strict=True))
        self._take_tables({role: given[role] for role in self._weights})
        result: torch.Tensor = self._device.run(
            self.program, {role: given[role] for role in self._roles}
        )
        self.calls += 1
        output: torch.Tensor = self._operation.output.meta["val"]
        return result.to(output.device)

    def _take_tables(self, tables: Mapping[str, torch.Tensor]) -> None:
        """Use these tables from now on; nothing happens if they are those of the last call."""
        versions = {role: _identity(table) for role, table in tables.items()}
        if versions == self._versions:
            return
        self._held = dict(tables)  # nothing else gets their addresses
        spec = spec_of(
            self._operation,
            {role: (self._operation.inputs[role].name, _array(t)) for role, t in tables.items()},
        )
        self.program = replace(self.program, tables=spec.tables())
        self._versions = versions


_number = count()
_programs: dict[tuple[Any, ...], Program] = {}


def _program(spec: Any, opt_level: int, config: AcceleratorConfig) -> Program:
    """Build a program, or take that of another operation with the same loops and columns.

    The number of rows of a table is no part of a program: no function of the front end asks for it.
    """
    module = emit_scf(spec)
    tables: dict[str, NDArray[np.float32]] = spec.tables()
    columns = tuple((symbol, table.shape[1]) for symbol, table in tables.items())
    key = str(module), columns, opt_level, config
    if key not in _programs:
        _programs[key] = build(module, spec, opt_level=opt_level, config=config)
    model = {"kind": spec.kind, **spec.model()}
    return replace(_programs[key], model=model, tables=tables)


def _shape(node: torch.fx.Node) -> tuple[int, ...]:
    value: torch.Tensor = node.meta["val"]
    return tuple(int(size) for size in value.shape)


def _array(table: torch.Tensor) -> NDArray[np.float32]:
    return table.detach().cpu().contiguous().numpy()  # pyright: ignore[reportUnknownMemberType]


def _identity(table: torch.Tensor) -> tuple[int, ...]:
    """Tell tables apart; what is read in place needs no new program when it is written."""
    place = (table.data_ptr(), *table.shape, *table.stride())
    if table.is_contiguous() and table.device.type == "cpu":
        return place
    # Tensors of inference mode don't count their versions.
    return (*place, next(_number) if table.is_inference() else table._version)


@dataclass(eq=False)
class Record:
    """What ran where, and why not on the device; fills while graphs are compiled and run.

    Attributes
    ----------
    operations : list of AcceleratedOperation
        What the device computes.
    refusals : list of Refusal
        What looks like an embedding operation and was left to torch, with the reason.
    graphs : int
        Graphs that torch handed over. 0 after a call says that torch ran the model by itself, as
        it does without a word for models with sparse tensors.
    """

    operations: list[AcceleratedOperation] = field(default_factory=list[AcceleratedOperation])
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    graphs: int = 0

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
        lines += [f"left to torch: {refusal.reason}" for refusal in self.refusals]
        return "\n".join(lines)


def backend(
    graph_module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Compile a graph of Dynamo: torch calls this for ``backend="ember_hw"``.

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

    given = dict(options or {})
    for name in given:
        if name not in _OPTIONS:
            raise ValueError(f"option must be one of {', '.join(_OPTIONS)}, not {name!r}")
    record = given.get("record") or Record()
    device = _device(given)

    def compile_forward(graph: torch.fx.GraphModule, _inputs: Sequence[Any]) -> Any:
        return _boxed(_compile(graph, device, int(given.get("opt_level", 3)), record))

    def leave(graph: torch.fx.GraphModule, _inputs: Sequence[Any]) -> Any:
        return _boxed(graph)

    compiler: Any = aot_autograd(fw_compiler=compile_forward, bw_compiler=leave)
    return compiler(graph_module, example_inputs)


def _boxed(graph: torch.fx.GraphModule) -> Any:
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
    record.refusals += findings.refusals
    static = _static_inputs(graph_module)
    replaced: dict[torch.fx.Node, torch.fx.Node] = {}
    for number, operation in enumerate(findings.operations):
        weights = [
            role
            for role in operation.tables
            if role in operation.inputs
            and (operation.kind in _OWN_TABLES or operation.inputs[role] in static)
        ]
        reason = _refusal(operation, weights, static)
        if reason is None:
            try:
                module = AcceleratedOperation(operation, weights, device, opt_level)
            except EmberError as error:
                reason = f"{describe(operation.node)} must fit the device: {error}"
            else:
                replace_operation(graph_module, operation, f"ember_{number}", module, replaced)
                record.operations.append(module)
        if reason is not None:
            record.refusals.append(Refusal(operation.node, reason))
    graph_module.graph.eliminate_dead_code()
    graph_module.recompile()
    return graph_module


def _static_inputs(graph_module: torch.fx.GraphModule) -> set[torch.fx.Node]:
    """Return the inputs of a graph that are parameters and buffers."""
    from torch._guards import TracingContext

    context: Any = TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    inputs = graph_module.graph.find_nodes(op="placeholder")
    indices: Sequence[int] = getattr(metadata, "static_input_indices", ())
    return {inputs[index] for index in indices if index < len(inputs)}


def _refusal(
    operation: Operation, weights: Sequence[str], static: set[torch.fx.Node]
) -> str | None:
    """Say why an operation can't run in a compiled graph, None if it can."""
    output: torch.Tensor = operation.output.meta["val"]
    if not output.is_contiguous():
        return (
            f"the result must be contiguous, not of strides {tuple(output.stride())}, in "
            f"{describe(operation.node)}"
        )
    for role in weights:
        node = operation.inputs[role]
        if node not in static:
            return (
                f"{role} {node.name!r} must be a parameter or buffer of the model to be loaded, "
                f"not computed or passed in, in {describe(operation.node)}"
            )
    return None


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
    """

    operations: tuple[tuple[str, str], ...]
    refusals: tuple[str, ...]
    graphs: int

    def __str__(self) -> str:
        lines = [f"graphs: {self.graphs}"]
        lines += [f"on the device: {kind}, {where}" for kind, where in self.operations]
        lines += [f"left to torch: {reason}" for reason in self.refusals]
        return "\n".join(lines)


def explain(model: Any, *inputs: Any) -> Explanation:
    """List what of a model would run on a device, without one.

    Parameters
    ----------
    model : torch.nn.Module or callable
        The model; it is run once by torch.
    *inputs : tensor
        A call of it.

    Examples
    --------
    >>> import torch
    >>> bag = torch.nn.EmbeddingBag(10, 4, mode="sum")
    >>> print(explain(bag, torch.tensor([[1, 2]])).operations[0][0])
    embedding_bag
    """
    from torch._dynamo.backends.common import aot_autograd

    operations: list[tuple[str, str]] = []
    refusals: list[str] = []
    graphs = 0

    def look(graph: torch.fx.GraphModule, _inputs: Sequence[Any]) -> Any:
        nonlocal graphs
        graphs += 1
        findings = find_operations(graph)
        operations.extend((found.kind, describe(found.node)) for found in findings.operations)
        refusals.extend(refusal.reason for refusal in findings.refusals)
        return _boxed(graph)

    compiled: Any = cast(Any, torch).compile(model, backend=aot_autograd(fw_compiler=look))
    with torch.no_grad():
        compiled(*inputs)
    return Explanation(tuple(operations), tuple(refusals), graphs)
