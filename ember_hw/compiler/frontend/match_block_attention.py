"""Reads block-sparse attention, as the operator of `torch_ops` says it."""

from __future__ import annotations

from typing import Any

import torch

from ember_hw.compiler.frontend import torch_ops
from ember_hw.compiler.frontend.operation import (
    Operation,
    check_indices,
    check_table,
    index_dtype,
    refuse,
)
from ember_hw.compiler.frontend.torch_graph import bind_arguments, describe

assert torch_ops.block_attention  # importing it registers the operator
_OPERATOR: Any = torch.ops.ember_hw.block_attention.default
ATTENTION_OPS: tuple[Any, ...] = (_OPERATOR,)

Node = torch.fx.Node


def match_block_attention(node: Node) -> Operation:
    """Read a call of ``ember_hw.block_attention``.

    Returns
    -------
    Operation
        Roles `queries`, `keys`, `values`, `blocks`; facts `block_size` and `scale`.

    Raises
    ------
    UnsupportedError
        It isn't computed by the accelerator; names the torch node.
    """
    given = bind_arguments(node)
    names = {"queries": "query", "keys": "key", "values": "value"}
    for role, name in names.items():
        check_table(role, given[name], node)
    check_indices("blocks", given["blocks"], node, (2,))
    size = given["block_size"]
    if not isinstance(size, int) or size < 1:
        refuse(node, f"block_size must be a number, at least 1, not {size}, in {describe(node)}")
    return Operation(
        kind="block_attention",
        node=node,
        output=node,
        inputs={
            **{role: given[name] for role, name in names.items()},
            "blocks": given["blocks"],
        },
        tables=("keys", "values"),
        facts={
            "block_size": size,
            "whole_blocks": False,
            "scale": float(given["scale"]),
            "index_dtype": index_dtype(given["blocks"]),
        },
        sizes={"queries": ("T", "D"), "blocks": ("B", "N")},
    )
