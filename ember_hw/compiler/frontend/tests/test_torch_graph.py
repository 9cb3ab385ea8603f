# pyright: basic
import operator
from pathlib import Path

import torch

from ember_hw.compiler.frontend.torch_graph import (
    bind_arguments,
    describe,
    is_fixed,
    same_size,
    size_expression,
    target_name,
    value_of,
)

TORCH_FILE = str(Path(torch.__file__).parent / "nn" / "functional.py")


def _call(target, args=(), **kwargs) -> torch.fx.Node:
    return torch.fx.Graph().create_node("call_function", target, args, kwargs, name="call")


def test_targets_are_named_as_torch_prints_them():
    assert target_name(_call(torch.ops.aten.add.Tensor)) == "aten.add.Tensor"
    assert target_name(_call(operator.getitem)) == "getitem"
    graph = torch.fx.Graph()
    assert target_name(graph.create_node("get_attr", "sub.table")) == "sub.table"


def test_node_without_a_trace_is_described_without_a_line():
    assert describe(_call(torch.ops.aten.add.Tensor)) == "node 'call' (aten.add.Tensor)"


def test_innermost_line_outside_torch_is_told():
    node = _call(operator.getitem)
    node.meta["stack_trace"] = (
        'File "a.py", line 3, in outer\n  f(x)\nFile "b.py", line 7, in f\n  g(x)\n'
        f'File "{TORCH_FILE}", line 9, in g\n  h(x)\n'
    )
    assert describe(node) == "node 'call' (getitem) at b.py:7"


def test_innermost_line_of_torch_is_told_where_all_are():
    node = _call(operator.getitem)
    node.meta["stack_trace"] = f'File "{TORCH_FILE}", line 9, in g\n  h(x)\n'
    assert describe(node) == f"node 'call' (getitem) at {TORCH_FILE}:9"


def test_arguments_are_bound_by_position_name_and_default():
    node = _call(torch.ops.aten.arange.start_step, (0, 8), dtype=torch.int64)
    bound = bind_arguments(node)
    assert (bound["start"], bound["end"], bound["step"]) == (0, 8, 1)
    assert bound["dtype"] is torch.int64


def test_sizes_are_compared_for_every_run():
    auto = torch.export.Dim.AUTO
    program = torch.export.export(
        torch.nn.ReLU(), (torch.zeros(5, 7),), dynamic_shapes=({0: auto, 1: auto},)
    )
    (node,) = program.graph.find_nodes(op="placeholder")
    rows, columns = value_of(node).shape
    assert same_size(rows * columns, columns * rows)
    assert not same_size(rows, columns)
    assert not same_size(rows, 5)
    assert same_size(5, 5)
    assert not is_fixed(size_expression(rows))
    assert is_fixed(size_expression(rows - rows + 3))
    assert is_fixed(3)
    assert value_of(3) == 3
