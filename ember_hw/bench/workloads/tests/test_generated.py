"""Every level of every kernel: the traffic of the closed form, the same result, the same rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ember_hw.bench.simulated import check_rows
from ember_hw.bench.workload import Workload
from ember_hw.bench.workloads.attention import attention, scores, values
from ember_hw.bench.workloads.case import Case
from ember_hw.bench.workloads.cases import unit_of
from ember_hw.bench.workloads.dlrm import bags_of_tables
from ember_hw.bench.workloads.formulas import traffic
from ember_hw.bench.workloads.generated import generate, lower_alone
from ember_hw.bench.workloads.graphs import message_passing, spmm
from ember_hw.bench.workloads.triples import transe
from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.errors import DeviceError


def tables(seed: int) -> Case:
    return bags_of_tables(
        "tables", [9, 3, 20], [2, 0, 5], 32,
        exponent=0.0, seed=seed, bags=3, published_rows=20,
    )  # fmt: skip


CASES: dict[str, Callable[[int], Case]] = {
    "tables": tables,
    "spmm": lambda seed: spmm("kronecker", seed=seed, nodes=16, dim=16),
    "fusedmm": lambda seed: message_passing("kronecker", seed=seed, nodes=16, dim=16),
    "transe": lambda seed: transe("UMLS", seed=seed, dim=16, most=7),
    "attention": lambda seed: attention(2, seed=seed, blocks=5, row_bytes=64),
    "scores": lambda seed: scores(2, seed=seed, blocks=4, attended=3, dim=16),
    "long scores": lambda seed: scores(6, seed=seed, blocks=3, attended=2, dim=16),
    "values": lambda seed: values(4, seed=seed, blocks=3, attended=2, dim=16),
    "long values": lambda seed: values(5, seed=seed, blocks=3, attended=2, dim=16),
}


def expected(case: Case) -> dict[str, np.ndarray]:
    """Return the results by NumPy, up to the order of sums."""
    a = case.arrays
    match case.kernel:
        case "tables":
            out = np.zeros(case.outputs["out"])
            bags = np.repeat(np.arange(len(out)), np.diff(a["off"]))
            rows = a["idx"] + a["base"][bags // case.values["B"]]
            np.add.at(out, bags, a["tab"][rows])
            return {"out": out}
        case "spmm" | "fusedmm":
            nodes = np.repeat(np.arange(case.values["N"]), np.diff(a["ptr"]))
            table = a["x"] if case.kernel == "spmm" else a["y"]
            rows = table[a["col"]].astype(np.float64)
            if case.kernel == "spmm":
                weights = a["val"].astype(np.float64)
            else:
                weights = 1 / (1 + np.exp(-(a["x"][nodes] * rows).sum(axis=1)))
            out = np.zeros(case.outputs["out"])
            np.add.at(out, nodes, weights[:, None] * rows)
            return {"out": out}
        case "transe":
            head, tail = (a["entities"][a[name]] for name in ("head", "tail"))
            return {"out": -np.abs(head + a["relations"][a["relation"]] - tail).sum(axis=1)}
        case "scores" | "values":
            count = len(a["near"]) // len(a["blk"])
            near = a["near"].reshape(len(a["blk"]), count, -1)
            gathered = (
                a["tab"]
                .reshape(len(near), count, -1)[a["blk"]]
                .reshape(len(near), -1, a["tab"].shape[1])
            )
            if case.kernel == "scores":
                gathered = gathered.transpose(0, 2, 1)
            return {"out": (near @ gathered).reshape(case.outputs["out"])}
        case _:
            return {"oq": a["q"], "ok": a["k"][a["blk"]], "ov": a["v"][a["blk"]]}


@pytest.mark.parametrize("width_bits", [512, 128])
@pytest.mark.parametrize("name", CASES)
def test_traffic_is_that_of_the_closed_form_and_the_result_that_of_numpy(
    name: str, width_bits: int
) -> None:
    case = CASES[name](2)
    results: list[dict[str, bytes]] = []
    for opt_level in case.opt_levels:
        generated = generate(case, opt_level, unit_of(width_bits))
        found = generated.traffic()
        alone = lower_alone(case, opt_level, generated.lanes).traffic()
        for counts, hardware in ((found, True), (alone, False)):
            wanted = traffic(case, opt_level, generated.lanes, hardware=hardware)
            lookups = case.sizes.lookups
            assert (counts.tokens, counts.entries) == (
                lookups * wanted.tokens,
                lookups * wanted.entries,
            ), (opt_level, hardware)
        for symbol, array in expected(case).items():
            if symbol == "out":
                np.testing.assert_allclose(found.outputs[symbol], array, rtol=1e-5, atol=1e-5)
            else:
                assert np.array_equal(found.outputs[symbol].view("u4"), array.view("u4"))
        results.append({symbol: array.tobytes() for symbol, array in found.outputs.items()})
    assert all(result == results[0] for result in results)


def check(workload: Workload, width_bits: int = 512) -> None:
    """Interpret the microcode and hold its rows against those that the workload names."""
    launch = workload.launch(unit_of(width_bits))
    regions = [(region.base, region.data) for region in launch.regions]
    chunks = list(execute(launch.microcode, regions, requests=[launch.arguments]))
    check_rows(workload, chunks, chunks, np.concatenate([chunk.row_keep for chunk in chunks]))


@pytest.mark.parametrize("width_bits", [512, 128])
@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_of_the_hand_written_program(name: str, width_bits: int) -> None:
    case = CASES[name](5)
    for opt_level in case.opt_levels:
        workloads = generate(case, opt_level, unit_of(width_bits)).workloads()
        is_split = opt_level < 2 and name in ("fusedmm", "attention")
        assert len(workloads) == 1 + is_split
        for workload in workloads:
            assert (workload.rows is not None) is (opt_level >= 2)
            check(workload, width_bits)


def test_other_rows_are_found_out() -> None:
    case = tables(0)
    (workload,) = generate(case, 3, unit_of(512)).workloads()
    case.arrays["tab"].view("u4")[...] ^= 1
    with pytest.raises(
        DeviceError, match=r"^rows of 'tables, level 3' must be NumPy's, and aren't$"
    ):
        check(workload)
