# pyright: basic
import numpy as np
import pytest

from ember_hw.host.tests.cases import CASES, SMALL_CASES, Case


def test_names_and_seeds_are_unique():
    assert len({case.name for case in CASES}) == len(CASES)
    assert len({case.seed for case in CASES}) == len(CASES)


def test_small_cases_are_small():
    assert all(case.indices.size <= 200 and case.embedding_dim <= 1024 for case in SMALL_CASES)
    assert all(case in SMALL_CASES for case in CASES if not case.large)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_table_is_the_same_each_time_and_its_rows_differ(case: Case):
    table = case.table()
    assert table.shape == (case.num_embeddings, case.embedding_dim)
    assert table.dtype == np.float32
    assert table.tobytes() == case.table().tobytes()
    request = case.request()
    rows = table[np.unique(request.indices[: request.offsets[-1]])]
    assert len({row.tobytes() for row in rows}) == len(rows)


@pytest.mark.parametrize("case", [c for c in CASES if c.poison_unread], ids=lambda c: c.name)
def test_poison_stands_only_where_no_bag_reads(case: Case):
    assert np.isnan(case.table()).all(axis=1).any()
    assert np.isfinite(case.expected()).all()


def test_tables_hold_what_breaks_shortcuts():
    table = CASES[0].table()
    magnitudes = np.abs(table[table != 0])
    assert magnitudes.max() > 2.0**90
    assert magnitudes.min() < np.finfo(np.float32).tiny
    assert (np.signbit(table) & (table == 0)).any()


def test_the_order_of_summation_shows():
    case = next(case for case in CASES if case.name == "length_17")
    request = case.request()
    reverse = case.indices.reshape(3, 17)[:, ::-1].reshape(-1)
    backwards = Case("", 50, 8, reverse, case.offsets, seed=case.seed)
    assert request.offsets.tolist() == backwards.request().offsets.tolist()
    assert (case.expected() != backwards.expected()).any()
