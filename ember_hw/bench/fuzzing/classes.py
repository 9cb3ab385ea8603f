# pyright: basic
"""Random calls of models of every op class, and calls on real data sets, at every level."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from ember_hw.bench.fuzzing.every_level import Comparison, EveryLevel
from ember_hw.bench.fuzzing.op_models import CASES, VARIANTS, Inputs, Model, OpCase
from ember_hw.bench.workloads import graphs, triples
from ember_hw.compiler.frontend import import_module
from ember_hw.demo import movielens

MODELS: Mapping[str, OpCase] = {case.name: case for case in (*CASES, *VARIANTS)}
KINDS = tuple(dict.fromkeys(case.kind for case in MODELS.values()))
#: Calls of one model with the same tables.
CALLS_A_MODEL = 5
_COLUMNS = (1, 2, 3, 5, 8, 17)
_MOST = 13
#: Floats that are easily lost: NaN, infinities, zeros of both signs, denormals, large ones.
_SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, -3e-39, 3e38], np.float32)
_SPECIAL_SHARE = 0.1
#: One model of so many has them.
SPECIAL_MODELS = 3
#: Elements of a row of real data (a part of it, where it has parts).
_REAL_COLUMNS = 4
#: Lookups, edges or triples of a real data set that are looked at after every pass.
_AFTER_EVERY_PASS = 500
#: Nodes of graphs that are drawn.
_NODES = 256
_MOVIELENS = "MovieLens-100K"
#: Real data sets and the models that run on them: histories of MovieLens, graphs (two of networkx,
#: two drawn with skewed degrees and isolated nodes), triples of knowledge graphs.
REAL_DATA: Mapping[str, tuple[str, ...]] = {
    _MOVIELENS: (
        *(
            f"bag_{mode}{padding}"
            for padding in ("", "_padding")
            for mode in ("sum", "mean", "max")
        ),
        "bag_weighted",
        "embedding",
    ),
    **dict.fromkeys(
        graphs.GRAPHS,
        ("spmm", "index_add", "scatter_mean", "scatter_amax", "fused_sigmoid", "fused_relu"),
    ),
    **dict.fromkeys(triples.DIGESTS, ("transe_1", "transe_2", "distmult", "complex")),
}


@dataclass(frozen=True)
class Draw:
    """Calls of a model: its name, columns (times those it must be a multiple of), and a seed."""

    model: str
    columns: int
    seed: int
    calls: int = CALLS_A_MODEL


@dataclass
class ClassAccount:
    """
    What came of the calls of one op class, or on one data set.

    Attributes
    ----------
    name : str
        Of the class or the data set.
    calls, agreeing : int
        Calls made, and those that gave the same bits everywhere.
    comparison : Comparison
        Answers, levels without a program, and failures, each with its draw.
    """

    name: str
    calls: int = 0
    agreeing: int = 0
    comparison: Comparison = field(default_factory=Comparison)

    def add(self, other: ClassAccount) -> None:
        """Count what another one counted."""
        self.calls += other.calls
        self.agreeing += other.agreeing
        self.comparison.add(other.comparison)

    def count(self, what: object, calls: int, compare: Callable[[], Comparison]) -> None:
        """Compare calls, and count what comes of them; `what` says which they are."""
        self.calls += calls
        try:
            found = compare()
        # Any error is one of the compiler or of a program it made, whatever its kind.
        except Exception as error:
            found = Comparison(failures=[f"{type(error).__name__}: {error}"])
        if not found.failures:
            self.agreeing += calls
        found.failures = [f"{what}: {failure}" for failure in found.failures]
        self.comparison.add(found)


@dataclass(frozen=True)
class Real:
    """A model on a real data set: names of both, and a seed."""

    data: str
    model: str
    seed: int


class RealCase(NamedTuple):
    """What a model is given of a real data set.

    Attributes
    ----------
    rows, relations : int
        Rows of the model's tables.
    inputs : callable of (random, most)
        Inputs of its call with at most so many lookups, edges or triples.
    """

    rows: int
    relations: int
    inputs: Callable[[np.random.Generator, int], Inputs]


def draws(
    kind: str, calls: int, seed: int, without: Collection[str] = frozenset()
) -> Iterator[Draw]:
    """Yield draws of an op class with so many calls in sum; each of its models comes in turn.

    Parameters
    ----------
    kind : str
        The class.
    calls, seed : int
        Of all draws.
    without : collection of str
        Models that are left out.
    """
    random = np.random.default_rng([seed, KINDS.index(kind)])
    names = [n for n, case in MODELS.items() if case.kind == kind and n not in without]
    # No fewer draws than models, as far as there are calls.
    each = max(1, min(CALLS_A_MODEL, calls // len(names)))
    for number, first in enumerate(range(0, calls, each)):
        yield Draw(
            names[number % len(names)],
            int(random.choice(_COLUMNS)),
            int(random.integers(1 << 32)),
            min(each, calls - first),
        )


def attempt(draw: Draw, levels: EveryLevel) -> Comparison:
    """Compile a model and compare its calls; the first of several has no lookup, if it may."""
    case = MODELS[draw.model]
    random = np.random.default_rng(draw.seed)
    columns = draw.columns * case.columns
    model = Model(case.function, columns, draw.seed)
    sizes = random.integers(0, _MOST, draw.calls)
    if draw.calls > 1:
        sizes[0] = 0
    calls = [case.inputs(random, columns, int(size)) for size in sizes]
    if draw.seed % SPECIAL_MODELS == 0:
        calls = with_special_floats(random, model, calls)
    example = case.inputs(random, columns, 6)
    return _compare(model, calls, levels, example=example)


def with_special_floats(
    random: np.random.Generator, model: Model, calls: list[Inputs]
) -> list[Inputs]:
    """Put floats that are easily lost into a model's tables; return the calls with some, too."""
    for parameter in model.parameters():
        parameter.data = torch.from_numpy(special(random, parameter.detach().numpy()))
    return [tuple(special(random, array) for array in call) for call in calls]


