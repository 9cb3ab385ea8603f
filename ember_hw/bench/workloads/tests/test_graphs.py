from __future__ import annotations

import numpy as np
import pytest

from ember_hw.bench.workloads.graphs import GRAPHS, from_edges, message_passing, spmm


@pytest.mark.parametrize(
    ("name", "nodes", "edges"), [("karate club", 34, 2 * 78), ("les miserables", 77, 2 * 254)]
)
def test_built_in_graph_has_every_edge_in_both_directions(
    name: str, nodes: int, edges: int
) -> None:
    graph = GRAPHS[name](0, 5)
    assert (len(graph.pointers) - 1, len(graph.columns)) == (nodes, edges)
    sources = np.repeat(np.arange(nodes), np.diff(graph.pointers))
    pairs = set(zip(sources.tolist(), graph.columns.tolist(), strict=True))
    assert len(pairs) == edges
    assert pairs == {(b, a) for a, b in pairs}


def test_drawn_graphs_are_skewed_as_published() -> None:
    preferential = np.diff(GRAPHS["preferential"](1, 1024).pointers)
    assert np.median(preferential) <= 5
    assert preferential.max() > 10 * preferential.mean()
    kronecker = np.diff(GRAPHS["kronecker"](1, 1024).pointers)
    assert len(kronecker) == 1024
    assert np.mean(kronecker == 0) > 0.1
    assert kronecker.max() > 10 * kronecker.mean()


@pytest.mark.parametrize("name", GRAPHS)
def test_seed_decides(name: str) -> None:
    first, again, other = (GRAPHS[name](seed, 64) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    is_drawn = name in ("preferential", "kronecker")
    assert np.array_equal(first.columns, other.columns) is not is_drawn


def test_an_edge_that_is_there_twice_counts_once() -> None:
    graph = from_edges(np.array([3, 0, 3, 3]), np.array([1, 2, 1, 0]), 4)
    assert graph.pointers.tolist() == [0, 1, 1, 1, 3]
    assert graph.columns.tolist() == [2, 0, 1]


def test_rows_are_those_of_neighbours_and_of_nodes() -> None:
    product = spmm("karate club", seed=0, nodes=0, dim=4)
    gathered = product.arrays["x"][product.arrays["col"]]
    assert np.array_equal(product.rows, gathered.view(np.uint8).reshape(-1))
    passing = message_passing("kronecker", seed=0, nodes=64, dim=4)
    assert len(passing.rows) == 16 * (64 + passing.sizes.lookups)
    assert passing.params["empty_nodes"] > 0
    assert passing.sizes.groups == 64
