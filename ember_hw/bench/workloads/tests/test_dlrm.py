from __future__ import annotations

import numpy as np
import pytest

from ember_hw.bench.workloads import dlrm


def test_dlrmv2_has_26_tables_and_214_lookups_a_sample() -> None:
    assert len(dlrm.DLRMV2_ROWS) == len(dlrm.DLRMV2_LOOKUPS) == 26
    assert sum(dlrm.DLRMV2_LOOKUPS) == 214
    case = dlrm.dlrmv2(seed=0, bags=2)
    assert case.sizes.lookups == 2 * 214
    assert case.arrays["tab"].shape[1] == 128
    lengths = np.diff(case.arrays["off"]).reshape(26, 2)
    assert lengths.T.tolist() == [list(dlrm.DLRMV2_LOOKUPS)] * 2


@pytest.mark.parametrize("model", dlrm.MODELS)
def test_rows_are_the_published_ones_over_256(model: str) -> None:
    case = dlrm.recommender(model, 0.0, seed=1, bags=1, tables=2)
    shape = dlrm.MODELS[model]
    assert case.name == f"{model}/uniform"
    assert case.params["rows"] == shape.rows // 256
    assert case.params["published_rows"] == shape.rows
    assert len(case.arrays["tab"]) == 2 * (shape.rows // 256)
    assert case.sizes.lookups == 2 * shape.lookups
    assert case.sizes.lookups_a_group == shape.lookups


def test_localities_differ_in_how_often_rows_come_again() -> None:
    distinct = [
        len(np.unique(dlrm.recommender("RM1", e, seed=0, bags=4, tables=1).arrays["idx"]))
        for e in dlrm.LOCALITIES
    ]
    assert distinct == sorted(distinct, reverse=True)
    assert distinct[0] > 1.5 * distinct[-1]


def test_rows_of_a_table_are_its_own() -> None:
    case = dlrm.dlrmv2(seed=3, bags=1)
    ends = np.append(case.arrays["base"][1:], len(case.arrays["tab"]))
    rows = ends - case.arrays["base"]
    assert rows.tolist() == [min(rows, dlrm.MOST_ROWS) for rows in dlrm.DLRMV2_ROWS]
    table = np.repeat(np.arange(26), dlrm.DLRMV2_LOOKUPS)
    assert (case.arrays["idx"] < rows[table]).all()
    gathered = case.arrays["tab"][case.arrays["base"][table] + case.arrays["idx"]]
    assert np.array_equal(case.rows, gathered.view(np.uint8).reshape(-1))
