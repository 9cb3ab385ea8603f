"""The one table of lookups that every tier runs: IR levels, interpreter, RTL, cocotb, boards.

Each `Case` is a call of `EmbeddingBag` with its table; `expected` is the one answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.host.reference import exact
from ember_hw.host.request import LookupRequest, normalise_request


@dataclass(frozen=True, eq=False)
class Case:
    """One lookup.

    Attributes
    ----------
    name : str
        Unique; the id of the parametrised test.
    num_embeddings, embedding_dim : int
        Shape of the table.
    indices : int32 or int64 (N,) or (B, L)
        As the user passes them.
    offsets : int32 or int64 (B,) or (B + 1,), or None
        None with 2-D `indices`.
    include_last_offset : bool
        Whether `offsets` ends with the end of the last bag.
    seed : int
        Makes the table.
    special_values : bool
        Rows 1, 2 and 3 hold a NaN, +inf and -inf.
    poison_unread : bool
        Each row that no bag reads is NaN throughout.
    large : bool
        Over 200 lookups or 1,024 columns: left out where a step is slow.
    """

    name: str
    num_embeddings: int
    embedding_dim: int
    indices: NDArray[Any]
    offsets: NDArray[Any] | None = None
    include_last_offset: bool = False
    seed: int = 0
    special_values: bool = False
    poison_unread: bool = False
    large: bool = False

    def table(self) -> NDArray[np.float32]:
        """Build the table: distinct rows of mixed magnitude, so that any reordering shows.

        Of eight rows one is huge, one tiny and one denormal; row 6 has a -0.0 in each other
        column.

        Returns
        -------
        float32 (num_embeddings, embedding_dim)
            A fresh array, the same for each call.
        """
        random = np.random.default_rng(self.seed)
        shape = (self.num_embeddings, self.embedding_dim)
        table = random.standard_normal(shape, dtype=np.float32)
        table[3::8] *= np.float32(2.0**100)
        table[4::8] *= np.float32(2.0**-100)
        table[5::8] *= np.float32(2.0**-130)
        table[6:7, ::2] = -0.0
        if self.special_values:
            table[1, 0] = np.nan
            table[2] = np.inf
            table[3] = -np.inf
        if self.poison_unread:
            request = self.request()
            used = request.indices[: request.offsets[-1]]
            table[np.setdiff1d(np.arange(self.num_embeddings), used)] = np.nan
        return table

    def request(self) -> LookupRequest:
        """Check the arguments and bring them into row-pointer form."""
        return normalise_request(
            self.indices,
            self.offsets,
            num_embeddings=self.num_embeddings,
            include_last_offset=self.include_last_offset,
        )

    def expected(self) -> NDArray[np.float32]:
        """Compute the pooled rows, float32 (B, embedding_dim), that every level gives bit for bit.

        NaNs compare as one value: see `ember_hw.host.reference.bit_equal`.
        """
        return exact(self.table(), self.request())


def _case(
    name: str,
    lengths: Sequence[int],
    *,
    num_embeddings: int = 50,
    embedding_dim: int = 8,
    index_dtype: type[np.signedinteger[Any]] = np.int64,
    offset_dtype: type[np.signedinteger[Any]] = np.int64,
    include_last_offset: bool = False,
    trailing: int = 0,
    indices: Sequence[int] | None = None,
    **options: Any,
) -> Case:
    """Make a 1-D case of bags of the given lengths, of seeded random indices unless given."""
    total = sum(lengths)
    seed = len(CASES)
    if indices is None:
        drawn = np.random.default_rng(1000 + seed).integers(0, num_embeddings, total + trailing)
        values = drawn.astype(index_dtype)
    else:
        values = np.array(indices, dtype=index_dtype)
    ends = np.cumsum([0, *lengths])
    offsets = ends if include_last_offset else ends[:-1]
    case = Case(
        name,
        num_embeddings,
        embedding_dim,
        values,
        offsets.astype(offset_dtype),
        include_last_offset=include_last_offset,
        seed=seed,
        **options,
    )
    CASES.append(case)
    return case


def _case_2d(
    name: str,
    shape: tuple[int, int],
    *,
    index_dtype: type[np.signedinteger[Any]] = np.int64,
    include_last_offset: bool = False,
) -> Case:
    """Make a 2-D case of seeded random indices."""
    seed = len(CASES)
    values = np.random.default_rng(1000 + seed).integers(0, 50, shape).astype(index_dtype)
    case = Case(name, 50, 8, values, include_last_offset=include_last_offset, seed=seed)
    CASES.append(case)
    return case


CASES: list[Case] = []

# Where the empty bags are
_case("bags", (3, 1, 4, 2))
_case("empty_first", (0, 3, 2))
_case("empty_middle", (3, 0, 2))
_case("empty_last", (3, 2, 0))
_case("empty_everywhere", (0, 0, 3, 0, 0, 0, 1, 0, 0))
_case("empty_all", (0, 0, 0, 0))
_case("no_bag", ())
_case("no_bag_include_last", (), include_last_offset=True)
# How long they are
_case("one_bag", (5,))
_case("one_empty_bag", (0,))
_case("one_lookup", (1,))
_case("length_1", (1,) * 9)
_case("length_2", (2,) * 6)
_case("length_17", (17, 17, 17))
_case("lengths_mixed", (1, 17, 0, 2, 1, 0, 9, 16, 15))
# Which rows
_case("repeated", (4, 3), indices=(7, 7, 7, 7, 2, 7, 2))
_case("neighbours", (8,), indices=range(8))
_case("last_row", (1, 2, 1), indices=(49, 0, 49, 49))
_case("one_row_table", (2, 0, 1), num_embeddings=1)
_case("zero_row_table", (0, 0), num_embeddings=0)
_case("zero_row_table_no_bag", (), num_embeddings=0)
_case("minus_zero", (1, 2), indices=(6, 6, 6))
_case("special_values", (1, 2, 1, 2, 2), indices=(1, 2, 3, 0, 2, 2, 4, 5), special_values=True)
_case("poisoned", (3, 0, 2), indices=(10, 30, 10, 49, 0), poison_unread=True)
# How wide they are, around the vector and the bus
for _dim in (1, 3, 4, 15, 16, 17, 20, 64):
    _case(f"dim_{_dim}", (2, 0, 3, 1), embedding_dim=_dim)
# How they are passed
_case("int32", (3, 0, 2), index_dtype=np.int32, offset_dtype=np.int32)
_case("int32_indices", (3, 0, 2), index_dtype=np.int32)
_case("int32_offsets", (3, 0, 2), offset_dtype=np.int32)
_case("include_last", (3, 0, 2), include_last_offset=True)
_case("include_last_int32", (0, 3, 0), include_last_offset=True, index_dtype=np.int32)
_case("trailing", (3, 0, 2), include_last_offset=True, trailing=4)
_case("trailing_only", (0, 0), include_last_offset=True, trailing=3)
_case("trailing_no_bag", (), include_last_offset=True, trailing=3)
_case(
    "trailing_poisoned",
    (2, 1),
    include_last_offset=True,
    indices=(5, 6, 7, 8, 9),
    poison_unread=True,
)
_case_2d("2d", (4, 3))
_case_2d("2d_int32", (3, 5), index_dtype=np.int32)
_case_2d("2d_include_last", (3, 2), include_last_offset=True)
_case_2d("2d_one_column", (5, 1))
_case_2d("2d_no_rows", (0, 3))
_case_2d("2d_no_columns", (3, 0))
_case_2d("2d_nothing", (0, 0))
# Large
_case("dim_1100", (2, 0, 3), embedding_dim=1100, large=True)
_case("long_bag", (1500, 0, 1), num_embeddings=300, embedding_dim=16, large=True)
_case(
    "many_bags",
    tuple(int(n) for n in np.random.default_rng(5).poisson(3.0, 700)),
    num_embeddings=1000,
    embedding_dim=16,
    large=True,
)

SMALL_CASES = [case for case in CASES if not case.large]
