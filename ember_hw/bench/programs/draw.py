"""Seeded inputs of tasks: tables, indices, lengths of bags, degrees of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Share of nodes without a neighbour, and of bags without a lookup, where lengths are mixed.
EMPTY_NODES = 0.3
EMPTY_BAGS = 0.25

_TABLE_BYTES = 1 << 19
_ZIPF = 1.8


def table(rng: np.random.Generator, row_bytes: int, rows: int | None = None) -> NDArray[np.float32]:
    """Return a table of random bytes: (rows, row_bytes / 4), about 512 KiB unless told."""
    count = max(64, _TABLE_BYTES // row_bytes) if rows is None else rows
    return rng.integers(0, 1 << 32, (count, row_bytes // 4), np.uint32).view(np.float32)


def indices(
    rng: np.random.Generator, rows: int, lookups: int, zipf_exponent: float = 0.0
) -> NDArray[np.int32]:
    """Return rows to look up: all alike often, or the k-th most often as 1 / k ** exponent.

    Which rows those are is the same for all draws from as many rows, and has nothing to do with
    where they lie.
    """
    if not zipf_exponent:
        return rng.integers(0, rows, lookups).astype(np.int32)
    shares = np.arange(1, rows + 1) ** -zipf_exponent
    order = np.random.default_rng(rows).permutation(rows)
    return order[rng.choice(rows, lookups, p=shares / shares.sum())].astype(np.int32)


def offsets(lengths: NDArray[Any], dtype: str = "i4") -> NDArray[Any]:
    """Return where each of some pieces begins and the last ends: (N + 1,)."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(dtype)


def bag_lengths(rng: np.random.Generator, lookups: int, bag: int | None) -> NDArray[np.int64]:
    """Return lengths of bags with about so many lookups in all.

    Bags have `bag` lookups; None: a quarter of them is empty, the others have 1 to 16.
    """
    if bag is not None:
        return np.full(-(-lookups // bag), bag)
    return _with_empty(rng, rng.integers(1, 17, round(lookups / 8.5)), EMPTY_BAGS)


def degrees(rng: np.random.Generator, edges: int, longest: int = 512) -> NDArray[np.int64]:
    """Return degrees of nodes with about so many edges in all: a power law, 30 % are 0."""
    some = np.minimum(rng.zipf(_ZIPF, edges), longest)
    count = int(np.searchsorted(np.cumsum(some), edges)) + 1
    return _with_empty(rng, some[:count], EMPTY_NODES)


def _with_empty(
    rng: np.random.Generator, lengths: NDArray[np.int64], share: float
) -> NDArray[np.int64]:
    """Return the lengths in random order with a share of zeros between them."""
    empty = round(len(lengths) * share / (1 - share))
    return rng.permutation(np.concatenate([lengths, np.zeros(empty, np.int64)]))
