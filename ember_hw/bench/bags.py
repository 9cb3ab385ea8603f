"""EmbeddingBags of every shape as workloads, and the limits of the port they run through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ember_hw.bench.workload import Workload

#: `Bags.bag` of bags of mixed lengths.
MIXED = "mixed"
_EMPTY_SHARE = 0.25
_LONGEST_MIXED = 16
_TABLE_BYTES = 1 << 20

_TEXT = """
// A row a lookup, with its weight; the execute side is told of each lookup and each end of a bag.
au.program @embedding_bag target "any" {{
  au.arg a0 "off" : memref<?x{index}>
  au.arg a1 "idx" : memref<?x{index}>
  au.arg a2 "tab" : memref<?x?xf32>
  au.arg a3 "tab.pitch" : index
  au.arg a4 "B" : index
  au.arg a5 "D" : index
  {weight_argument}
  au.tu t0 = 0 to a4 step 1
  au.mem s0 on t0 = a0[t0] : {index}
  au.next s1 on t0 = s0
  au.tu t1 under t0 = s0 to s1 step 1
  au.mem s2 on t1 = a1[t1] : {index}
  {weight_stream}
  au.row r0 on t1 = a2[s2 * a3] len a5 : f32
  au.push t1 ite id 1 (r0{weight})
  au.push t1 end id 2 ()
}}
"""


@dataclass(frozen=True, kw_only=True)
class Bags:
    """Shape of one EmbeddingBag's lookups.

    Attributes
    ----------
    row_bytes : int
        Bytes of an embedding row, a multiple of 4.
    bag : int or "mixed"
        Lookups of each bag. Mixed: a quarter of the bags is empty, the others have 1 to 16, all
        lengths alike often.
    index_bytes : int
        Bytes of an index and of an offset, 4 or 8.
    has_weights : bool
        Whether each lookup has a weight of 4 bytes.
    lookups : int
        About how many.
    """

    row_bytes: int
    bag: int | str
    index_bytes: int = 4
    has_weights: bool = False
    lookups: int = 4000

    @property
    def name(self) -> str:
        """What results call it."""
        weights = ", weights" if self.has_weights else ""
        return f"{self.row_bytes} B/bag {self.bag}/int{8 * self.index_bytes}{weights}"

    def workload(self, seed: int) -> Workload:
        """Return the program and seeded arrays."""
        rng = np.random.default_rng([seed, self.row_bytes, self.index_bytes, self.has_weights])
        lengths = self._lengths(rng)
        dtype = np.dtype(f"i{self.index_bytes}")
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(dtype)
        lookups, dim = int(offsets[-1]), self.row_bytes // 4
        rows = _TABLE_BYTES // self.row_bytes
        table = rng.integers(0, 1 << 32, (rows, dim), np.uint32).view(np.float32)
        indices = rng.integers(0, rows, lookups).astype(dtype)
        arrays: dict[str, Any] = {"off": offsets, "idx": indices, "tab": table}
        if self.has_weights:
            arrays["weight"] = rng.standard_normal(lookups, np.float32)
        text = _TEXT.format(
            index=f"i{8 * self.index_bytes}",
            weight_argument='au.arg a6 "weight" : memref<?xf32>' * self.has_weights,
            weight_stream="au.mem s3 on t1 = a6[t1] : f32" * self.has_weights,
            weight=", s3" * self.has_weights,
        )
        weight_bytes = 4 * self.has_weights
        return Workload(
            name=self.name,
            text=text,
            arrays=arrays,
            values={"B": len(lengths), "D": dim},
            index_bytes=lookups * (self.index_bytes + weight_bytes) + offsets.nbytes,
            rows=table[indices].view(np.uint8),
            params={
                "row_bytes": self.row_bytes,
                "index_bytes": self.index_bytes,
                "weight_bytes": weight_bytes,
                "offset_bytes": self.index_bytes,
                "bag": lookups / len(lengths) if self.bag == MIXED else self.bag,
                "bag_lengths": self.bag,
                "lookups": lookups,
            },
        )

    def _lengths(self, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.int64]]:
        if not isinstance(self.bag, str):
            return np.full(-(-self.lookups // self.bag), self.bag)
        mean = (1 - _EMPTY_SHARE) * (1 + _LONGEST_MIXED) / 2
        bags = round(self.lookups / mean)
        lengths = rng.integers(1, _LONGEST_MIXED + 1, bags)
        lengths[rng.permutation(bags)[: round(_EMPTY_SHARE * bags)]] = 0
        return lengths


def port_limit(
    *,
    row_bytes: int,
    bus_bytes: int,
    index_bytes: int,
    weight_bytes: int,
    offset_bytes: int,
    bag: float,
    index_port_bytes: int = 0,
) -> float:
    r"""Return the limit of a port that carries rows and indices, or rows alone.

    .. math:: U = R / (W \lceil R / W \rceil + s_{index} + s_{weight} + s_{offset} / bag)

    Where indices have a port of their own, of P bytes, the slower of the two ports is the limit:

    .. math:: U = \min(R / (W \lceil R / W \rceil),
              P / (s_{index} + s_{weight} + s_{offset} / bag) \cdot R / W)

    Parameters
    ----------
    row_bytes, bus_bytes : int
        R and W.
    index_bytes, weight_bytes, offset_bytes : int
        Bytes of an element of each; 0 for weights that aren't there.
    bag : float
        Lookups of a bag, in the mean.
    index_port_bytes : int
        P; 0 where indices share the port of the rows.

    Returns
    -------
    float
        Useful bytes of rows over cycles x W.

    Examples
    --------
    >>> port_limit(row_bytes=64, bus_bytes=64, index_bytes=8, weight_bytes=4, offset_bytes=4, bag=1)
    0.8
    """
    moved_bytes = bus_bytes * -(-row_bytes // bus_bytes)
    lookup_bytes = index_bytes + weight_bytes + offset_bytes / bag
    if index_port_bytes == 0:
        return row_bytes / (moved_bytes + lookup_bytes)
    return min(row_bytes / moved_bytes, index_port_bytes / lookup_bytes * row_bytes / bus_bytes)
