"""Quantised tables of a model: the caller's, or packed from the model's own."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.operation_spec import OperationSpec
from ember_hw.compiler.frontend.row_types import rows_title
from ember_hw.compiler.frontend.tables import TablesSpec
from ember_hw.compiler.quantized_rows import QuantizedTable, format_of, quantize
from ember_hw.errors import UnsupportedError

__all__ = ["check_formats", "packed_table", "unpacked", "with_table"]


def unpacked(module: torch.nn.Module) -> tuple[torch.nn.Module, dict[str, QuantizedTable]]:
    """Return a module that torch.export can read, and the quantised table that it stands for.

    Parameters
    ----------
    module : torch.nn.Module
        A `torch.ao.nn.quantized.EmbeddingBag` of quint8 or quint4x2 becomes an `EmbeddingBag`; any
        other comes back as it is, without a table.

    Raises
    ------
    UnsupportedError
        Rows of it are pruned.
    """
    quantized: Any = sys.modules.get("torch.ao.nn.quantized")
    if quantized is None or not isinstance(module, quantized.EmbeddingBag):
        return module, {}
    bag: Any = module
    if bag.pruned_weights:
        raise UnsupportedError(
            f"rows of {type(module).__name__} must all be there, not pruned; pack them again"
        )
    weight: Any = torch.ops.quantized.embedding_bag_unpack(bag._packed_params._packed_weight)
    codes = "int4" if weight.dtype is torch.quint4x2 else "int8"
    scale = weight.q_per_channel_scales().float().numpy()
    points = weight.q_per_channel_zero_points().float().numpy()
    form = format_of(codes)
    packed: Any = weight.int_repr().numpy()
    rows = packed.reshape(bag.num_embeddings, -1)
    ends = np.stack((scale, -scale * points), axis=1).astype(form.scale)
    table = np.concatenate((rows, ends.view(np.uint8)), axis=1)
    plain = torch.nn.EmbeddingBag(
        bag.num_embeddings,
        bag.embedding_dim,
        mode=bag.mode,
        include_last_offset=bag.include_last_offset,
        _weight=torch.zeros(bag.num_embeddings, bag.embedding_dim),
    )
    return plain, {"weight": QuantizedTable(table, bag.embedding_dim, codes)}


def with_table(
    spec: EmbeddingBagSpec | OperationSpec | TablesSpec, name: str, table: Any
) -> EmbeddingBagSpec | OperationSpec | TablesSpec:
    """Return the spec of a model one of whose tables is quantised.

    Parameters
    ----------
    spec : EmbeddingBagSpec, OperationSpec or TablesSpec
        Of a model of embedding bags, or of an embedding.
    name : str
        Name of the table in the model; all bags that look up in it get the quantised one.
    table : str or QuantizedTable
        int8 or int4, or the table that stands for the model's.

    Raises
    ------
    UnsupportedError
        The model is another one.
    TypeError
        `table` is neither of both, or the model's own table isn't float32.
    ValueError
        There is no table of this name, its shape is another, or it can't be packed.
    """
    if isinstance(spec, OperationSpec):
        if spec.kind != "embedding":
            raise UnsupportedError(
                f"a model whose table {name!r} is quantised must be of embedding bags or an "
                f"Embedding, not of kind {spec.kind!r}"
            )
        own, weight = spec.weights["weight"]
        _check_name(name, [own])
        return replace(spec, weights={"weight": (own, packed_table(name, table, weight))})
    if isinstance(spec, EmbeddingBagSpec):
        _check_name(name, [spec.name])
        return replace(spec, weight=packed_table(name, table, spec.weight))
    _check_name(name, list(dict.fromkeys(bag.name for bag in spec.bags)))
    packed = packed_table(name, table, next(bag.weight for bag in spec.bags if bag.name == name))
    bags = [replace(bag, weight=packed) if bag.name == name else bag for bag in spec.bags]
    return replace(spec, bags=tuple(bags))


def check_formats(spec: EmbeddingBagSpec | OperationSpec | TablesSpec) -> None:
    """Refuse bags of one program whose tables are of several formats.

    Raises
    ------
    UnsupportedError
        Names the first table that is of another format than the first one.
    """
    if not isinstance(spec, TablesSpec):
        return
    first = spec.bags[0]
    for bag in spec.bags:
        if bag.types.rows != first.types.rows:
            raise UnsupportedError(
                f"table {bag.name!r} must be of {rows_title(first.types.rows)}, as table "
                f"{first.name!r} of the same program, not {rows_title(bag.types.rows)}; name all "
                "tables of the model in tables, with one format"
            )


def _check_name(name: str, names: list[str]) -> None:
    if name not in names:
        what = "the model's table" if len(names) == 1 else "a table of the model"
        legal = " or ".join(repr(own) for own in names)
        raise ValueError(f"name in tables must be {legal}, {what}, not {name!r}")


def packed_table(
    name: str, table: Any, weight: Any, scale_dtype: str | None = None
) -> QuantizedTable:
    """Return the quantised table that stands for a weight of a model.

    Parameters
    ----------
    name : str
        Of the weight, for messages.
    table : str or QuantizedTable
        int8 or int4, for the weight to be packed, or the table.
    weight : float32 (N, D)
        The weight.
    scale_dtype : str, optional
        As of `quantize`.

    Raises
    ------
    TypeError
        `table` is neither of both, or the weight isn't float32.
    ValueError
        Its shape is another, or the weight can't be packed.
    """
    if isinstance(table, str):
        table = quantize(weight, table, scale_dtype)
    if not isinstance(table, QuantizedTable):
        kind = type(table).__name__
        raise TypeError(f"table {name!r} must be 'int8', 'int4' or a QuantizedTable, not {kind}")
    shape = tuple(weight.shape)
    if table.shape != shape:
        raise ValueError(f"table {name!r} must be of the model's shape {shape}, not {table.shape}")
    return table
