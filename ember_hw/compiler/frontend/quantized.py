"""Quantised tables of a model: the caller's, or packed from the model's own."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.operation_spec import OperationSpec
from ember_hw.compiler.frontend.tables import TablesSpec
from ember_hw.compiler.quantized_rows import QuantizedTable, format_of, quantize
from ember_hw.errors import UnsupportedError

__all__ = ["unpacked", "with_table"]


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
) -> EmbeddingBagSpec:
    """Return the spec of a bag whose table is quantised.

    Parameters
    ----------
    spec : EmbeddingBagSpec, OperationSpec or TablesSpec
        Of a model.
    name : str
        Name of its table in the model.
    table : str or QuantizedTable
        int8 or int4, or the table that stands for the model's.

    Raises
    ------
    UnsupportedError
        The model isn't one embedding bag.
    TypeError
        `table` is neither of both, or the model's own table isn't float32.
    ValueError
        There is no table of this name, its shape is another, or it can't be packed.
    """
    if not isinstance(spec, EmbeddingBagSpec):
        raise UnsupportedError(
            f"a model whose table {name!r} is quantised must be one EmbeddingBag, not of kind "
            f"{spec.kind!r}"
        )
    if name != spec.name:
        raise ValueError(f"name in tables must be {spec.name!r}, the model's table, not {name!r}")
    if isinstance(table, str):
        format_of(table)
        table = quantize(spec.weight, table)
    if not isinstance(table, QuantizedTable):
        kind = type(table).__name__
        raise TypeError(f"table {name!r} must be 'int8', 'int4' or a QuantizedTable, not {kind}")
    shape = (spec.num_embeddings, spec.embedding_dim)
    if table.shape != shape:
        raise ValueError(f"table {name!r} must be of the model's shape {shape}, not {table.shape}")
    return replace(spec, weight=table)
