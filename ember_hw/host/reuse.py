"""How often a trace of reads comes back to what it read before, and how large a cache would see it.

The measure is the stack distance: the bytes of the distinct blocks that were read since a block was
read last, the block itself included. A fully associative cache with LRU replacement holds the block
still if it is at least as large, so one pass over the trace gives the hits of every size of cache.

Ref: Mattson et al., Evaluation techniques for storage hierarchies, IBM Systems Journal 9(2), 1970
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: The smallest cache of a curve; each next one is larger by the square root of 2.
_FIRST_CACHE_BYTES = 1024


@dataclass(frozen=True)
class ReuseCurve:
    """Hits of an LRU cache by its size.

    Attributes
    ----------
    reads : int
        Reads of the trace.
    read_bytes : int
        Their bytes.
    distinct_bytes : int
        Bytes of the distinct blocks: a cache of this size never misses but on a first read.
    cache_bytes : tuple of int
        Sizes of caches, rising; the last holds all that comes back.
    hit_bytes : tuple of int
        Bytes that a cache of each size has when they are read.
    """

    reads: int
    read_bytes: int
    distinct_bytes: int
    cache_bytes: tuple[int, ...]
    hit_bytes: tuple[int, ...]

    @property
    def hit_shares(self) -> tuple[float, ...]:
        """Share of all bytes that a cache of each size has when they are read."""
        return tuple(hit / max(self.read_bytes, 1) for hit in self.hit_bytes)

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes, JSON-ready."""
        lists = {"cache_bytes": list(self.cache_bytes), "hit_bytes": list(self.hit_bytes)}
        return asdict(self) | lists

    @staticmethod
    def from_dict(values: dict[str, Any]) -> ReuseCurve:
        """Return the curve that `to_dict` was called on."""
        return ReuseCurve(
            reads=values["reads"],
            read_bytes=values["read_bytes"],
            distinct_bytes=values["distinct_bytes"],
            cache_bytes=tuple(values["cache_bytes"]),
            hit_bytes=tuple(values["hit_bytes"]),
        )


def reuse_curve(addresses: NDArray[np.uint64], block_bytes: NDArray[np.int64]) -> ReuseCurve:
    """Return the hits of LRU caches of all sizes.

    Parameters
    ----------
    addresses : uint64 (N,)
        Of the blocks read, in order. Blocks of one address are one block.
    block_bytes : int64 (N,)
        Their sizes.

    Examples
    --------
    A block comes back after two others of the same size: caches of three blocks or more have it.

    >>> curve = reuse_curve(np.array([0, 512, 1024, 0], np.uint64), np.full(4, 512))
    >>> curve.cache_bytes, curve.hit_bytes
    ((1024, 1448, 2048), (0, 0, 512))
    """
    distances = stack_distances(addresses, block_bytes)
    is_reread = distances >= 0
    longest = int(distances.max(initial=0))
    caches = [_FIRST_CACHE_BYTES]
    while caches[-1] < longest:
        caches.append(int(_FIRST_CACHE_BYTES * 2 ** (len(caches) / 2)))
    order = np.argsort(distances[is_reread], kind="stable")
    summed = np.concatenate([[0], np.cumsum(block_bytes[is_reread][order])])
    places = np.searchsorted(distances[is_reread][order], caches, side="right")
    total = int(block_bytes.sum())
    return ReuseCurve(
        reads=len(addresses),
        read_bytes=total,
        distinct_bytes=int(block_bytes[~is_reread].sum()),
        cache_bytes=tuple(caches),
        hit_bytes=tuple(int(summed[place]) for place in places),
    )


def stack_distances(
    addresses: NDArray[np.uint64], block_bytes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the bytes of the distinct blocks read since each block was read last.

    Parameters
    ----------
    addresses, block_bytes
        As `reuse_curve` takes them.

    Returns
    -------
    int64 (N,)
        The block's own bytes are counted; -1 where it is read for the first time.

    Notes
    -----
    Let p(i) be the place of the read before of i's block, -1 without one. A read j between p(i) and
    i is the first of its block there if p(j) <= p(i). All reads up to p(i) fulfil that, too, so the
    distance is the bytes of all j < i with p(j) <= p(i), less those up to p(i), plus i's own. The
    sums over earlier reads are taken in log2(N) steps, as a merge sort goes, each one sort of the
    whole array.

    Examples
    --------
    >>> blocks = np.array([7, 8, 8, 7], np.uint64)
    >>> stack_distances(blocks, np.full(4, 64)).tolist()
    [-1, -1, 64, 128]
    """
    before = _places_before(addresses)
    upto = np.concatenate([[0], np.cumsum(block_bytes)])
    distances = _sums_of_earlier(before, block_bytes) - upto[before + 1] + block_bytes
    return np.where(before < 0, -1, distances)


def _places_before(addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the place of the read before of each block, -1 without one."""
    order = np.argsort(addresses, kind="stable")
    before = np.full(len(addresses), -1, np.int64)
    is_same = addresses[order[1:]] == addresses[order[:-1]]
    before[order[1:][is_same]] = order[:-1][is_same]
    return before


def _sums_of_earlier(keys: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for each i, the weights of all j < i with keys[j] <= keys[i]."""
    count = len(keys)
    places = np.arange(count)
    sums = np.zeros(count, np.int64)
    by_key = np.lexsort((places, keys))  # of equal keys the earlier first
    half = 1
    while half < count:
        # Within each pair of blocks of `half`: a read of the second gets those of the first.
        order = by_key[np.argsort(by_key // (2 * half), kind="stable")]
        is_first = (order // half) % 2 == 0
        gathered = np.cumsum(np.where(is_first, weights[order], 0))
        pairs = order // (2 * half)
        starts = np.flatnonzero(np.diff(pairs, prepend=-1))
        base = np.concatenate([[0], gathered])[starts]
        within = gathered - np.repeat(base, np.diff(np.append(starts, count)))
        sums[order[~is_first]] += within[~is_first]
        half *= 2
    return sums
