"""Block-sparse attention in the manner of BigBird, with 1, 2, 4 or 8 embeddings a block."""

from __future__ import annotations

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
        task=task,
        arrays=task.arrays,
        outputs={"oq": (blocks, dim), "ok": (attended, dim), "ov": (attended, dim)},
        values={"N": blocks},
        sizes=Sizes(lookups=attended, groups=blocks, dim=dim),
        params={**task.params, "lookups": attended},
    )
