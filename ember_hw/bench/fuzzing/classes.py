# pyright: basic
"""Random calls of models of every op class, and calls on real data sets, at every level."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
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
_SPECIAL_SHARE, _SPECIAL_MODELS = 0.1, 3
#: Elements of a row of real data (a part of it, where it has parts).
_REAL_COLUMNS = 4
#: Lookups, edges or triples of a real data set that every level is interpreted on: the interpreters
#: of IR, which run some fifty times for it, take 30 us for each of its elements.
INTERPRETED = 500


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


class RealCase(NamedTuple):
    """A model on a real data set.

    Attributes
    ----------
    data, model : str
        Names of both.
    rows, relations : int
        Rows of the model's tables.
    inputs : callable of (random, most)
        Inputs of its call with at most so many lookups, edges or triples.
    """

    data: str
    model: str
    rows: int
    relations: int
    inputs: Callable[[np.random.Generator, int], Inputs]


def draws(kind: str, calls: int, seed: int) -> Iterator[Draw]:
    """Yield draws of an op class with so many calls in sum; each of its models comes in turn."""
    random = np.random.default_rng([seed, KINDS.index(kind)])
    names = [name for name, case in MODELS.items() if case.kind == kind]
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
    special = draw.seed % _SPECIAL_MODELS == 0
    model = Model(case.function, columns, draw.seed)
    sizes = random.integers(0, _MOST, draw.calls)
    if draw.calls > 1:
        sizes[0] = 0
    calls = [case.inputs(random, columns, int(size)) for size in sizes]
    if special:
        calls = [tuple(_special(random, array) for array in call) for call in calls]
        for parameter in model.parameters():
            parameter.data = torch.from_numpy(_special(random, parameter.detach().numpy()))
    example = case.inputs(random, columns, 6)
    return _compare(model, calls, levels, example=example, large=None)


def _special(random: np.random.Generator, array: np.ndarray) -> np.ndarray:
    if array.dtype != np.float32:
        return array
    chosen = random.random(array.shape) < _SPECIAL_SHARE
    return np.where(chosen, random.choice(_SPECIAL, array.shape), array)


def _compare(
    model: Model, calls: list[Inputs], levels: EveryLevel, *, example: Inputs, large: Inputs | None
) -> Comparison:
    imported = import_module(model, tuple(torch.from_numpy(array.copy()) for array in example))
    large_calls = [] if large is None else [large]
    return levels.compare(imported.module, imported.spec, calls, large_calls=large_calls)


def real_cases() -> Iterator[RealCase]:
    """Yield the models on real data sets, which are downloaded on first use.

    Histories of MovieLens-100K, graphs (two of networkx, two generated with skewed degrees and
    isolated nodes), triples of UMLS and Kinships.
    """
    given = movielens.load()
    films = movielens.NUM_EMBEDDINGS

    def bags(random: np.random.Generator, most: int) -> Inputs:
        offsets = given.offsets[given.offsets <= most]
        if most < len(given.indices):
            return given.indices[: offsets[-1]], offsets[:-1]
        return given.indices, offsets

    def weighted(random: np.random.Generator, most: int) -> Inputs:
        indices, offsets = bags(random, most)
        return indices, offsets, _floats(random, len(indices))

    def matrix(random: np.random.Generator, most: int) -> Inputs:
        return (given.indices[: most // 10 * 10].reshape(10, -1),)

    for name in ("bag_sum", "bag_mean", "bag_max", "bag_sum_padding", "bag_mean_padding",
                 "bag_max_padding"):  # fmt: skip
        yield RealCase("MovieLens-100K", name, films, 1, bags)
    yield RealCase("MovieLens-100K", "bag_weighted", films, 1, weighted)
    yield RealCase("MovieLens-100K", "embedding", films, 1, matrix)
    for name, make in graphs.GRAPHS.items():
        yield from graph_cases(name, make(0, 256))
    for name in triples.DIGESTS:
        known = triples.load(name)
        columns = [part.astype(np.int64) for part in known[:3]]

        def some(
            random: np.random.Generator, most: int, columns: list[np.ndarray] = columns
        ) -> Inputs:
            return tuple(column[:most] for column in columns)

        for model in ("transe_1", "transe_2", "distmult", "complex"):
            yield RealCase(name, model, known.entities, known.relations, some)


def graph_cases(name: str, graph: graphs.Graph) -> Iterator[RealCase]:
    """Yield the models of a graph: each of its nodes reads its neighbours."""
    nodes = len(graph.pointers) - 1
    source = graph.columns.astype(np.int64)
    target = np.repeat(np.arange(nodes), np.diff(graph.pointers))

    def edges(random: np.random.Generator, most: int) -> Inputs:
        return _floats(random, nodes, _REAL_COLUMNS), source[:most], target[:most]

    def csr(random: np.random.Generator, most: int) -> Inputs:
        dense, columns, _ = edges(random, most)
        pointers = np.minimum(graph.pointers, len(columns)).astype(np.int64)
        return pointers, columns, _floats(random, len(columns)), dense

    yield RealCase(name, "spmm", nodes, 1, csr)
    for model in ("index_add", "scatter_mean", "scatter_amax", "fused_sigmoid", "fused_relu"):
        yield RealCase(name, model, nodes, 1, edges)


def _floats(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.standard_normal(shape, np.float32)


def attempt_real(case: RealCase, levels: EveryLevel, seed: int) -> Comparison:
    """Compare a model on a real data set: a part at every level, all of it on the devices."""
    op_case = MODELS[case.model]
    columns = _REAL_COLUMNS * op_case.columns
    model = Model(op_case.function, columns, seed, case.rows, case.relations)
    part, whole = (
        tuple(
            np.ascontiguousarray(array)
            for array in case.inputs(np.random.default_rng([seed, 2]), most)
        )
        for most in (INTERPRETED, sys.maxsize)
    )
    return _compare(model, [part], levels, example=whole, large=whole)


def run_classes(
    levels: EveryLevel,
    *,
    seed: int,
    calls: int,
    real: Iterable[RealCase] = (),
    on_call: Callable[[ClassAccount], None] = lambda account: None,
) -> Iterator[ClassAccount]:
    """Compare random calls of each op class, then those on real data; tell `on_call` after each.

    Parameters
    ----------
    levels : EveryLevel
        Compares.
    seed : int
        Of all draws.
    calls : int
        Random calls of each class.
    real : iterable of RealCase
        See `real_cases`; those of one data set follow each other.
    on_call : callable, optional
        Told the account of the class, or the data set.
    """
    for kind in KINDS:
        account = ClassAccount(kind)
        for draw in draws(kind, calls, seed):
            account.count(draw, draw.calls, partial(attempt, draw, levels))
            on_call(account)
        yield account
    for name, cases in groupby(real, lambda case: case.data):
        account = ClassAccount(name)
        for case in cases:
            account.count(case.model, 1, partial(attempt_real, case, levels, seed))
            on_call(account)
        yield account
