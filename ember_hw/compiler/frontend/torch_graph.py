"""Reading the nodes of an exported torch graph: what they are, where they come from, what they say.

torch's graph API is only partly typed, so that `Any` stands for its values here and nowhere else.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

#: What stands between a model's line and a node: torch, and the drop-in modules.
_LIBRARIES = (
    str(Path(torch.__file__).parent),
    *(str(Path(__file__).parents[2] / "host" / "nn" / f"{n}.py") for n in ("modules", "quantized")),
)
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


def target_name(node: torch.fx.Node) -> str:
    """Name what a node calls, like `aten.embedding_bag.padding_idx`."""
    target: Any = node.target
    # An aten op's own name is that of its overload alone.
    is_function = node.op == "call_function" and not hasattr(target, "_schema")
    return str(target.__name__ if is_function else target)


def describe(node: torch.fx.Node) -> str:
    """Name a node, its target and, where torch recorded it, the line of the model it stands for.

    The line is the innermost one outside torch and the drop-in modules, or the innermost of all if
    there is none.
    """
    text = f"node {node.name!r} ({target_name(node)})"
    frames = _FRAME.findall(str(node.meta.get("stack_trace") or ""))
    if not frames:
        return text
    outside = [frame for frame in frames if not frame[0].startswith(_LIBRARIES)]
    file, line = (outside or frames)[-1]
    return f"{text} at {file}:{line}"


def bind_arguments(node: torch.fx.Node) -> dict[str, Any]:
    """Map the argument names of an aten op to the values of a call, defaults included."""
    target: Any = node.target
    bound: dict[str, Any] = {}
    for position, argument in enumerate(target._schema.arguments):
        if position < len(node.args):
            bound[argument.name] = node.args[position]
        elif argument.name in node.kwargs:
            bound[argument.name] = node.kwargs[argument.name]
        else:
            bound[argument.name] = argument.default_value
    return bound


def value_of(argument: Any) -> Any:
    """Give what export recorded for a node (a fake tensor, a symbolic size), or the constant."""
    return argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument


def size_expression(size: Any) -> Any:
    """Give the formula of a size: an int, or a sympy expression, which may be a number as well."""
    return size if isinstance(size, int) else size.node.expr


def is_fixed(expression: Any) -> bool:
    """Tell whether a `size_expression` is one number for every run of the graph."""
    return isinstance(expression, int) or bool(expression.is_Integer)


def same_size(left: Any, right: Any) -> bool:
    """Tell whether two sizes are the same for every run of the graph."""
    return bool(size_expression(left) - size_expression(right) == 0)