def special(random: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """Return an array with some floats that are easily lost, if it is one of float32."""
    if array.dtype != np.float32:
        return array
    chosen = random.random(array.shape) < _SPECIAL_SHARE
    return np.where(chosen, random.choice(_SPECIAL, array.shape), array)


def _compare(
    model: Model,
    calls: list[Inputs],
    levels: EveryLevel,
    *,
    example: Inputs,
    long: tuple[Inputs, ...] = (),
) -> Comparison:
    imported = import_module(model, tuple(torch.from_numpy(array.copy()) for array in example))
    return levels.compare(imported.module, imported.spec, calls, long_calls=long)


def real_case(data: str, model: str, columns: int = _REAL_COLUMNS) -> RealCase:
    """Return what a model is given of one of `REAL_DATA`, which is downloaded on first use.

    Parameters
    ----------
    data, model : str
        Names of both.
    columns : int
        Of the features of a graph's nodes.
    """
    if data == _MOVIELENS:
        return _histories(model)
    if data in graphs.GRAPHS:
        return _graph(graphs.GRAPHS[data](0, _NODES), model, columns)
    known = triples.load(data)
    parts = [part.astype(np.int64) for part in known[:3]]
    return RealCase(
        known.entities,
        known.relations,
        lambda random, most: tuple(part[:most] for part in parts),
    )


def _histories(model: str) -> RealCase:
    """Return the films that each user saw, one bag a user; for `embedding` in a matrix."""
    given = movielens.load()

    def bags(random: np.random.Generator, most: int) -> Inputs:
        indices = given.indices[:most]
        offsets = given.offsets[given.offsets <= len(indices)]
        if most < len(given.indices):
            # The bag that is cut is left out.
            return indices[: offsets[-1]], offsets[:-1]
        return indices, offsets

    def weighted(random: np.random.Generator, most: int) -> Inputs:
        indices, offsets = bags(random, most)
        return indices, offsets, _floats(random, len(indices))

    def matrix(random: np.random.Generator, most: int) -> Inputs:
        return (given.indices[: most // 10 * 10].reshape(10, -1),)

    inputs = {"bag_weighted": weighted, "embedding": matrix}.get(model, bags)
    return RealCase(movielens.NUM_EMBEDDINGS, 1, inputs)


def _graph(graph: graphs.Graph, model: str, features: int) -> RealCase:
    """Return the edges of a graph, each node of which reads its neighbours; for `spmm` in CSR."""
    nodes = len(graph.pointers) - 1
    source = graph.columns.astype(np.int64)
    target = np.repeat(np.arange(nodes), np.diff(graph.pointers))

    def edges(random: np.random.Generator, most: int) -> Inputs:
        return _floats(random, nodes, features), source[:most], target[:most]

    def csr(random: np.random.Generator, most: int) -> Inputs:
        dense, columns, _ = edges(random, most)
        pointers = np.minimum(graph.pointers, len(columns)).astype(np.int64)
        return pointers, columns, _floats(random, len(columns)), dense

    return RealCase(nodes, 1, csr if model == "spmm" else edges)


def _floats(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.standard_normal(shape, np.float32)


def attempt_real(real: Real, levels: EveryLevel) -> Comparison:
    """Compare a model on a real data set: a part of it after every pass, the whole at every level.

    Parameters
    ----------
    real : Real
        One of `parts`.
    levels : EveryLevel
        Compares.
    """
    op_case, case = MODELS[real.model], real_case(real.data, real.model)
    model = Model(
        op_case.function, _REAL_COLUMNS * op_case.columns, real.seed, case.rows, case.relations
    )
    part, whole = (
        tuple(
            np.ascontiguousarray(array)
            for array in case.inputs(np.random.default_rng([real.seed, 2]), most)
        )
        for most in (_AFTER_EVERY_PASS, sys.maxsize)
    )
    return _compare(model, [part], levels, example=whole, long=(whole,))


def parts(seed: int, calls: int, *, real: bool) -> Iterator[Draw | Real]:
    """Yield what there is to compare: models on real data, which take longest, then random calls.

    Parameters
    ----------
    seed : int
        Of all draws.
    calls : int
        Random calls of each class.
    real : bool
        Whether real data sets take part.
    """
    if real:
        for data, models in REAL_DATA.items():
            yield from (Real(data, model, seed) for model in models)
    for kind in KINDS:
        yield from draws(kind, calls, seed)


def name_of(part: Draw | Real) -> str:
    """Return the op class or the data set that a part counts for."""
    return part.data if isinstance(part, Real) else MODELS[part.model].kind


def run_part(part: Draw | Real, *, rtl: bool) -> ClassAccount:
    """Compare the calls of a part, with the simulated unit or without."""
    account = ClassAccount(name_of(part))
    with EveryLevel(rtl=rtl) as levels:
        if isinstance(part, Real):
            account.count(part, 1, partial(attempt_real, part, levels))
        else:
            account.count(part, part.calls, partial(attempt, part, levels))
    return account
