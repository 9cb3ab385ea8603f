r"""EmbeddingBags and plain gathers as tasks.

Limit, in useful bytes over cycles x bus bytes W (Ref: `Task.limit`). Of a row of R bytes, with s
bytes an index, weight and offset, and L lookups a bag:

.. math:: U = \frac{R}{W \lceil R / W \rceil + s_{index} + s_{weight} + s_{offset} / L}

A plain gather has no offsets: :math:`R / (W \lceil R / W \rceil + s_{index})`. Where the input
queue brings the indices, the memory port carries rows alone: :math:`R / (W \lceil R / W \rceil)`.
Requests begin at a line of their own, so their s are those of whole lines: for L lookups in B bags
:math:`64 \lceil 4 L / 64 \rceil + 64 \lceil 4 (B + 1) / 64 \rceil` bytes a request.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.bench.programs import draw
from ember_hw.bench.programs.expected import END, ITERATE, Recorder
from ember_hw.bench.programs.task import IndexType, Task, program_text
from ember_hw.config import LINE_BYTES

_TWO_LEVELS = {"traversal_units": 2}
_DTYPES = {"i32": "i4", "i64": "i8"}


def embedding_bag(
    seed: int = 1,
    *,
    row_bytes: int = 128,
    bag: int | None = None,
    lookups: int = 8000,
    has_weights: bool = False,
    index_type: IndexType = "i32",
) -> Task:
    """Return an EmbeddingBag: sum, mean and max alike, or the weighted sum.

    Parameters
    ----------
    seed : int
        Of the inputs.
    row_bytes : int
        Bytes of a row, a multiple of 4.
    bag : int, optional
        Lookups of each bag; None: mixed, with 25 % empty bags.
    lookups : int
        About how many in all.
    has_weights : bool
        Whether each lookup has a weight.
    index_type : str
        Of indices and offsets.
    """
    rng = np.random.default_rng([seed, 1])
    lengths = draw.bag_lengths(rng, lookups, bag)
    offsets = draw.offsets(lengths, _DTYPES[index_type])
    table = draw.table(rng, row_bytes)
    indices = rng.integers(0, len(table), int(offsets[-1])).astype(offsets.dtype)
    weights = rng.standard_normal(len(indices), np.float32)

    recorder = Recorder()
    for number in range(len(lengths)):
        _bag(recorder, offsets[number : number + 2], indices, table, weights, has_weights)
    recorder.end()

    arrays: dict[str, Any] = {"off": offsets, "idx": indices, "tab": table}
    if has_weights:
        arrays["weight"] = weights
    weight_bytes = weights.nbytes if has_weights else 0
    program = "embedding_bag_weighted" if has_weights else "embedding_bag"
    return Task(
        name=program,
        text=program_text(program, index_type),
        needs=_TWO_LEVELS,
        arrays=arrays,
        values={"B": len(lengths), "D": row_bytes // 4},
        expected=recorder.delivery(),
        index_bytes=offsets.nbytes + indices.nbytes + weight_bytes,
        params={
            "row_bytes": row_bytes,
            "index_bytes": indices.itemsize,
            "offset_bytes": offsets.itemsize,
            "weight_bytes": 4 if has_weights else 0,
            "bag": len(indices) / len(lengths),
        },
    )


def embedding_bag_weighted(seed: int = 1, **shape: Any) -> Task:
    """Return an EmbeddingBag with a weight a lookup; see `embedding_bag`."""
    return embedding_bag(seed, has_weights=True, **shape)


def embedding_bag_requests(
    seed: int = 1,
    *,
    row_bytes: int = 256,
    requests: int = 64,
    bags: int = 8,
    lookups: int = 64,
    zipf_exponent: float = 0.0,
    rows: int | None = None,
) -> Task:
    """Return EmbeddingBags of many requests, each of `lookups` lookups in `bags` bags.

    With a `zipf_exponent` some of the table's rows are looked up more often than others; `rows` is
    how many it has, see `draw.table`.
    """
    drawn = _Requests(seed, 2, row_bytes, requests, bags, lookups, zipf_exponent, rows)
    offset_lines = _room(bags + 1)
    index_lines = _room(lookups)
    off = np.zeros(requests * offset_lines, np.int32)
    idx = np.zeros(requests * index_lines, np.int32)
    for number in range(requests):
        off[number * offset_lines :][: bags + 1] = drawn.offsets[number]
        idx[number * index_lines :][:lookups] = drawn.indices[number]
    return Task(
        name="embedding_bag_requests",
        text=program_text("embedding_bag_requests"),
        needs=_TWO_LEVELS,
        arrays={"off": off, "idx": idx, "tab": drawn.table},
        values={"D": row_bytes // 4},
        requests=[
            {"B": bags, "off.first": number * offset_lines, "idx.first": number * index_lines}
            for number in range(requests)
        ],
        expected=drawn.recorder.delivery(),
        index_bytes=off.nbytes + idx.nbytes,
        params=drawn.params(row_bytes, bags, lookups),
    )


def embedding_bag_queue(
    seed: int = 1,
    *,
    row_bytes: int = 256,
    requests: int = 64,
    bags: int = 8,
    lookups: int = 64,
    rows: int | None = None,
) -> Task:
    """Return EmbeddingBags of many requests whose indices and offsets the input queue brings."""
    drawn = _Requests(seed, 3, row_bytes, requests, bags, lookups, rows=rows)
    return Task(
        name="embedding_bag_queue",
        text=program_text("embedding_bag_queue"),
        needs={**_TWO_LEVELS, "input_queue": 1},
        arrays={"tab": drawn.table},
        values={"D": row_bytes // 4},
        requests=[{"B": bags}] * requests,
        queue={(0, 0): drawn.offsets, (1, 0): drawn.indices},
        queue_symbols={"off": bags + 1, "idx": lookups},
        expected=drawn.recorder.delivery(),
        index_bytes=0,
        params=drawn.params(row_bytes, bags, lookups),
    )


def gather(
    seed: int = 1, *, row_bytes: int = 128, lookups: int = 8000, index_type: IndexType = "i32"
) -> Task:
    """Return an Embedding: a row an index."""
    rng = np.random.default_rng([seed, 4])
    table = draw.table(rng, row_bytes)
    indices = rng.integers(0, len(table), lookups).astype(_DTYPES[index_type])
    recorder = Recorder()
    for index in indices:
        recorder.token((ITERATE, 0), rows=[table[index]])
    recorder.end()
    return Task(
        name="gather",
        text=program_text("gather", index_type),
        arrays={"idx": indices, "tab": table},
        values={"N": lookups, "D": row_bytes // 4},
        expected=recorder.delivery(),
        index_bytes=indices.nbytes,
        params={"row_bytes": row_bytes, "index_bytes": indices.itemsize},
    )


class _Requests:
    """Inputs of some requests, and what comes of them one after the other."""

    def __init__(
        self,
        seed: int,
        stream: int,
        row_bytes: int,
        requests: int,
        bags: int,
        lookups: int,
        zipf_exponent: float = 0.0,
        rows: int | None = None,
    ) -> None:
        rng = np.random.default_rng([seed, stream])
        self.table = draw.table(rng, row_bytes, rows)
        self.recorder = Recorder()
        self.offsets: list[NDArray[np.int32]] = []
        self.indices: list[NDArray[np.int32]] = []
        nothing = np.zeros(lookups, np.float32)
        for _ in range(requests):
            cuts = np.sort(rng.integers(0, lookups + 1, bags - 1))
            offsets = np.concatenate([[0], cuts, [lookups]]).astype(np.int32)
            indices = draw.indices(rng, len(self.table), lookups, zipf_exponent)
            self.offsets.append(offsets)
            self.indices.append(indices)
            for bag in range(bags):
                bounds = offsets[bag : bag + 2]
                _bag(self.recorder, bounds, indices, self.table, nothing, False)
            self.recorder.end()

    def params(self, row_bytes: int, bags: int, lookups: int) -> dict[str, Any]:
        """Return what a row of results says."""
        count = len(self.offsets)
        return {"row_bytes": row_bytes, "bags": bags, "lookups": lookups, "requests": count}


def _bag(
    recorder: Recorder,
    bounds: NDArray[Any],
    indices: NDArray[Any],
    table: NDArray[np.float32],
    weights: NDArray[np.float32],
    has_weights: bool,
) -> None:
    """Take down one bag: a token a lookup, the last with its end; a token where it is empty."""
    first, end = (int(bound) for bound in bounds)
    for place in range(first, end):
        told = [(ITERATE, 1)] + ([(END, 1)] if place == end - 1 else [])
        scalars = {0: weights[place]} if has_weights else None
        recorder.token(*told, scalars=scalars, rows=[table[indices[place]]])
    if first == end:
        recorder.token((END, 1))


def _room(elements: int) -> int:
    """Return the elements of 4 bytes in whole lines that hold so many."""
    line = LINE_BYTES // 4
    return -(-elements // line) * line
