from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import ember_hw
from ember_hw.demo import movielens, run
from ember_hw.demo.tests.results import a_report, a_result
from ember_hw.host.reference import exact
from ember_hw.host.request import normalise_request


def test_table_depends_on_the_seed_alone() -> None:
    assert np.array_equal(run.make_table(7), run.make_table(7))
    assert not np.array_equal(run.make_table(7), run.make_table(8))
    assert run.make_table(7).shape == (1683, 64)


def test_torch_is_within_rounding_and_a_changed_row_is_not() -> None:
    table = run.make_table(1)
    indices, offsets = np.arange(1, 401), np.array([0, 100, 100])
    request = normalise_request(indices, offsets, num_embeddings=len(table))
    pooled = exact(table, request)
    bag = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(table), mode="sum")
    second_opinion = bag(torch.from_numpy(indices), torch.from_numpy(offsets)).numpy()
    assert run.compare_with_torch(pooled, second_opinion, table, request)[0] == 0
    pooled[2, 5] += 0.25
    count, largest = run.compare_with_torch(pooled, second_opinion, table, request)
    assert count == 1
    assert largest == pytest.approx(0.25, abs=1e-3)
    pooled[0, 0] = np.nan
    assert run.compare_with_torch(pooled, second_opinion, table, request)[0] == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"mismatches": 1},
        {"torch_mismatches": 1},
        {"report": a_report(useful_bytes=25_600_000 - 256)},
        {"report": a_report(useful_bytes=None)},
    ],
)
def test_any_deviation_makes_the_result_wrong(changes: dict[str, Any]) -> None:
    assert a_result().is_right
    assert not a_result(**changes).is_right


def test_result_is_json_with_the_numbers_of_the_report() -> None:
    values = json.loads(json.dumps(a_result(seed=5).to_dict()))
    assert values["utilisation"] == pytest.approx(0.9685, abs=1e-4)
    assert (values["cycles"], values["lookups"], values["mismatches"]) == (413_000, 100_000, 0)
    assert (values["seed"], values["simulated"], values["is_right"]) == (5, True, True)


def test_wrong_rows_of_the_device_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def device_run(program: object, inputs: tuple[torch.Tensor, torch.Tensor]) -> np.ndarray:
        arrays = (tensor.numpy() for tensor in inputs)
        request = normalise_request(*arrays, num_embeddings=movielens.NUM_EMBEDDINGS)
        pooled = exact(run.make_table(3), request)
        pooled[[5, 700]] *= -1
        return pooled

    device = SimpleNamespace(run=device_run, report=a_report())
    microcode = SimpleNamespace(encode=lambda: [0] * 9)
    program = SimpleNamespace(opt_level=3, ir={"au": "a\nb\n"}, microcode=microcode)
    monkeypatch.setattr(ember_hw, "compile", lambda *_, **__: program, raising=False)
    monkeypatch.setattr(ember_hw, "open_device", lambda *_, **__: device, raising=False)
    steps: list[str] = []
    result = run.run(seed=3, step=steps.append)
    assert (result.mismatches, result.torch_mismatches) == (2, 2)
    assert (result.ir_lines, result.microcode_words) == ({"au": 2}, 9)
    assert not result.is_right
    assert len(steps) == 5


def test_description_shows_program_report_and_verdict() -> None:
    text = run.describe(a_result())
    assert "levels (lines of text)  scf 30, slc 34, slcvec 36, dlc 28, au 12\n" in text
    assert "cycles                  413,000\n" in text
    assert text.endswith("verdict                 right (simulated)")


def test_description_of_a_wrong_result_says_so() -> None:
    text = run.describe(a_result(mismatches=2, report=a_report(useful_bytes=0)))
    assert (
        "exact reference         2 of 943 bags differ in any bit; ROWS LOST OR REPEATED\n" in text
    )
    assert text.endswith("verdict                 WRONG")
