"""Operators that look up quantised rows, as graphs of torch hold them.

torch's graphs know tensors alone, so that a quantised table is a uint8 tensor of its rows there,
and its format stands beside it. Importing this module defines
``torch.ops.ember_hw.quantized_embedding_bag`` and ``.quantized_embedding`` with what they return;
`ember_hw.host.nn.quantized` says what computes them where no compiler took them out of the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray

from ember_hw.compiler.quantized_rows import QuantizedTable

__all__ = ["QUANTIZED_BAG", "QUANTIZED_EMBEDDING", "table_of"]

_BAG, _EMBEDDING = "ember_hw::quantized_embedding_bag", "ember_hw::quantized_embedding"
_PACKING = "int embedding_dim, str codes, str scale_dtype, ScalarType output_dtype"

torch.library.define(
    _BAG,
    "(Tensor rows, Tensor indices, Tensor? offsets, Tensor? per_sample_weights, "
    f"{_PACKING}, str mode, bool include_last_offset, int? padding_idx) -> Tensor",
)
torch.library.define(_EMBEDDING, f"(Tensor rows, Tensor indices, {_PACKING}) -> Tensor")


def _fake_bag(
    rows: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor | None,
    per_sample_weights: torch.Tensor | None,
    embedding_dim: int,
    codes: str,
    scale_dtype: str,
    output_dtype: torch.dtype,
    mode: str,
    include_last_offset: bool,
    padding_idx: int | None,
) -> torch.Tensor:
    bags = indices.shape[0] if offsets is None else offsets.shape[0] - include_last_offset
    return rows.new_empty((bags, embedding_dim), dtype=output_dtype)


def _fake_embedding(
    rows: torch.Tensor,
    indices: torch.Tensor,
    embedding_dim: int,
    codes: str,
    scale_dtype: str,
    output_dtype: torch.dtype,
) -> torch.Tensor:
    return rows.new_empty((*indices.shape, embedding_dim), dtype=output_dtype)


_library: Any = torch.library
_library.register_fake(_BAG, _fake_bag)
_library.register_fake(_EMBEDDING, _fake_embedding)

QUANTIZED_BAG: Any = torch.ops.ember_hw.quantized_embedding_bag.default
QUANTIZED_EMBEDDING: Any = torch.ops.ember_hw.quantized_embedding.default


def table_of(facts: Mapping[str, Any], rows: NDArray[Any]) -> NDArray[Any] | QuantizedTable:
    """Return the table of an operation: what its rows are says the fact `packing`, if it has one.

    Parameters
    ----------
    facts : mapping of str to Any
        Of an embedding bag or an embedding.
    rows : (R, W)
        The value of its role `weight`.
    """
    packing: Any = facts.get("packing")
    return rows if packing is None else QuantizedTable(rows, *packing)
