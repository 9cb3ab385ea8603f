# pyright: reportUnknownMemberType=false
# Not all types of torch are known.
"""Features of a batch by name: from what a caller passes to indices and offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch

from ember_hw.host.arrays import integer_array, row_pointers

__all__ = ["Feature", "KeyedRows", "read_features"]

Tensor = torch.Tensor


@dataclass(frozen=True, eq=False)
class Feature:
    """The bags of one feature.

    Attributes
    ----------
    indices : tensor
        As an embedding bag takes them.
    offsets : tensor, optional
        Likewise.
    per_sample_weights : tensor, optional
        Likewise.
    ends_with_last : bool, optional
        Whether `offsets` ends with the end of the last bag; None if the table says so.
    """

    indices: Any
    offsets: Any = None
    per_sample_weights: Any = None
    ends_with_last: bool | None = None


class KeyedRows:
    """Pooled rows by name, as TorchRec's `KeyedTensor` has them.

    Parameters
    ----------
    rows : mapping of str to float32 (B, D)
        In the order of the tables. D may differ.
    """

    def __init__(self, rows: Mapping[str, Tensor]) -> None:
        self._rows = dict(rows)

    def keys(self) -> list[str]:
        """Return the names."""
        return list(self._rows)

    def values(self) -> Tensor:
        """Return all rows beside each other, float32 (B, sum of D)."""
        return torch.cat(list(self._rows.values()), 1)

    def length_per_key(self) -> list[int]:
        """Return D of each name."""
        return [rows.shape[1] for rows in self._rows.values()]

    def offset_per_key(self) -> list[int]:
        """Return the column of `values` at which each name begins, and the end of the last."""
        offsets = [0]
        for length in self.length_per_key():
            offsets.append(offsets[-1] + length)
        return offsets

    def to_dict(self) -> dict[str, Tensor]:
        """Return the rows of each name."""
        return dict(self._rows)

    def __getitem__(self, key: str) -> Tensor:
        return self._rows[key]


def read_features(features: Any, names: Iterable[str], *, is_weighted: bool) -> dict[str, Feature]:
    """Read the features that are needed.

    Parameters
    ----------
    features : mapping or KeyedJaggedTensor
        By name (indices, offsets), (indices, offsets, per_sample_weights), 2-D indices or a nested
        tensor; or what has TorchRec's methods `keys`, `values`, `offsets`, `stride` and
        `weights_or_none`.
    names : iterable of str
        What is needed.
    is_weighted : bool
        Whether lookups have weights.

    Raises
    ------
    TypeError
        `features` or one of them is something else.
    ValueError
        One is missing, or has no weights where they are needed, or some where they aren't; or the
        offsets of a KeyedJaggedTensor break a rule.
    """
    if isinstance(features, Mapping):
        found = _from_mapping(cast("Mapping[str, Any]", features))
    elif all(
        callable(getattr(features, method, None))
        for method in ("keys", "values", "offsets", "stride", "weights_or_none")
    ):
        found = _from_jagged(features, is_weighted=is_weighted)
    else:
        raise TypeError(
            f"features must be a mapping or a KeyedJaggedTensor, not {type(features).__name__}"
        )
    for name in names:
        if name not in found:
            raise ValueError(
                f"features must hold {name!r}, not only {', '.join(found) or 'nothing'}"
            )
        has_weights = found[name].per_sample_weights is not None
        if has_weights != is_weighted:
            rule = "must have" if is_weighted else "must not have"
            raise ValueError(
                f"feature {name!r} {rule} weights of lookups in a collection with "
                f"is_weighted={is_weighted}"
            )
    return found


def _from_mapping(features: Mapping[str, Any]) -> dict[str, Feature]:
    found: dict[str, Feature] = {}
    for name, value in features.items():
        if isinstance(value, torch.Tensor):
            found[name] = Feature(value)
        elif isinstance(value, tuple) and len(cast("tuple[Any, ...]", value)) in (2, 3):
            found[name] = Feature(*cast("tuple[Any, ...]", value))
        else:
            raise TypeError(
                f"feature {name!r} must be a tensor, (indices, offsets) or (indices, offsets, "
                f"per_sample_weights), not {_kind(value)}"
            )
    return found


def _kind(value: Any) -> str:
    if isinstance(value, tuple):
        return f"a tuple of {len(cast('tuple[Any, ...]', value))}"
    return type(value).__name__


def _from_jagged(jagged: Any, *, is_weighted: bool) -> dict[str, Feature]:
    """Cut a KeyedJaggedTensor: `stride` bags of its first key, then of the next."""
    keys, values, offsets = list(jagged.keys()), jagged.values(), jagged.offsets()
    bags = int(jagged.stride())
    name = "KeyedJaggedTensor"
    pointers = row_pointers(
        "offsets",
        integer_array("offsets", offsets, name),
        len(values),
        name,
        items="values",
        ends_with_last=True,
    )
    if pointers.size != len(keys) * bags + 1:
        raise ValueError(
            f"offsets must have {len(keys)} x {bags} + 1 entries for {len(keys)} keys of stride "
            f"{bags}, not {pointers.size}"
        )
    weights = jagged.weights_or_none() if is_weighted else None
    found: dict[str, Feature] = {}
    for number, key in enumerate(keys):
        own = pointers[number * bags : (number + 1) * bags + 1]
        part = slice(int(own[0]), int(own[-1]))
        found[key] = Feature(
            values[part],
            torch.from_numpy(own - own[0]),
            None if weights is None else weights[part],
            ends_with_last=True,
        )
    return found
