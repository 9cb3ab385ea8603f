r"""Many embedding tables in one program as tasks.

Limit, in useful bytes over cycles x bus bytes W (Ref: `Task.limit`). Of rows of R bytes, s bytes an
index, an offset and a word of a table's description (d words: 1 of tables alike, 4 of others), L
lookups a bag and B bags a table:

.. math:: U = \frac{R}{W \lceil R / W \rceil + s + s / L + d s / (B L)}

where of tables of different shapes R and :math:`W \lceil R / W \rceil` are means over the lookups.
The offsets of a table begin with the last of the table before, so each is counted once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.bench.programs import draw
from ember_hw.bench.programs.expected import END, ITERATE, Recorder, Told
from ember_hw.bench.programs.task import Task, program_text
from ember_hw.compiler.dialects.au_program import TABLE_UNIT_BYTES

#: Tables are kept a bus and more apart, so that a wrong distance meets no row of the neighbour.
_GAP_BYTES = 64
#: Rows of all tables of one shape.
_ROWS = 1 << 14


def tables(
    seed: int = 1, *, row_bytes: int = 128, count: int = 26, bags: int = 64, longest: int = 8
) -> Task:
    """Return tables of one shape with a batch of bags each.

    Parameters
    ----------
    seed : int
        Of the inputs.
    row_bytes : int
        Bytes of a row, a multiple of 64.
    count : int
        Tables.
    bags : int
        Bags of a table. With 1 the loops of tables and bags are one.
    longest : int
        Lookups of a bag at most; 0 is the least.
    """
    rng = np.random.default_rng([seed, 10])
    rows = max(16, _ROWS // count)
    shapes = [(rows, row_bytes)] * count
    contents, arena, distances = _place(rng, shapes)
    lengths = rng.integers(0, longest + 1, count * bags)
    offsets = draw.offsets(lengths)
    indices = rng.integers(0, rows, int(offsets[-1])).astype(np.int32)
    recorder = Recorder()
    for table in range(count):
        for bag in range(bags):
            pieces = _rows_of(contents[table], offsets, indices, table * bags + bag)
            _bag(recorder, pieces, 1 if bags == 1 else 2)
    recorder.end()
    program = "tables_of_one_bag" if bags == 1 else "tables"
    values = {"T": count, "R": rows, "pitch": row_bytes // 4, "D": row_bytes // 4}
    return Task(
        name=program,
        text=program_text(program),
        needs={"traversal_units": 2 if bags == 1 else 3},
        arrays={"distance": distances, "off": offsets, "idx": indices, "tables": arena},
        values=values if bags == 1 else {**values, "B": bags},
        expected=recorder.delivery(),
        index_bytes=distances.nbytes + offsets.nbytes + indices.nbytes,
        params={"row_bytes": row_bytes, "tables": count, "bags": bags, "index_bytes": 4},
    )


def tables_of_one_bag(seed: int = 1, *, row_bytes: int = 128, count: int = 1000) -> Task:
    """Return tables of one shape with one bag each; see `tables`."""
    return tables(seed, row_bytes=row_bytes, count=count, bags=1, longest=16)


def tables_in_a_row(
    first_rows: NDArray[Any],
    offsets: NDArray[np.int32],
    indices: NDArray[np.int32],
    table: NDArray[np.float32],
) -> Task:
    """Return tables that lie one behind the other.

    Parameters
    ----------
    first_rows : int (T,)
        Where each begins in `table`. The program knows one number of rows, that of the longest.
    offsets : int32 (T B + 1,)
        Of the bags of all tables, table by table.
    indices : int32 (L,)
        Rows, counted in each table from 0.
    table : float32 (R, D)
        The rows of all of them, each a multiple of 64 bytes.
    """
    count, row_bytes = len(first_rows), 4 * table.shape[1]
    bags = (len(offsets) - 1) // count
    distances = (first_rows * (row_bytes // TABLE_UNIT_BYTES)).astype(np.int32)
    recorder = Recorder()
    for number, first in enumerate(first_rows):
        for bag in range(bags):
            _bag(recorder, _rows_of(table[first:], offsets, indices, number * bags + bag), 2)
    recorder.end()
    rows = int(np.diff(first_rows, append=len(table)).max())
    pitch = row_bytes // 4
    return Task(
        name="tables",
        text=program_text("tables"),
        needs={"traversal_units": 3},
        arrays={"distance": distances, "off": offsets, "idx": indices, "tables": table.reshape(-1)},
        values={"T": count, "B": bags, "R": rows, "pitch": pitch, "D": pitch},
        expected=recorder.delivery(),
        index_bytes=distances.nbytes + offsets.nbytes + indices.nbytes,
        params={"row_bytes": row_bytes, "tables": count, "bags": bags, "index_bytes": 4},
    )


def tables_of_shapes(
    seed: int = 1,
    *,
    row_bytes: tuple[int, ...] = (64, 128, 192, 256, 512),
    count: int = 26,
    bags: int = 64,
    longest: int = 8,
) -> Task:
    """Return tables whose rows have different lengths and numbers, with a batch of bags each.

    A row may be shorter than its pitch: every second table's rows end 16 bytes before it.
    """
    rng = np.random.default_rng([seed, 11])
    pitches = rng.choice(row_bytes, count)
    paddings = np.where(np.arange(count) % 2, 16, 0)
    shapes = [(int(rng.integers(8, 600)), int(pitch)) for pitch in pitches]
    contents, arena, distances = _place(rng, shapes)
    lengths = rng.integers(0, longest + 1, count * bags)
    offsets = draw.offsets(lengths)
    indices = np.concatenate(
        [
            rng.integers(0, rows, int(offsets[(t + 1) * bags] - offsets[t * bags]))
            for t, (rows, _) in enumerate(shapes)
        ]
    ).astype(np.int32)
    row_lengths = (pitches - paddings).astype(np.int32)
    recorder = Recorder()
    for table in range(count):
        content = contents[table][:, : row_lengths[table] // 4]
        for bag in range(bags):
            pieces = _rows_of(content, offsets, indices, table * bags + bag)
            begins = [(ITERATE, 0)] if bag == 0 else []
            _bag(recorder, pieces, 2, begins, {0: row_lengths[table]})
    recorder.end()
    shape = np.concatenate([distances, [rows for rows, _ in shapes], pitches, row_lengths]).astype(
        np.int32
    )
    return Task(
        name="tables_of_shapes",
        text=program_text("tables_of_shapes"),
        needs={"traversal_units": 3, "streams_per_unit": 4, "exports": 6},
        arrays={"shape": shape, "off": offsets, "idx": indices, "tables": arena},
        values={"T": count, "B": bags},
        expected=recorder.delivery(),
        index_bytes=shape.nbytes + offsets.nbytes + indices.nbytes,
        params={"pitch_bytes": list(row_bytes), "tables": count, "bags": bags, "index_bytes": 4},
    )


def _place(
    rng: np.random.Generator, shapes: list[tuple[int, int]]
) -> tuple[list[NDArray[np.float32]], NDArray[np.float32], NDArray[np.int32]]:
    """Return tables of (rows, row bytes), one memory with all of them, and where each lies."""
    contents = [draw.table(rng, row_bytes, rows) for rows, row_bytes in shapes]
    gap = draw.table(rng, _GAP_BYTES, 1).reshape(-1)
    pieces: list[NDArray[np.float32]] = []
    distances: list[int] = []
    place = 0
    # Not in order, so that a table's number doesn't tell its place.
    order = rng.permutation(len(shapes))
    for number in order:
        distances.append(place // TABLE_UNIT_BYTES)
        pieces += [contents[number].reshape(-1), gap]
        place += contents[number].nbytes + _GAP_BYTES
    at = np.zeros(len(shapes), np.int32)
    at[order] = distances
    return contents, np.concatenate(pieces), at


def _rows_of(
    table: NDArray[np.float32], offsets: NDArray[Any], indices: NDArray[np.int32], bag: int
) -> list[NDArray[np.float32]]:
    return [table[indices[place]] for place in range(int(offsets[bag]), int(offsets[bag + 1]))]


def _bag(
    recorder: Recorder,
    rows: list[NDArray[np.float32]],
    level: int,
    begins: list[Told] | None = None,
    scalars: dict[int, Any] | None = None,
) -> None:
    """Take down a bag: a token a lookup, the first with `begins`, the last with the bag's end."""
    for number, row in enumerate(rows):
        told = [(ITERATE, level), *(begins or []) * (number == 0)]
        told += [(END, level)] * (number == len(rows) - 1)
        recorder.token(*told, scalars=scalars if begins and number == 0 else None, rows=[row])
    if not rows:
        recorder.token(*(begins or []), (END, level), scalars=scalars if begins else None)
