"""What a table of a collection is, as TorchRec's configs describe it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from ember_hw.host.nn.modules import EmbeddingBag
from ember_hw.host.nn.quantized import QuantizedEmbeddingBag

__all__ = ["Bag", "TableConfig", "data_type_of", "named", "stored_as"]

Bag: TypeAlias = EmbeddingBag | QuantizedEmbeddingBag

#: What tables of a config are stored as, by TorchRec's names of their types.
_DATA_TYPES: dict[str, torch.dtype | str] = {
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "int8": "int8",
    "int4": "int4",
}


@dataclass(frozen=True, kw_only=True)
class TableConfig:
    """One table of a collection, as TorchRec's `EmbeddingBagConfig` describes it.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Its shape.
    name : str
        What parameters and messages call it; without a dot.
    feature_names : sequence of str
        Features that look up in it.
    pooling : str or enum
        "sum", "mean" or "max" in upper or lower case, or TorchRec's `PoolingType`.
    include_last_offset, padding_idx, sparse
        As of `torch.nn.EmbeddingBag`.
    data_type : str or enum
        "fp32", "fp16", "bf16", "int8" or "int4" in upper or lower case, or TorchRec's `DataType`.
    """

    num_embeddings: int
    embedding_dim: int
    name: str
    feature_names: Sequence[str]
    pooling: Any = "sum"
    include_last_offset: bool = False
    padding_idx: int | None = None
    sparse: bool = False
    data_type: Any = "fp32"


def named(value: Any) -> str:
    """Return what a caller named: by a string, or an enum that has one as its value."""
    return str(getattr(value, "value", value)).lower()


def stored_as(table: Any) -> torch.dtype | str:
    """Return what a table of a config is stored as: a dtype of torch, or int8 or int4.

    Raises
    ------
    ValueError
        It is another type.
    """
    name = named(getattr(table, "data_type", "fp32"))
    if name not in _DATA_TYPES:
        raise ValueError(
            f"data_type of table {table.name!r} must be one of {', '.join(_DATA_TYPES)}, "
            f"not {name!r}"
        )
    return _DATA_TYPES[name]


def data_type_of(bag: Bag) -> str:
    """Return what a bag's table is stored as, as `TableConfig.data_type` names it."""
    stored = bag.codes if isinstance(bag, QuantizedEmbeddingBag) else bag.weight.dtype
    return next((name for name, each in _DATA_TYPES.items() if each == stored), str(stored))
