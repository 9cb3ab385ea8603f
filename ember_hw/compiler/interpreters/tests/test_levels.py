"""EmbeddingBag sum means the same at every level, bit for bit, and costs what the design says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ember_hw.compiler.interpreters import Counts, Schedule, interpret, run_au
from ember_hw.compiler.interpreters.tests import bag_texts
from ember_hw.host.reference import bit_equal
from ember_hw.host.tests.cases import SMALL_CASES, Case

V = 4
DIMS = (1, V - 1, V, V + 1, 20)
BAGS = {
    "no_bag": (),
    "empty_first": (0, 2, 1),
    "empty_middle": (2, 0, 3),
    "empty_last": (3, 1, 0),
    "all_empty": (0, 0),
    "one_bag": (4,),
}
SCHEDULES = [
    Schedule.AHEAD,
    Schedule.LOCKSTEP,
    *(Schedule.random(seed, 1 + seed % 5, 1 + (seed * 3) % 5) for seed in range(5)),
]
AU = {"au_O1": (bag_texts.AU_O1, bag_texts.DLC_O1), "au_O3": (bag_texts.AU_O3, bag_texts.DLC_O3)}
EVERY_LEVEL = [*bag_texts.LEVELS, *AU]


class Bags:
    """Arguments of one lookup; table and output have padded rows of NaN."""

    def __init__(self, lengths: tuple[int, ...], dim: int, rows: int = 7) -> None:
        random = np.random.default_rng(3)
        self.offsets = np.cumsum([0, *lengths])
        self.indices = random.integers(0, rows, sum(lengths))
        # Padded rows and the rows after the last one are poison: reading them would show.
        self.storage = np.full((rows + 1, dim + 3), np.nan, np.float32)
        self.storage[:rows, :dim] = random.standard_normal((rows, dim)) * 2.0 ** random.integers(
            -20, 20, (rows, 1)
        )
        self.table = self.storage[:rows, :dim]
        self.out_storage = np.full((len(lengths) + 1, dim + 3), np.nan, np.float32)
        self.out = self.out_storage[: len(lengths), :dim]
        self.out[...] = 0
        self.bags, self.dim = len(lengths), dim

    @property
    def arguments(self) -> list[Any]:
        return [self.offsets, self.indices, self.table, self.out, self.bags]

    @property
    def environment(self) -> dict[str, Any]:
        return {
            "off": self.offsets,
            "idx": self.indices,
            "tab": self.table,
            "B": self.bags,
            "D": self.dim,
        }

    def expected(self) -> NDArray[np.float32]:
        out = np.zeros((self.bags, self.dim), np.float32)
        for bag in range(self.bags):
            for j in range(self.offsets[bag], self.offsets[bag + 1]):
                out[bag] += self.table[self.indices[j]]
        return out


def run(level: str, bags: Any, schedule: Schedule = Schedule.AHEAD, lanes: int = V) -> Counts:
    if level in AU:
        program, compute = AU[level]
        result = run_au(
            [bag_texts.parse_au(program, lanes)],
            bag_texts.parse(compute, lanes),
            "eb_sum",
            bags.arguments,
            bags.environment,
            schedule=schedule,
        )
    else:
        module = bag_texts.parse(bag_texts.LEVELS[level], lanes)
        result = interpret(module, "eb_sum", bags.arguments, schedule=schedule)
    assert result.results == ()
    return result.counts


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", BAGS)
@pytest.mark.parametrize("level", EVERY_LEVEL)
def test_level_gives_the_sequential_sum_and_leaves_padding_alone(
    level: str, name: str, dim: int
) -> None:
    bags = Bags(BAGS[name], dim)
    table = bags.storage.copy()

    run(level, bags)

    np.testing.assert_array_equal(bags.out, bags.expected())
    np.testing.assert_array_equal(bags.storage, table)
    assert np.isnan(bags.out_storage[:, dim:]).all()
    assert np.isnan(bags.out_storage[bags.bags :]).all()


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("level", ["dlc_O0", "dlc_O1", "dlc_O2", "dlc_O3", *AU])
def test_every_schedule_gives_the_same_sum_and_counts(level: str, schedule: Schedule) -> None:
    # At capacity 1 a row of 20 elements is longer than the queue.
    bags, again = Bags((2, 0, 3, 1), 20), Bags((2, 0, 3, 1), 20)

    counts = run(level, bags, schedule)

    np.testing.assert_array_equal(bags.out, bags.expected())
    assert counts == run(level, again)


@pytest.mark.parametrize("lanes", [2, 3, 8, 16])
@pytest.mark.parametrize("level", ["slcvec", "slcvec_rows", "dlc_O1", "dlc_O2", "dlc_O3", *AU])
def test_every_vector_length_gives_the_same_sum(level: str, lanes: int) -> None:
    bags = Bags((2, 0, 3), 9)

    run(level, bags, lanes=lanes)

    np.testing.assert_array_equal(bags.out, bags.expected())


def expected_counts(level: str, bags: Bags) -> tuple[int, int]:
    """Tokens and data entries by the push lists: D or n = ceil(D/V) a lookup, 1 a bag."""
    lookups, dim = len(bags.indices), bags.dim
    vectors = -(-dim // V)
    match level:
        case "dlc_O0":
            return lookups * dim, lookups * 3 * dim
        case "dlc_O1" | "au_O1":
            return lookups * vectors, lookups * 3 * vectors
        case "dlc_O2":
            return lookups, lookups * (1 + vectors)
        case "dlc_O3" | "au_O3":
            return lookups + bags.bags, lookups * vectors
        case _:
            return 0, 0


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("level", EVERY_LEVEL)
def test_counts_are_those_of_the_push_lists(level: str, dim: int) -> None:
    bags = Bags((2, 0, 3, 0), dim)

    counts = run(level, bags)

    assert (counts.tokens, counts.data_entries) == expected_counts(level, bags)


def test_counts_by_token_tell_rows_from_bag_ends() -> None:
    assert run("dlc_O3", Bags((2, 0, 3), 5)).by_token == {2: 5, 1: 3}


class Aliased:
    """Each bag adds the row before its own, and the table is the output."""

    def __init__(self) -> None:
        self.out = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)
        self.arguments = [np.array([0, 0, 1, 2, 3]), np.array([0, 1, 2]), self.out, self.out, 4]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [(Schedule.LOCKSTEP, [1, 3, 6, 10]), (Schedule.AHEAD, [1, 3, 5, 7])],
    ids=["lockstep", "ahead"],
)
def test_table_that_is_the_output_shows_in_the_schedule(
    schedule: Schedule, expected: list[float]
) -> None:
    aliased = Aliased()

    run("dlc_O0", aliased, schedule)

    assert aliased.out[:, 0].tolist() == expected


@pytest.mark.parametrize("case", SMALL_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("level", ["scf", "dlc_O3", "au_O3"])
def test_level_gives_the_expected_answer_of_the_case(level: str, case: Case) -> None:
    request = case.request()
    lookup = Bags((), case.embedding_dim)
    lookup.offsets = request.offsets.astype(np.int64)
    lookup.indices = request.indices.astype(np.int64)
    lookup.table, lookup.bags = case.table(), len(request.offsets) - 1
    lookup.out = np.zeros((lookup.bags, case.embedding_dim), np.float32)

    run(level, lookup)

    assert bit_equal(lookup.out, case.expected())
