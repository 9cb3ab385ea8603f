"""Small questions about nodes that several matchers ask."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple, cast

import torch

from ember_hw.compiler.frontend.torch_graph import bind_arguments, same_size, value_of

_ATEN = torch.ops.aten
Node = torch.fx.Node

_ZEROS: tuple[Any, ...] = (
    _ATEN.zeros.default,
    _ATEN.zeros_like.default,
    _ATEN.new_zeros.default,
)
_FULL: tuple[Any, ...] = (_ATEN.full.default, _ATEN.full_like.default, _ATEN.new_full.default)
_SCALED: tuple[Any, ...] = (_ATEN.add.Tensor, _ATEN.sub.Tensor)
_RESHAPES: tuple[Any, ...] = (
    _ATEN.view.default,
    _ATEN.reshape.default,
    _ATEN.unsqueeze.default,
    _ATEN._unsafe_view.default,
)
_SAME: tuple[Any, ...] = (_ATEN.alias.default, _ATEN.detach.default, _ATEN.contiguous.default)


class Rows(NamedTuple):
    """Rows of a matrix: ``table[indices]``."""

    table: Node
    indices: Node


def shape_of(node: Any) -> tuple[Any, ...]:
    """Return the shape that export recorded; () for what is no tensor."""
    return tuple(getattr(value_of(node), "shape", ()))


def is_call(node: Any, *targets: Any) -> bool:
    """Whether a node calls one of these operators."""
    return isinstance(node, Node) and node.op == "call_function" and node.target in targets


def skip_copies(node: Any) -> Any:
    """Follow what hands a tensor on unchanged, among it ``t[:]``."""
    while True:
        if is_call(node, *_SAME):
            node = node.args[0]
        elif is_call(node, _ATEN.slice.Tensor):
            given = bind_arguments(node)
            if given["start"] not in (0, None) or not _is_end(given["end"]) or given["step"] != 1:
                return node
            node = node.args[0]
        else:
            return node


def _is_end(end: Any) -> bool:
    return end is None or (isinstance(end, int) and end == (1 << 63) - 1)


def is_zeros(node: Any) -> bool:
    """Whether a node makes a tensor of zeros."""
    node = skip_copies(node)
    if is_call(node, *_ZEROS):
        return True
    return is_call(node, *_FULL) and bind_arguments(node)["fill_value"] == 0


def as_rows(node: Any) -> Rows | None:
    """Read ``embedding(table, i)``, ``table[i]`` or ``table.index_select(0, i)``."""
    if is_call(node, _ATEN.embedding.default):
        given = bind_arguments(node)
        return Rows(given["weight"], given["indices"])
    if is_call(node, _ATEN.index_select.default):
        given = bind_arguments(node)
        return Rows(given["self"], given["index"]) if given["dim"] == 0 else None
    if is_call(node, _ATEN.index.Tensor):
        table, indices = node.args
        if len(indices) == 1 and isinstance(indices[0], Node):
            return Rows(table, indices[0])
    return None


def as_product(node: Any) -> tuple[Any, Any] | None:
    """Read ``a * b``."""
    return node.args if is_call(node, _ATEN.mul.Tensor) else None


def as_column(node: Any) -> Any:
    """Read ``v.unsqueeze(-1)`` and ``v.view(-1, 1)``: the vector v; None for all else."""
    node = skip_copies(node)
    if not is_call(node, *_RESHAPES):
        return None
    vector = skip_copies(node.args[0])
    column, shape = shape_of(node), shape_of(vector)
    if len(column) != 2 or len(shape) != 1:
        return None
    is_column = same_size(column[1], 1) and same_size(column[0], shape[0])
    return vector if is_column else None


def as_expanded_column(node: Any) -> Any:
    """Read ``v[:, None].expand(-1, D)``, and ``.expand_as(x)``: the vector v; None for all else."""
    node = skip_copies(node)
    if is_call(node, _ATEN.expand.default, _ATEN.expand_as.default):
        vector = as_column(node.args[0])
        if vector is None or len(shape_of(node)) != 2:
            return None
        return vector if same_size(shape_of(node)[0], shape_of(vector)[0]) else None
    if is_call(node, _ATEN.repeat.default):
        vector = as_column(node.args[0])
        return vector if vector is not None and node.args[1][0] == 1 else None
    return None


def as_part(node: Any) -> tuple[Any, int, int] | None:
    """Read one of n equal parts of the last dimension, as chunk and split give them.

    Returns
    -------
    (whole, part, parts) or None
    """
    if is_call(node, operator.getitem):
        source, number = node.args
        if not is_call(source, _ATEN.chunk.default, _ATEN.split.Tensor):
            return None
        given = bind_arguments(source)
        whole, dimension = given["self"], given["dim"]
        width = shape_of(whole)[dimension]
        step = given["split_size"] if "split_size" in given else None
        if step is None:
            step = -(-width // given["chunks"]) if isinstance(width, int) else None
        if not _are_ints(step, number):
            return None
        start = number * step
    elif is_call(node, _ATEN.slice.Tensor):
        given = bind_arguments(node)
        whole, dimension, start = given["self"], given["dim"], given["start"] or 0
        if given["step"] != 1:
            return None
    else:
        return None
    size, shape = shape_of(node), shape_of(whole)
    if len(shape) != 2 or dimension not in (1, -1) or not _are_ints(start, size[1], shape[1]):
        return None
    if start < 0 or size[1] == 0 or shape[1] % size[1] or start % size[1]:
        return None
    return whole, start // size[1], shape[1] // size[1]


def _are_ints(*sizes: Any) -> bool:
    return all(isinstance(size, int) for size in sizes)


def is_plain_sum(node: Any, *, keepdim: bool | None = False) -> bool:
    """Whether a node is ``x.sum(-1)`` of a 2-D x, in x's dtype."""
    if not is_call(node, _ATEN.sum.dim_IntList):
        return False
    given = bind_arguments(node)
    return (
        len(shape_of(given["self"])) == 2
        and list(given["dim"] or []) in ([-1], [1])
        and given["dtype"] in (None, torch.float32)
        and (keepdim is None or given["keepdim"] is keepdim)
    )


def as_scaled(node: Any) -> tuple[Any, Any] | None:
    """Read ``a + b`` and ``a - b`` without a factor; None for all else."""
    if not is_call(node, *_SCALED) or bind_arguments(node)["alpha"] != 1:
        return None
    return node.args[0], node.args[1]


_PURE: tuple[Any, ...] = (
    *_SAME,
    *_RESHAPES,
    _ATEN.slice.Tensor,
    _ATEN.select.int,
    _ATEN.index.Tensor,
    _ATEN.index_select.default,
    _ATEN.embedding.default,
)


def same_value(left: Any, right: Any) -> bool:
    """Tell whether two values are the same for every run of a functional graph.

    They are if they are one node, or the same selection of the same values.
    """
    left, right = skip_copies(left), skip_copies(right)
    if left is right:
        return True
    if not isinstance(left, Node) or not isinstance(right, Node):
        if isinstance(left, list | tuple) and isinstance(right, list | tuple):
            ones, others = cast("list[Any]", left), cast("list[Any]", right)
            return len(ones) == len(others) and all(map(same_value, ones, others))
        return type(cast(object, left)) is type(cast(object, right)) and bool(left == right)
    if left.target is not right.target or not is_call(left, *_PURE):
        return False
    return same_value(left.args, right.args) and left.kwargs == right.kwargs
