# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# Not all types of torch are known.
"""Nested tensors as values and offsets."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["is_nested", "nested_like", "parts_of"]

Tensor = torch.Tensor


def is_nested(value: Any) -> bool:
    """Whether a value is a nested tensor, of either layout."""
    return isinstance(value, torch.Tensor) and value.is_nested


def parts_of(
    nested: Tensor, per_sample_weights: Any, name: str
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the parts of a nested tensor, one behind the other.

    Parameters
    ----------
    nested : nested tensor of B vectors
        Indices.
    per_sample_weights : nested tensor of the same lengths, or tensor (N,), optional
        A weight of each of them.
    name : str
        The table, for messages.

    Returns
    -------
    values : (N,)
    offsets : int64 (B + 1,)
    per_sample_weights : (N,) or None

    Raises
    ------
    ValueError
        A part isn't a vector, or the weights have other lengths.
    """
    values, offsets = _flat(nested, "indices", name)
    if not is_nested(per_sample_weights):
        return values, offsets, per_sample_weights
    weights, ends = _flat(per_sample_weights, "per_sample_weights", name)
    if not torch.equal(ends, offsets):
        raise ValueError(
            f"per_sample_weights must have parts of the lengths of indices, "
            f"{offsets.diff().tolist()}, not {ends.diff().tolist()} (table {name!r})"
        )
    return values, offsets, weights


def _flat(nested: Tensor, argument: str, name: str) -> tuple[Tensor, Tensor]:
    if nested.size(0) and nested.dim() != 2:
        raise ValueError(
            f"{argument} must be a nested tensor of vectors, not of parts with "
            f"{nested.dim() - 1} dimensions (table {name!r})"
        )
    parts = nested.unbind()
    lengths = torch.tensor([0, *(len(part) for part in parts)], dtype=torch.int64)
    values = torch.cat(parts) if parts else torch.empty(0, dtype=nested.dtype)
    return values, lengths.cumsum(0)


def nested_like(nested: Tensor, rows: Tensor, offsets: Tensor) -> Tensor:
    """Return rows, one for each value of a nested tensor, as a nested tensor of its parts."""
    if nested.layout is torch.jagged:
        jagged: Any = nested
        return torch.nested.nested_tensor_from_jagged(rows, offsets=jagged.offsets())
    return torch.nested.as_nested_tensor(list(rows.split(offsets.diff().tolist())))
