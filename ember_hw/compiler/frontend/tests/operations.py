# pyright: basic
"""What it takes to run what the front end makes of models at scf."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from torch._dynamo.backends.common import aot_autograd
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp

from ember_hw.compiler.frontend import Findings, Operation, find_operations, import_module
from ember_hw.compiler.frontend.emit_operation import emit_scf
from ember_hw.compiler.frontend.partition import roles_of_caller, spec_of
from ember_hw.compiler.interpreters import interpret
from ember_hw.host.bindings import binding_of
from ember_hw.host.reference import bit_equal

spmm = torch.ops.ember_hw.spmm
fusedmm = torch.ops.ember_hw.fusedmm


def run_at_scf(spec: Any, inputs: Any) -> Any:
    """Run what the front end made of an operation, and hold it against the exact reference."""
    module = emit_scf(spec)
    program: Any = SimpleNamespace(
        name="case", model={"kind": spec.kind, **spec.model()}, tables=spec.tables()
    )
    binding = binding_of(program)
    binding.check(program)
    request = binding.request(program, inputs)
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    outputs = {
        symbol: np.full(output.shape, output.fill, np.float32)
        for symbol, output in request.outputs.items()
    }
    given = {**program.tables, **request.arrays, **request.scalars, **outputs}
    symbols = [
        attribute.data
        for attribute in cast("ArrayAttr[StringAttr]", function.attributes["ember.args"])
    ]
    interpret(module, function.sym_name.data, [given[symbol] for symbol in symbols])
    result = request.finish(outputs)
    expected = binding.reference(program, inputs)
    assert bit_equal(np.asarray(result), expected)
    return result


def captured(
    model: nn.Module, inputs: tuple[torch.Tensor, ...]
) -> tuple[Mapping[torch.fx.Node, Any], Findings]:
    """Return what is found in the graph that aot_autograd makes, and the value of each node."""
    found: list[tuple[Mapping[torch.fx.Node, Any], Findings]] = []

    def keep(graph_module, _examples):
        def run(*arguments):
            found.append((values_of(graph_module, arguments), find_operations(graph_module)))
            return graph_module(*arguments)

        return run

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(model, backend=aot_autograd(fw_compiler=keep), fullgraph=True)(*inputs)
    (result,) = found
    return result


def values_of(graph_module: Any, inputs: tuple[Any, ...]) -> Mapping[torch.fx.Node, Any]:
    """Return the value of each node of a graph, computed by torch."""
    values: dict[torch.fx.Node, Any] = {}

    class _Recorder(torch.fx.Interpreter):
        def run_node(self, n):
            values[n] = super().run_node(n)
            return values[n]

    _Recorder(graph_module).run(*inputs)
    return values


def run_operation(operation: Operation, values: Mapping[torch.fx.Node, Any]) -> Any:
    """Run one operation of a graph on the values that torch computed."""
    weights = {
        role: (node.name, values[node].detach().numpy())
        for role, node in operation.inputs.items()
        if role in operation.tables and operation.kind in ("embedding", "embedding_bag", "scores")
    }
    spec = spec_of(operation, weights)
    roles = roles_of_caller(operation, weights)
    return run_at_scf(spec, {role: values[operation.inputs[role]] for role in roles})


def imported(model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> Any:
    """Return the spec of a model by way of torch.export."""
    return import_module(model, inputs).spec
