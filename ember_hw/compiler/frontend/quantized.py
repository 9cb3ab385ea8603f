"""Quantised tables of a model: the caller's, or packed from the model's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.operation_spec import OperationSpec
from ember_hw.compiler.frontend.tables import TablesSpec
from ember_hw.compiler.quantized_rows import QuantizedTable, format_of, quantize
from ember_hw.errors import UnsupportedError

__all__ = ["with_table"]


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
