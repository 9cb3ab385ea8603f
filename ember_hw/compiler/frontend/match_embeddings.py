"""Reads an embedding bag, in each spelling that torch has for it, and a plain embedding."""

from __future__ import annotations

import operator
from typing import Any

import torch

from ember_hw.compiler.element_dtypes import FLOAT_NAMES
from ember_hw.compiler.frontend.operation import (
    Operation,
    check_indices,
    check_table,
    index_dtype,
    refuse,
)
from ember_hw.compiler.frontend.torch_graph import bind_arguments, describe, same_size, value_of

_ATEN = torch.ops.aten
#: Only this one says None for "no padding"; the others say -1.
_WITH_PADDING: Any = _ATEN.embedding_bag.padding_idx
BAG_OPS: tuple[Any, ...] = (
    _WITH_PADDING,
    _ATEN.embedding_bag.default,
    _ATEN._embedding_bag.default,
    _ATEN._embedding_bag_forward_only.default,
)
EMBEDDING_OPS: tuple[Any, ...] = (_ATEN.embedding.default,)
RENORM_OPS: tuple[Any, ...] = (_ATEN.embedding_renorm_.default, _ATEN.embedding_renorm.default)
_FLATTEN_OPS: tuple[Any, ...] = (_ATEN.reshape.default, _ATEN.view.default)
MODES = ("sum", "mean", "max")

Node = torch.fx.Node


def refuse_renorm(node: Node) -> None:
    """Refuse a table that is renormalised while it is read.

    Raises
    ------
    UnsupportedError
        Always; the message has the remedy.
    """
    arguments = bind_arguments(node)
    max_norm, norm_type = arguments["max_norm"], arguments["norm_type"]
    refuse(
        node,
        f"max_norm must be None, not {max_norm!r}, in {describe(node)}; renormalise the "
        f"table once before it is loaded: "
        f"weight.data.renorm_({norm_type!r}, 0, {max_norm!r})",
    )


def match_embedding_bag(bag: Node) -> Operation:
    """Read one call of an embedding bag.

    Parameters
    ----------
    bag : Node
        A call of one of `BAG_OPS`.

    Returns
    -------
    Operation
        Roles `weight`, `indices`, `offsets` (unless the indices are 2-D) and `per_sample_weights`
        (if it has any); facts `mode`, `padding_idx`, `include_last_offset`, `two_dimensional`,
        `index_dtype`.

    Raises
    ------
    UnsupportedError
        It isn't computed by the accelerator; names the torch node.
    """
    arguments = bind_arguments(bag)
    where = f"in {describe(bag)}"
    weight, indices, offsets = (arguments[name] for name in ("weight", "indices", "offsets"))
    if weight.target in RENORM_OPS:
        refuse_renorm(weight)
    mode = MODES[int(arguments["mode"])]
    weights = arguments["per_sample_weights"]
    if weights is not None and mode != "sum":
        refuse(bag, f"mode must be 'sum' with per_sample_weights, not {mode!r}, {where}")
    if indices is offsets:
        refuse(bag, f"offsets must be another input than indices, not {offsets.name} too, {where}")
    check_table("table", weight, bag, tuple(FLOAT_NAMES))
    output = _pooled_rows(bag)

    inputs: dict[str, Node] = {"weight": weight}
    sizes: dict[str, tuple[Any, ...]] = {}
    matrix = _matrix(indices, offsets, arguments["include_last_offset"])
    if matrix is not None:
        check_indices("indices", matrix, bag, (2,))
        inputs["indices"], sizes["indices"] = matrix, ("B", "L")
    else:
        check_indices("indices", indices, bag, (1,))
        check_indices("offsets", offsets, bag, (1,))
        inputs["indices"], sizes["indices"] = indices, ("N",)
        extra = int(bool(arguments["include_last_offset"]))
        inputs["offsets"], sizes["offsets"] = offsets, (("B", extra),)
    if weights is not None:
        weights = _weights_as_given(weights, matrix)
        dtype = str(value_of(weights).dtype).removeprefix("torch.")
        wanted = str(value_of(weight).dtype).removeprefix("torch.")
        if dtype != wanted:
            refuse(bag, f"per_sample_weights must be of dtype {wanted}, not {dtype}, {where}")
        inputs["per_sample_weights"] = weights
        # All lookups carry their weights, so that these have the shape of indices.
        sizes["per_sample_weights"] = (
            sizes["indices"] if len(value_of(weights).shape) == len(sizes["indices"]) else ("N",)
        )
    padding_idx = arguments.get("padding_idx")
    if padding_idx == -1 and bag.target is not _WITH_PADDING:
        padding_idx = None
    return Operation(
        kind="embedding_bag",
        node=bag,
        output=output,
        inputs=inputs,
        tables=("weight",),
        facts={
            "mode": mode,
            "padding_idx": padding_idx,
            "include_last_offset": bool(arguments["include_last_offset"]) and matrix is None,
            "two_dimensional": matrix is not None,
            "index_dtype": index_dtype(inputs["indices"]),
        },
        sizes=sizes,
    )


