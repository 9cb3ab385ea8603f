"""Block-sparse attention in the manner of BigBird, with 1, 2, 4 or 8 embeddings a block.

`attention` is its gathers, block by block, after which any attention follows. `scores` and `values`
are the two loops of one attention head row by row, with the products on the execute side: queries
with the keys of gathered blocks, and the weights with their values.
"""

from __future__ import annotations

import numpy as np

from ember_hw.bench.programs.blocks import block_attention
from ember_hw.bench.workloads.case import Case, Sizes

BLOCK_ROWS = (1, 2, 4, 8)


def attention(block_rows: int, *, seed: int, blocks: int, row_bytes: int) -> Case:
    """Return the gathers of one attention head.

    Parameters
    ----------
    block_rows : int
        Queries of a block, and keys and values.
    seed : int
        Of the blocks that each attends to, and of their contents.
    blocks : int
        Blocks of queries, of keys and of values.
    row_bytes : int
        Bytes of one query, key or value.
    """
    task = block_attention(
        seed, row_bytes=row_bytes, block_rows=block_rows, query_rows=block_rows, blocks=blocks
    )
    attended, dim = len(task.arrays["blk"]), block_rows * row_bytes // 4
    return Case(
        name=f"SpAttn/{block_rows} a block",
        family="SpAttn",
        kernel="attention",
        rows=task.rows,
        task=task,
        arrays=task.arrays,
        outputs={"oq": (blocks, dim), "ok": (attended, dim), "ov": (attended, dim)},
        values={"N": blocks},
        sizes=Sizes(lookups=attended, groups=blocks, dim=dim),
        params={**task.params, "lookups": attended},
    )


def scores(block_rows: int, *, seed: int, blocks: int, attended: int, dim: int) -> Case:
    """Return the products of queries and gathered keys.

    Parameters
    ----------
    block_rows : int
        Queries of a block, and keys.
    seed : int
        Of the blocks attended to, and of contents.
    blocks : int
        Blocks of queries and of keys.
    attended : int
        Blocks of keys that each block of queries attends to.
    dim : int
        Elements of a query or key.
    """
    return _one_loop("scores", block_rows, seed, blocks, attended, dim)


def values(block_rows: int, *, seed: int, blocks: int, attended: int, dim: int) -> Case:
    """Return the sums of gathered values, weighted; parameters as of `scores`."""
    return _one_loop("values", block_rows, seed, blocks, attended, dim)


def _one_loop(
    kernel: str, block_rows: int, seed: int, blocks: int, attended: int, dim: int
) -> Case:
    rng = np.random.default_rng([seed, 44])
    gathered = rng.integers(0, blocks, (blocks, attended)).astype(np.int32)
    count, columns = blocks * block_rows, attended * block_rows
    table = rng.standard_normal((count, dim), np.float32)
    # The execute side reads the queries, or the weights, itself.
    near = rng.standard_normal((count, dim if kernel == "scores" else columns), np.float32)
    rows = table.reshape(blocks, block_rows, dim)[gathered]
    is_scores = kernel == "scores"
    return Case(
        name=f"SpAttn {kernel}/{block_rows} a block",
        family="SpAttn",
        kernel=kernel,
        rows=rows.view(np.uint8).reshape(-1),
        arrays={"near": near, "tab": table, "blk": gathered},
        outputs={"out": (count, columns if is_scores else dim)},
        values={"NB": blocks, "NS": attended},
        sizes=Sizes(
            lookups=gathered.size * block_rows, groups=gathered.size, dim=dim, tables=blocks
        ),
        opt_levels=(2, 3),
        constants={"BLOCK_ROWS": block_rows},
        params={
            "block_rows": block_rows,
            "blocks": blocks,
            "attended": attended,
            "row_bytes": 4 * dim,
            "lookups": gathered.size * block_rows,
        },
    )
