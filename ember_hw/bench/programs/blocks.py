r"""Block-sparse attention as a task.

Limit, in useful bytes over cycles x bus bytes W (Ref: `Task.limit`). With Q bytes of a block of
queries, R of a block of keys or values, :math:`P(x) = W \lceil x / W \rceil`, and L blocks that a
block of queries attends to in the mean:

.. math:: U = \frac{Q + 2 L R}{P(Q) + 2 L P(R) + 4 L + 4}
"""

from __future__ import annotations

import numpy as np

from ember_hw.bench.programs import draw
from ember_hw.bench.programs.expected import BEGIN, END, ITERATE, Recorder
from ember_hw.bench.programs.task import Task, program_text

_EDGE_BLOCKS = 1


def block_attention(
    seed: int = 1,
    *,
    row_bytes: int = 128,
    block_rows: int = 4,
    query_rows: int = 4,
    blocks: int = 128,
) -> Task:
    """Return block-sparse attention in the manner of BigBird.

    A block of queries attends to the first blocks, those next to it, and some at random.

    Parameters
    ----------
    seed : int
        Of the inputs.
    row_bytes : int
        Bytes of a row of queries, keys or values, a multiple of 4.
    block_rows : int
        Rows of a block of keys or values, 1, 2, 4, 8, ..
    query_rows : int
        Rows of a block of queries.
    blocks : int
        Blocks of each.
    """
    rng = np.random.default_rng([seed, 30])
    queries = draw.table(rng, query_rows * row_bytes, blocks)
    keys, values = (draw.table(rng, block_rows * row_bytes, blocks) for _ in range(2))
    lists: list[list[int]] = []
    for block in range(blocks):
        near = {0, 1, *range(block - _EDGE_BLOCKS, block + _EDGE_BLOCKS + 1)}
        near |= {int(other) for other in rng.integers(0, blocks, rng.integers(0, 6))}
        lists.append(sorted(other for other in near if 0 <= other < blocks))
    pointers = draw.offsets(np.array([len(some) for some in lists]))
    attended = np.concatenate(lists).astype(np.int32)
    recorder = Recorder()
    for block, some in enumerate(lists):
        for place, other in enumerate(some):
            told, rows = [(ITERATE, 1)], [keys[other], values[other]]
            if place == 0:
                told.append((BEGIN, 1))
                rows.insert(0, queries[block])
            if place == len(some) - 1:
                told.append((END, 1))
            recorder.token(*told, rows=rows)
    recorder.end()
    return Task(
        name="block_attention",
        text=program_text("block_attention"),
        needs={"traversal_units": 2, "row_entries": 3},
        arrays={"ptr": pointers, "blk": attended, "q": queries, "k": keys, "v": values},
        values={"N": blocks, "Q": query_rows * row_bytes // 4, "D": block_rows * row_bytes // 4},
        expected=recorder.delivery(),
        index_bytes=pointers.nbytes + attended.nbytes,
        params={
            "row_bytes": row_bytes,
            "block_rows": block_rows,
            "query_rows": query_rows,
            "blocks": blocks,
            "attended": len(attended),
            "index_bytes": 4,
        },
    )