def _pooled_rows(bag: Node) -> Node:
    """Return the node of the pooled rows; refuse uses of the operator's other results."""
    output: Node | None = None
    for user in bag.users:
        if user.target is not operator.getitem:
            refuse(
                user,
                f"{describe(user)} must take one result of node {bag.name!r}, not all of them",
            )
        if user.args[1] == 0:
            if output is not None:
                refuse(
                    user,
                    f"{describe(user)} must be the only one to take the pooled rows of node "
                    f"{bag.name!r}, not a second one",
                )
            output = user
        elif user.users:
            refuse(
                user,
                f"{describe(user)} must not be used, as only the pooled rows are computed, "
                f"not output {user.args[1]} of node {bag.name!r}",
            )
    if output is None:
        refuse(bag, f"{describe(bag)} must have its pooled rows used, not ignored")
    return output


def _matrix(indices: Node, offsets: Node, include_last_offset: Any) -> Node | None:
    """Return the 2-D indices that the bag was called with, None if it was with offsets."""
    if indices.target not in _FLATTEN_OPS or offsets.target is not _ATEN.arange.start_step:
        return None
    matrix: Any = indices.args[0]
    shape = value_of(matrix).shape
    positions = bind_arguments(offsets)
    start, end, step = (value_of(positions[name]) for name in ("start", "end", "step"))
    is_matrix = (
        len(shape) == 2
        and len(value_of(indices).shape) == 1
        and not include_last_offset
        and same_size(start, 0)
        and same_size(end, shape[0] * shape[1])
        and same_size(step, shape[1])
    )
    return matrix if is_matrix else None


def _weights_as_given(weights: Node, matrix: Node | None) -> Node:
    """Return 2-D weights instead of their flattened form."""
    if matrix is None or weights.target not in _FLATTEN_OPS:
        return weights
    source: Any = weights.args[0]
    found, wanted = value_of(source).shape, value_of(matrix).shape
    is_same = len(found) == 2 and all(
        same_size(left, right) for left, right in zip(found, wanted, strict=True)
    )
    return source if is_same else weights


def match_embedding(embedding: Node) -> Operation:
    """Read one call of `torch.nn.Embedding`.

    Parameters
    ----------
    embedding : Node
        A call of one of `EMBEDDING_OPS`.

    Returns
    -------
    Operation
        Roles `weight` and `indices`; fact `index_dtype`. `padding_idx` has no effect on the rows.

    Raises
    ------
    UnsupportedError
        It isn't computed by the accelerator; names the torch node.
    """
    arguments = bind_arguments(embedding)
    weight, indices = arguments["weight"], arguments["indices"]
    if weight.target in RENORM_OPS:
        refuse_renorm(weight)
    check_table("table", weight, embedding, tuple(FLOAT_NAMES))
    check_indices("indices", indices, embedding, ())
    rank = len(value_of(indices).shape)
    return Operation(
        kind="embedding",
        node=embedding,
        output=embedding,
        inputs={"weight": weight, "indices": indices},
        tables=("weight",),
        facts={"index_dtype": index_dtype(indices)},
        sizes={"indices": tuple(f"N{dimension}" for dimension in range(rank))},
    )
