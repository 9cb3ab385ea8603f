"""EmbeddingBags of recommender models: RM1 to RM3 at three localities, and DLRMv2.

Ref: DeepRecSys, ISCA 2020 (tables, rows, elements, lookups of RM1 to RM3); MLPerf training, DLRMv2
(rows and lookups of its tables). Rows are fewer here, so that all tables fit a small memory; no
memory modelled here holds any row back, so their number doesn't matter to cycles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ember_hw.bench.programs import draw
from ember_hw.bench.programs.tables import tables_in_a_row
from ember_hw.bench.workloads.case import Case, Sizes

#: What the rows of RM1 to RM3 are divided by.
ROWS_DIVISOR = 256
#: Rows of a table of DLRMv2 at most.
MOST_ROWS = 4096
#: Exponents of the laws by which rows are looked up; 0 is uniform.
LOCALITIES = (0.0, 0.7, 1.1)


class Model(NamedTuple):
    """Tables of a model: how many, rows and lookups of a bag of each, elements of a row."""

    tables: int
    rows: int
    dim: int
    lookups: int


MODELS = {
    "RM1": Model(8, 4_000_000, 32, 80),
    "RM2": Model(32, 500_000, 64, 120),
    "RM3": Model(10, 2_000_000, 32, 20),
}
DLRMV2_DIM = 128
DLRMV2_ROWS = (
    40_000_000, 39_060, 17_295, 7_424, 20_265, 3, 7_122, 1_543, 63, 40_000_000, 3_067_956, 405_282,
    10, 2_209, 11_938, 155, 4, 976, 14, 40_000_000, 40_000_000, 40_000_000, 590_152, 12_973, 108,
    36,
)  # fmt: skip
DLRMV2_LOOKUPS = (
    3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1,
)  # fmt: skip


def locality(exponent: float) -> str:
    """Return what results call a locality."""
    return f"zipf {exponent:g}" if exponent else "uniform"


def recommender(
    model: str, exponent: float, *, seed: int, bags: int, tables: int | None = None
) -> Case:
    """Return RM1, RM2 or RM3.

    Parameters
    ----------
    model : str
        Which.
    exponent : float
        Of the Zipf law by which rows are looked up; 0 for uniform.
    seed : int
        Of rows, indices and contents.
    bags : int
        Bags of a table.
    tables : int, optional
        Tables; by default all of them.
    """
    shape = MODELS[model]
    count = tables or shape.tables
    rows = shape.rows // ROWS_DIVISOR
    return bags_of_tables(
        f"{model}/{locality(exponent)}",
        [rows] * count,
        [shape.lookups] * count,
        shape.dim,
        exponent=exponent,
        seed=seed,
        bags=bags,
        published_rows=shape.rows,
    )


def dlrmv2(*, seed: int, bags: int) -> Case:
    """Return DLRMv2, its rows looked up by a Zipf law; parameters as of `recommender`."""
    return bags_of_tables(
        "dlrmv2",
        [min(rows, MOST_ROWS) for rows in DLRMV2_ROWS],
        DLRMV2_LOOKUPS,
        DLRMV2_DIM,
        exponent=LOCALITIES[-1],
        seed=seed,
        bags=bags,
        published_rows=max(DLRMV2_ROWS),
    )


def bags_of_tables(
    name: str,
    rows: Sequence[int],
    lookups: Sequence[int],
    dim: int,
    *,
    exponent: float,
    seed: int,
    bags: int,
    published_rows: int,
) -> Case:
    """Return bags of tables that lie one behind the other.

    Parameters
    ----------
    name : str
        What results call it.
    rows, lookups : sequence of int
        Of each table: its rows, and the lookups of each of its bags.
    dim : int
        Elements of a row.
    exponent, seed, bags : float, int, int
        As of `recommender`.
    published_rows : int
        Rows of the longest table as published, for `params`.
    """
    rng = np.random.default_rng([seed, 40])
    table = rng.standard_normal((sum(rows), dim), np.float32)
    first_rows = np.concatenate([[0], np.cumsum(rows)[:-1]]).astype(np.int32)
    offsets = draw.offsets(np.repeat(lookups, bags))
    indices = np.concatenate(
        [
            draw.indices(rng, count, bags * each, exponent)
            for count, each in zip(rows, lookups, strict=True)
        ]
    )
    groups = bags * len(rows)
    task = tables_in_a_row(first_rows, offsets, indices, table)
    return Case(
        name=name,
        family="DLRM",
        kernel="tables",
        rows=task.rows,
        task=task,
        arrays={"base": first_rows, "off": offsets, "idx": indices, "tab": table},
        outputs={"out": (groups, dim)},
        values={"T": len(rows), "B": bags},
        sizes=Sizes(lookups=len(indices), groups=groups, dim=dim, tables=len(rows)),
        params={
            "tables": len(rows),
            "rows": max(rows),
            "published_rows": published_rows,
            "row_bytes": 4 * dim,
            "bags": bags,
            "lookups": len(indices),
            "zipf_exponent": exponent,
        },
    )
