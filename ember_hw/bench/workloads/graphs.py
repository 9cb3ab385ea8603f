"""Graphs: some that networkx has built in, and drawn ones with a published law of their degrees.

Ref: Zachary 1977 (karate club); Knuth 1993 (Les Miserables); Barabasi and Albert, Science 1999
(preferential attachment, degrees fall with their third power); Graph500 (Kronecker graphs with A, B
and C of 0.57, 0.19 and 0.19, where many nodes have no edge).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ember_hw.bench.programs import draw
from ember_hw.bench.programs.graphs import fusedmm_of, spmm_of
from ember_hw.bench.workloads.case import Case, Sizes

#: Chances of a Kronecker graph's quarters; the fourth has the rest.
_QUARTERS = (0.57, 0.19, 0.19)
_ATTACHED = 4
_KRONECKER_DEGREE = 8


class Graph(NamedTuple):
    """A directed graph in CSR: pointers int32 (N + 1,), columns int32 (E,)."""

    pointers: NDArray[np.int32]
    columns: NDArray[np.int32]


def from_edges(sources: NDArray[Any], targets: NDArray[Any], nodes: int) -> Graph:
    """Return the graph of some edges, int (E,) each; one that is there twice counts once.

    Examples
    --------
    >>> from_edges(np.array([2, 0, 2]), np.array([0, 1, 0]), 3)
    Graph(pointers=array([0, 1, 1, 2], dtype=int32), columns=array([1, 0], dtype=int32))
    """
    edges = np.unique(sources.astype(np.int64) * nodes + targets)
    degrees = np.bincount(edges // nodes, minlength=nodes)
    return Graph(draw.offsets(degrees), (edges % nodes).astype(np.int32))


def _built_in(name: str) -> Callable[[int, int], Graph]:
    def make(seed: int, nodes: int) -> Graph:
        import networkx

        return _undirected(getattr(networkx, name)())

    return make


def _undirected(graph: Any) -> Graph:
    numbers = {node: number for number, node in enumerate(graph)}
    ends = np.array([(numbers[a], numbers[b]) for a, b in graph.edges()])
    both = np.concatenate([ends, ends[:, ::-1]])
    return from_edges(both[:, 0], both[:, 1], len(numbers))


def preferential(seed: int, nodes: int) -> Graph:
    """Return a graph of preferential attachment: each new node gets 4 edges."""
    import networkx

    return _undirected(networkx.barabasi_albert_graph(nodes, _ATTACHED, seed=seed))


def kronecker(seed: int, nodes: int) -> Graph:
    """Return a Kronecker graph with 8 edges a node drawn; `nodes` is a power of two."""
    rng = np.random.default_rng([seed, nodes])
    bits, edges = nodes.bit_length() - 1, _KRONECKER_DEGREE * nodes
    chances = [*_QUARTERS, 1 - sum(_QUARTERS)]
    quarters = rng.choice(4, (edges, bits), p=chances)
    weights = 1 << np.arange(bits)
    order = rng.permutation(nodes)
    sources, targets = (order[(quarters >> bit & 1) @ weights] for bit in (1, 0))
    return from_edges(sources, targets, nodes)


#: What makes each graph of a seed and of a number of nodes, which built-in ones don't take.
GRAPHS: dict[str, Callable[[int, int], Graph]] = {
    "karate club": _built_in("karate_club_graph"),
    "les miserables": _built_in("les_miserables_graph"),
    "preferential": preferential,
    "kronecker": kronecker,
}


def spmm(name: str, *, seed: int, nodes: int, dim: int) -> Case:
    """Return a graph's matrix times rows of `dim` elements; parameters as of `GRAPHS`."""
    graph, rng = GRAPHS[name](seed, nodes), np.random.default_rng([seed, 41])
    count = len(graph.pointers) - 1
    values = rng.standard_normal(len(graph.columns), np.float32)
    dense = rng.standard_normal((count, dim), np.float32)
    task = spmm_of(*graph, values, dense)
    return Case(
        name=f"SpMM/{name}",
        family="SpMM",
        kernel="spmm",
        rows=task.rows,
        task=task,
        arrays={"ptr": graph.pointers, "col": graph.columns, "val": values, "x": dense},
        outputs={"out": (count, dim)},
        values={"N": count},
        sizes=Sizes(lookups=len(graph.columns), groups=count, dim=dim),
        params=_params(graph, dim),
    )


def message_passing(name: str, *, seed: int, nodes: int, dim: int) -> Case:
    """Return message passing in a graph, of rows of `dim` elements; parameters as of `spmm`."""
    graph, rng = GRAPHS[name](seed, nodes), np.random.default_rng([seed, 42])
    count = len(graph.pointers) - 1
    sources, targets = rng.standard_normal((2, count, dim), np.float32)
    task = fusedmm_of(*graph, sources, targets)
    return Case(
        name=f"MP/{name}",
        family="MP",
        kernel="fusedmm",
        rows=task.rows,
        task=task,
        arrays={"ptr": graph.pointers, "col": graph.columns, "x": sources, "y": targets},
        outputs={"out": (count, dim)},
        values={"N": count},
        sizes=Sizes(lookups=len(graph.columns), groups=count, dim=dim),
        params=_params(graph, dim),
    )


def edge_products(name: str, *, seed: int, nodes: int, dim: int) -> Case:
    """Return the product of the rows at both ends of each edge; parameters as of `spmm`."""
    case = message_passing(name, seed=seed, nodes=nodes, dim=dim)
    edges = case.sizes.lookups
    return replace(
        case,
        name=f"MP edges/{name}",
        kernel="edges",
        outputs={"out": (edges,)},
        sizes=replace(case.sizes, groups=edges),
        task=None,
    )


def _params(graph: Graph, dim: int) -> dict[str, Any]:
    degrees = np.diff(graph.pointers)
    return {
        "nodes": len(degrees),
        "edges": len(graph.columns),
        "empty_nodes": int((degrees == 0).sum()),
        "largest_degree": int(degrees.max()),
        "row_bytes": 4 * dim,
        "lookups": len(graph.columns),
    }
