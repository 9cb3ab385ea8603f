from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import ember_hw
from ember_hw.compiler.program import Program
from ember_hw.config import AcceleratorConfig
from ember_hw.demo import movielens, run
from ember_hw.demo.tests.results import a_report, a_result
from ember_hw.host.reference import exact
from ember_hw.host.request import normalise_request
from ember_hw.host.tests.programs import bag_program


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
    values = json.loads(json.dumps(a_result(report=a_report(seed=5)).to_dict()))
    assert values["utilisation"] == pytest.approx(0.9685, abs=1e-4)
    assert (values["cycles"], values["lookups"], values["mismatches"]) == (413_000, 100_000, 0)
    assert (values["seed"], values["simulated"], values["is_right"]) == (5, True, True)


class Notes:
    """A watcher that keeps what it was told."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.details: list[str] = []
        self.last: tuple[int, int | None, int | None] | None = None

    def __call__(self, text: str) -> None:
        self.steps.append(text)

    def detail(self, text: str) -> None:
        self.details.append(text)

    def reached(self, done: int, total: int | None, cycles: int | None) -> None:
        self.last = (done, total, cycles)


class WrongDevice:
    """A device that returns two bags with the wrong sign."""

    def __enter__(self) -> WrongDevice:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, program: Program, inputs: tuple[torch.Tensor, ...], *, progress: Any) -> Any:
        assert program.seed == 3
        arrays = (tensor.numpy() for tensor in inputs)
        request = normalise_request(*arrays, num_embeddings=movielens.NUM_EMBEDDINGS)
        pooled = exact(run.make_table(3), request)
        pooled[[5, 700]] *= -1
        progress(100_000, 100_000, 413_000)
        return pooled

    report = a_report(seed=3)


def test_wrong_rows_of_the_device_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def compile_(*_: object, opt_level: int, config: AcceleratorConfig) -> Program:
        program = bag_program(run.make_table(3), opt_level, config=config)
        return replace(program, ir={"au": "a\nb\n"})

    def open_device(backend: str, **options: Any) -> WrongDevice:
        asked.update(options)
        options["progress"]("compiling")
        return WrongDevice()

    monkeypatch.setattr(ember_hw, "compile", compile_, raising=False)
    monkeypatch.setattr(ember_hw, "open_device", open_device, raising=False)
    notes = Notes()
    result = run.run(notes, seed=3, opt_level=2, sink="core-like")
    assert (result.mismatches, result.torch_mismatches) == (2, 2)
    assert (result.ir_lines, result.opt_level) == ({"au": 2}, 2)
    assert not result.is_right
    assert (asked["memory"], asked["sink"]) == ("ideal", "core-like")
    assert len(notes.steps) == 5
    assert notes.details == ["compiling"]
    assert notes.last == (100_000, 100_000, 413_000)


def test_fabric_runs_beside_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def compile_(*_: object, opt_level: int, config: AcceleratorConfig, **how: str) -> Program:
        asked.append((config.execute, how.get("execute", "auto")))
        program = bag_program(run.make_table(3), opt_level, config=config)
        return replace(program, ir={})

    monkeypatch.setattr(ember_hw, "compile", compile_, raising=False)
    monkeypatch.setattr(ember_hw, "open_device", lambda *_, **__: WrongDevice(), raising=False)
    result = run.run(Notes(), seed=3, execute="fabric")
    assert asked == [("queues", "auto"), ("reduce", "fabric")]
    assert result.mismatches == 2 * 2, "of both"
    assert result.to_dict()["host"]["cycles"] == 413_000


def test_unknown_way_to_execute_is_refused() -> None:
    with pytest.raises(ValueError, match="execute") as caught:
        run.run(Notes(), execute="chip")
    assert str(caught.value) == "execute must be 'host' or 'fabric', not 'chip'"


def test_description_shows_both_ways() -> None:
    host = a_report(leaving_bytes=25_600_000)
    fabric = a_report(leaving_bytes=241_408, results=943, cycles=413_020)
    text = run.describe(a_result(report=fabric, host_report=host))
    assert text.endswith(
        "verdict                 right (simulated)\n"
        "host pools              25,600,000 bytes leave in 413,000 cycles\n"
        "fabric pools            241,408 bytes leave in 413,020 cycles\n"
        "bytes that leave        106.0 times fewer with the fabric"
    )


def test_unknown_sink_is_refused_before_anything_runs() -> None:
    notes = Notes()
    with pytest.raises(ValueError, match=r"^sink must be one of ideal, core-like, not 'core'$"):
        run.run(notes, sink="core")
    assert len(notes.steps) == 1


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
