"""What the suites `hand` and `ablation` run, and on which units."""

from __future__ import annotations

from collections.abc import Callable

from ember_hw.bench.presets import unit
from ember_hw.bench.workloads.attention import BLOCK_ROWS, attention, scores, values
from ember_hw.bench.workloads.case import Case
from ember_hw.bench.workloads.dlrm import LOCALITIES, MODELS, dlrmv2, locality, recommender
from ember_hw.bench.workloads.graphs import GRAPHS, message_passing, spmm
from ember_hw.bench.workloads.triples import DIGESTS, transe
from ember_hw.config import AcceleratorConfig

SINKS = ("ideal", "core-like")
LATENCY_CYCLES = 100
#: Elements of a row of a graph or of a knowledge graph.
_DIM = 64

#: What makes each case of a seed, by its name, so that only those that are wanted are made.
Makers = dict[str, Callable[[int], Case]]


def unit_of(data_width_bits: int) -> AcceleratorConfig:
    """Return a unit that holds every case at every opt level."""
    base = unit(data_width_bits, 128, traversal_units=4)
    return base.with_changes(
        name=f"{data_width_bits}-bit, any op class",
        streams_per_unit=3,
        row_entries=3,
        exports=6,
        bundle_scalars=4,
    )


def cases(quick: bool) -> Makers:
    """Return the cases of the suite `hand`; the quick ones are one of each op class."""
    if quick:
        return {
            "RM3/uniform": lambda seed: recommender("RM3", 0.0, seed=seed, bags=4),
            **_graphs(("karate club",), nodes=0),
            **_triples(("UMLS",), most=500),
            **_attention((2,), blocks=32),
        }
    # About 5,000 lookups each: the start of a program is then about a hundredth of its cycles.
    bags = {"RM1": 8, "RM2": 2, "RM3": 25}
    return {
        **_recommenders(bags),
        "dlrmv2": lambda seed: dlrmv2(seed=seed, bags=16),
        **_graphs(tuple(GRAPHS), nodes=1024),
        **_triples(tuple(DIGESTS)),
        **_attention(BLOCK_ROWS, blocks=256),
    }


def small_cases(quick: bool) -> Makers:
    """Return those of the suite `ablation`, which sends every element at level 0."""
    if quick:
        return {
            "RM3/uniform": lambda seed: recommender("RM3", 0.0, seed=seed, bags=1, tables=5),
            **_graphs(("karate club",), nodes=0),
            **_triples(("UMLS",), most=100),
            **_attention((2,), blocks=8),
        }
    return {
        **_recommenders({"RM1": 1, "RM2": 1, "RM3": 3}, tables=8),
        # So many bags that a token a table doesn't weigh more than it does in a batch.
        "dlrmv2": lambda seed: dlrmv2(seed=seed, bags=8),
        **_graphs(tuple(GRAPHS), nodes=128),
        **_triples(tuple(DIGESTS), most=500),
        **_attention(BLOCK_ROWS, blocks=16),
        **_one_loop(BLOCK_ROWS, blocks=16, attended=5),
    }


def _recommenders(bags: dict[str, int], tables: int | None = None) -> Makers:
    def make(model: str, exponent: float) -> Callable[[int], Case]:
        return lambda seed: recommender(model, exponent, seed=seed, bags=bags[model], tables=tables)

    return {
        f"{model}/{locality(exponent)}": make(model, exponent)
        for model in MODELS
        for exponent in LOCALITIES
    }


def _graphs(names: tuple[str, ...], *, nodes: int) -> Makers:
    def make(kind: Callable[..., Case], name: str) -> Callable[[int], Case]:
        return lambda seed: kind(name, seed=seed, nodes=nodes, dim=_DIM)

    kinds = {"MP": message_passing, "SpMM": spmm}
    return {f"{title}/{name}": make(kind, name) for title, kind in kinds.items() for name in names}


def _triples(names: tuple[str, ...], *, most: int | None = None) -> Makers:
    def make(name: str) -> Callable[[int], Case]:
        return lambda seed: transe(name, seed=seed, dim=_DIM, most=most)

    return {f"KG/{name}": make(name) for name in names}


def _attention(block_rows: tuple[int, ...], *, blocks: int) -> Makers:
    def make(rows: int) -> Callable[[int], Case]:
        return lambda seed: attention(rows, seed=seed, blocks=blocks, row_bytes=4 * _DIM)

    return {f"SpAttn/{rows} a block": make(rows) for rows in block_rows}


def _one_loop(block_rows: tuple[int, ...], *, blocks: int, attended: int) -> Makers:
    def make(kind: Callable[..., Case], rows: int) -> Callable[[int], Case]:
        return lambda seed: kind(rows, seed=seed, blocks=blocks, attended=attended, dim=_DIM)

    return {
        f"SpAttn {kind.__name__}/{rows} a block": make(kind, rows)
        for kind in (scores, values)
        for rows in block_rows
    }
