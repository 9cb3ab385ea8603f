"""Reads lookups of quantised rows: the operators of `quantized_ops`, and torch's of such bags."""

from __future__ import annotations

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
from ember_hw.compiler.frontend.quantized_ops import QUANTIZED_BAG, QUANTIZED_EMBEDDING
from ember_hw.compiler.frontend.torch_graph import bind_arguments, describe, value_of
from ember_hw.compiler.quantized_rows import format_of

__all__ = ["QUANTIZED_OPS", "match_quantized"]

#: torch's own, with codes and dtype of scales. They pool by sums, whatever their `mode`.
_TORCH_OPS: dict[Any, tuple[str, str]] = {
    torch.ops.quantized.embedding_bag_byte_rowwise_offsets.default: ("int8", "float32"),
    torch.ops.quantized.embedding_bag_4bit_rowwise_offsets.default: ("int4", "float16"),
}
QUANTIZED_OPS: tuple[Any, ...] = (QUANTIZED_BAG, QUANTIZED_EMBEDDING, *_TORCH_OPS)

Node = torch.fx.Node


def match_quantized(node: Node) -> Operation:
    """Read one call.

    Parameters
    ----------
    node : Node
        A call of one of `QUANTIZED_OPS`.

    Returns
    -------
    Operation
        As of `match_embedding_bag` and `match_embedding`; further facts `packing` (embedding_dim,
        codes, dtype of scale and bias) and `output`.

    Raises
    ------
    UnsupportedError
        It isn't computed by the accelerator; names the torch node.
    """
    arguments = bind_arguments(node)
    if node.target in _TORCH_OPS:
        arguments = _as_ours(node, arguments)
    rows, indices = arguments["rows"], arguments["indices"]
    check_table("rows", rows, node, ("uint8",))
    packing = [arguments[name] for name in ("embedding_dim", "codes", "scale_dtype")]
    columns, *form = packing
    try:
        width = format_of(*form).row_bytes(columns)
    except ValueError as error:
        refuse(node, f"{error}, in {describe(node)}")
    if value_of(rows).shape[1] != width:
        refuse(
            node,
            f"rows {rows.name!r} must have {width} bytes each for embedding_dim {columns} in "
            f"{form[0]} with scales of {form[1]}, not {value_of(rows).shape[1]}, in "
            f"{describe(node)}",
        )
    dtype = str(arguments["output_dtype"]).removeprefix("torch.")
    if dtype not in FLOAT_NAMES:
        refuse(
            node,
            f"output_dtype must be one of {', '.join(FLOAT_NAMES)}, not {dtype}, in "
            f"{describe(node)}",
        )
    facts = {"packing": packing, "output": FLOAT_NAMES[dtype]}
    if node.target is QUANTIZED_EMBEDDING:
        check_indices("indices", indices, node, ())
        facts["index_dtype"] = index_dtype(indices)
        letters = tuple(f"N{dimension}" for dimension in range(len(value_of(indices).shape)))
        return Operation(
            kind="embedding",
            node=node,
            output=node,
            inputs={"weight": rows, "indices": indices},
            tables=("weight",),
            facts=facts,
            sizes={"indices": letters},
        )
    return _bag(node, arguments, facts)


def _as_ours(node: Node, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of torch's operator as those of `quantized_embedding_bag`."""
    where = f"in {describe(node)}"
    if arguments["mode"] != 0:
        refuse(
            node,
            f"mode must be 0, as torch's operator sums whatever it is, not {arguments['mode']}, "
            f"{where}; ember_hw.nn.QuantizedEmbeddingBag has the other modes",
        )
    if arguments["pruned_weights"] or arguments["compressed_indices_mapping"] is not None:
        refuse(node, f"rows must all be there, not pruned, {where}; pack them again")
    codes, scale_dtype = _TORCH_OPS[node.target]
    check_table("rows", arguments["weight"], node, ("uint8",))
    width = int(value_of(arguments["weight"]).shape[1])
    return {
        **arguments,
        "rows": arguments["weight"],
        "embedding_dim": format_of(codes, scale_dtype).elements(width),
        "codes": codes,
        "scale_dtype": scale_dtype,
        "output_dtype": torch.float32,
        "mode": "sum",
        "padding_idx": None,
    }


def _bag(node: Node, arguments: dict[str, Any], facts: dict[str, Any]) -> Operation:
    indices, offsets = arguments["indices"], arguments["offsets"]
    weights = arguments["per_sample_weights"]
    where = f"in {describe(node)}"
    inputs: dict[str, Node] = {"weight": arguments["rows"], "indices": indices}
    sizes: dict[str, tuple[Any, ...]] = {"indices": ("B", "L") if offsets is None else ("N",)}
    check_indices("indices", indices, node, (len(sizes["indices"]),))
    is_open = bool(arguments["include_last_offset"]) and offsets is not None
    if offsets is not None:
        if indices is offsets:
            refuse(
                node, f"offsets must be another input than indices, not {offsets.name} too, {where}"
            )
        check_indices("offsets", offsets, node, (1,))
        inputs["offsets"], sizes["offsets"] = offsets, (("B", int(is_open)),)
    if weights is not None:
        if arguments["mode"] != "sum":
            mode = arguments["mode"]
            refuse(node, f"mode must be 'sum' with per_sample_weights, not {mode!r}, {where}")
        dtype = str(value_of(weights).dtype).removeprefix("torch.")
        if dtype != "float32":
            refuse(node, f"per_sample_weights must be of dtype float32, not {dtype}, {where}")
        inputs["per_sample_weights"], sizes["per_sample_weights"] = weights, sizes["indices"]
    facts |= {
        "mode": arguments["mode"],
        "padding_idx": arguments["padding_idx"],
        "include_last_offset": is_open,
        "two_dimensional": offsets is None,
        "index_dtype": index_dtype(indices),
    }
    return Operation(
        kind="embedding_bag",
        node=node,
        output=node,
        inputs=inputs,
        tables=("weight",),
        facts=facts,
        sizes=sizes,
    )
