r"""Sparse matrices, graphs and knowledge graphs as tasks.

Limits, in useful bytes over cycles x bus bytes W (Ref: `Task.limit`), with R bytes a row,
:math:`P = W \lceil R / W \rceil`, and E edges a node in the mean, isolated nodes counted. Row
pointers, columns and values take 4 bytes each.

- SpMM, a row an edge: :math:`U = E R / (E (P + 4 + 4) + 4)`
- Message passing and FusedMM, a row a node and one an edge: :math:`U = (1 + E) R / ((1 + E) P + 4 E
  + 4)`. In FusedMM a node without an edge has no row for the first neighbour to be multiplied with,
  but its own row comes nevertheless: it belongs to the begin of its loop.
- Knowledge graph, three rows a triple: :math:`U = 3 R / (3 P + 12)`
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.bench.programs import draw
from ember_hw.bench.programs.expected import BEGIN, END, ITERATE, Recorder
from ember_hw.bench.programs.task import Task, program_text

_CSR = {"traversal_units": 2}


def spmm(seed: int = 1, *, row_bytes: int = 128, edges: int = 8000) -> Task:
    """Return a sparse times a dense matrix.

    Parameters
    ----------
    seed : int
        Of the inputs.
    row_bytes : int
        Bytes of a dense row, a multiple of 4.
    edges : int
        About how many non-zeros.
    """
    rng = np.random.default_rng([seed, 20])
    pointers, columns, dense = _graph(rng, row_bytes, edges)
    return spmm_of(pointers, columns, rng.standard_normal(len(columns), np.float32), dense)


def spmm_of(
    pointers: NDArray[np.int32],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    dense: NDArray[np.float32],
) -> Task:
    """Return a matrix in CSR, of (N + 1,), (E,) and (E,), times a dense one of (M, D)."""
    row_bytes = 4 * dense.shape[1]
    recorder = Recorder()
    for node in range(len(pointers) - 1):
        first, end = int(pointers[node]), int(pointers[node + 1])
        for place in range(first, end):
            told = [(ITERATE, 1)] + [(END, 1)] * (place == end - 1)
            recorder.token(*told, scalars={0: values[place]}, rows=[dense[columns[place]]])
        if first == end:
            recorder.token((END, 1))
    recorder.end()
    return Task(
        name="spmm",
        text=program_text("spmm"),
        needs=_CSR,
        arrays={"ptr": pointers, "col": columns, "val": values, "x": dense},
        values={"N": len(pointers) - 1, "D": row_bytes // 4},
        expected=recorder.delivery(),
        index_bytes=pointers.nbytes + columns.nbytes + values.nbytes,
        params=_params(row_bytes, pointers),
    )


def message_passing(seed: int = 1, *, row_bytes: int = 128, edges: int = 8000) -> Task:
    """Return message passing: a row a node, then one a neighbour; parameters as of `spmm`."""
    rng = np.random.default_rng([seed, 21])
    pointers, columns, features = _graph(rng, row_bytes, edges)
    recorder = Recorder()
    for node in range(len(pointers) - 1):
        neighbours = columns[pointers[node] : pointers[node + 1]]
        for place, neighbour in enumerate(neighbours):
            told = [(ITERATE, 1)] + [(END, 1)] * (place == len(neighbours) - 1)
            told += [(ITERATE, 0)] * (place == 0)
            own = [features[node]] * (place == 0)
            recorder.token(*told, rows=[*own, features[neighbour]])
        if not len(neighbours):
            recorder.token((ITERATE, 0), (END, 1), rows=[features[node]])
    recorder.end()
    return Task(
        name="message_passing",
        text=program_text("message_passing"),
        needs={**_CSR, "row_entries": 2},
        arrays={"ptr": pointers, "col": columns, "x": features},
        values={"N": len(pointers) - 1, "D": row_bytes // 4},
        expected=recorder.delivery(),
        index_bytes=pointers.nbytes + columns.nbytes,
        params=_params(row_bytes, pointers),
    )


def fusedmm(seed: int = 1, *, row_bytes: int = 128, edges: int = 8000) -> Task:
    """Return FusedMM: a row of x a node, then one of y a neighbour; parameters as of `spmm`."""
    rng = np.random.default_rng([seed, 22])
    pointers, columns, targets = _graph(rng, row_bytes, edges)
    return fusedmm_of(pointers, columns, draw.table(rng, row_bytes, len(pointers) - 1), targets)


def fusedmm_of(
    pointers: NDArray[np.int32],
    columns: NDArray[np.int32],
    sources: NDArray[np.float32],
    targets: NDArray[np.float32],
) -> Task:
    """Return FusedMM of a graph in CSR, of (N + 1,) and (E,), with rows x (N, D) and y (M, D)."""
    row_bytes = 4 * targets.shape[1]
    recorder = Recorder()
    for node in range(len(pointers) - 1):
        neighbours = columns[pointers[node] : pointers[node + 1]]
        if not len(neighbours):
            recorder.token((BEGIN, 1), (END, 1), rows=[sources[node]])
            continue
        for place, neighbour in enumerate(neighbours):
            rows = [targets[neighbour]]
            told = [(ITERATE, 1)]
            if place == 0:
                told.append((BEGIN, 1))
                rows.insert(0, sources[node])
            if place == len(neighbours) - 1:
                told.append((END, 1))
            recorder.token(*told, rows=rows)
    recorder.end()
    return Task(
        name="fusedmm",
        text=program_text("fusedmm"),
        needs={**_CSR, "row_entries": 2},
        arrays={"ptr": pointers, "col": columns, "x": sources, "y": targets},
        values={"N": len(pointers) - 1, "D": row_bytes // 4},
        expected=recorder.delivery(),
        index_bytes=pointers.nbytes + columns.nbytes,
        params=_params(row_bytes, pointers),
    )


def knowledge_graph(seed: int = 1, *, row_bytes: int = 128, triples: int = 3000) -> Task:
    """Return scores of triples, three rows each; a ComplEx row has both its parts in `row_bytes`.

    Parameters
    ----------
    seed : int
        Of the inputs.
    row_bytes : int
        Bytes of a row of an entity or relation, a multiple of 4.
    triples : int
        How many.
    """
    rng = np.random.default_rng([seed, 23])
    entities, relations = draw.table(rng, row_bytes), draw.table(rng, row_bytes, 64)
    head, tail = rng.integers(0, len(entities), (2, triples)).astype(np.int32)
    relation = (rng.zipf(1.5, triples) % len(relations)).astype(np.int32)
    return knowledge_graph_of(head, relation, tail, entities, relations)


def knowledge_graph_of(
    head: NDArray[np.int32],
    relation: NDArray[np.int32],
    tail: NDArray[np.int32],
    entities: NDArray[np.float32],
    relations: NDArray[np.float32],
) -> Task:
    """Return scores of triples (N,) with the rows of entities (E, D) and relations (R, D)."""
    triples, row_bytes = len(head), 4 * entities.shape[1]
    recorder = Recorder()
    for h, r, t in zip(head, relation, tail, strict=True):
        recorder.token((ITERATE, 0), rows=[entities[h], relations[r], entities[t]])
    recorder.end()
    arrays: dict[str, Any] = {"head": head, "relation": relation, "tail": tail}
    return Task(
        name="knowledge_graph",
        text=program_text("knowledge_graph"),
        needs={"streams_per_unit": 3, "row_entries": 3},
        arrays={**arrays, "entities": entities, "relations": relations},
        values={"N": triples, "D": row_bytes // 4},
        expected=recorder.delivery(),
        index_bytes=head.nbytes + relation.nbytes + tail.nbytes,
        params={"row_bytes": row_bytes, "triples": triples, "index_bytes": 4},
    )


def _graph(
    rng: np.random.Generator, row_bytes: int, edges: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
    """Return row pointers, columns and a table with a row a node."""
    degrees = draw.degrees(rng, edges)
    pointers = draw.offsets(degrees)
    columns = rng.integers(0, len(degrees), int(pointers[-1])).astype(np.int32)
    return pointers, columns, draw.table(rng, row_bytes, len(degrees))


def _params(row_bytes: int, pointers: NDArray[np.int32]) -> dict[str, Any]:
    degrees = np.diff(pointers)
    return {
        "row_bytes": row_bytes,
        "index_bytes": 4,
        "nodes": len(degrees),
        "edges": int(pointers[-1]),
        "empty_nodes": float(np.mean(degrees == 0)),
        "largest_degree": int(degrees.max()),
    }
