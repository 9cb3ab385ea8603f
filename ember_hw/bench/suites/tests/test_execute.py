from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.bench import pooled
from ember_hw.bench.pooled import Operation, Pair, Run, Unit, bags_of, limit_of, of_case
from ember_hw.bench.registry import Job
from ember_hw.bench.suites import execute
from ember_hw.bench.tests.fakes import Silent
from ember_hw.bench.workloads.cases import cases, unit_of
from ember_hw.config import AcceleratorConfig
from ember_hw.demo.tests.results import a_report
from ember_hw.errors import DeviceError
from ember_hw.host.report import NestReport

POOLED = ("RM", "dlrm", "SpMM", "Movie")


class APair:
    """Takes 1,000 cycles in the fabric; a row has 64 bytes and leaves every second cycle."""

    def __init__(
        self,
        job: Any,
        base: AcceleratorConfig,
        sinks: tuple[str, ...],
        results: str = "stream",
        reduce_dot: int = 0,
    ) -> None:
        config = base.with_changes(execute="reduce", results=results, reduce_dot=reduce_dot)
        self.fabric: Any = type("AUnit", (), {"config": config, "memory": "fake"})
        self._sinks = sinks

    def __enter__(self) -> APair:
        return self

    def __exit__(self, *_: object) -> None: ...

    def run(self, operation: Operation) -> tuple[Run, dict[str, Run]]:
        is_sum = operation.name.endswith(", sums")
        is_pooled = operation.name.startswith(POOLED) or is_sum
        result_bytes = 4 if is_sum else 64
        rows, results = operation.lookups, operation.groups if is_pooled else operation.lookups
        facts = {"cycles": 1000, "row_beats": 4 * rows, "index_beats": 0, "bundles": rows}
        nest = NestReport(
            "nest",
            **facts,
            rows=rows,
            useful_bytes=64 * rows,
            results=results,
            leaving_bytes=result_bytes * results,
            execute="fabric" if is_pooled else "host",
            reason="" if is_pooled else "it folds",
        )
        shared = {"useful_bytes": 64 * rows, "leaving_bytes": result_bytes * results, "rows": rows}
        report = a_report(**shared, results=results, cycles=1000, nests=(nest,), bus_bytes=16)
        ends = np.arange(0, 80 * 32, 32).astype(np.uint64)
        fabric = Run(report, (), ends)
        others = {
            sink: Run(a_report(cycles=990 if sink == "ideal" else 5000), (), ends)
            for sink in self._sinks
        }
        return fabric, others


@pytest.fixture
def _pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "_pair", APair)


@pytest.mark.usefixtures("_pairs")
def test_a_pooled_operation_has_cycles_beside_both_sinks_and_bytes() -> None:
    rows = list(execute.run(Job(watcher=Silent(), quick=True, only="SpMM*")))
    assert [row.metric for row in rows] == [
        "cycles, reduce beside ideal",
        "cycles, reduce beside core-like",
        "bytes that leave",
    ]
    assert [row.ratio for row in rows[:2]] == [0.99, 5.0]
    assert (rows[2].ratio, rows[2].bar) == (1.0, 1.0)
    assert rows[2].params["pooling_factor"] == pytest.approx(156 / 34)


@pytest.mark.usefixtures("_pairs")
def test_what_the_host_runs_says_why() -> None:
    first, row = execute.run(Job(watcher=Silent(), quick=True, only="MP*"))
    assert first.metric == "cycles, reduce beside ideal"
    assert (row.metric, row.bar, row.ratio) == ("bytes that leave, host", None, 1.0)
    assert (row.params["execute"], row.params["reason"]) == ("host", "it folds")


@pytest.mark.usefixtures("_pairs")
def test_of_a_sum_across_rows_a_number_leaves() -> None:
    rows = list(execute.run(Job(watcher=Silent(), quick=True, only="*, sums")))
    assert {row.workload for row in rows} == {"KG/UMLS, sums"}
    bytes_ = rows[-1]
    assert (bytes_.value, bytes_.reference_name, bytes_.bar) == (400, "a number for each sum", 1.0)
    assert bytes_.ratio == 1.0
    names = {row.workload for row in execute.sums(Job(watcher=Silent(), only="MP edges*"))}
    assert len(names) == 4


@pytest.mark.usefixtures("_pairs")
def test_of_attention_a_number_leaves_for_each_query_and_key() -> None:
    rows = list(execute.sums(Job(watcher=Silent(), only="SpAttn scores/4*")))
    (bytes_,) = [row for row in rows if row.metric == "bytes that leave"]
    assert bytes_.workload == "SpAttn scores/4 a block, sums"
    # 64 blocks of 4 queries, 5 blocks of 4 keys for each.
    assert bytes_.reference == 4 * 64 * 5 * 4 * 4


@pytest.mark.usefixtures("_pairs")
def test_bags_are_held_against_the_limit_of_the_port() -> None:
    rows = list(execute.run(Job(watcher=Silent(), only="128-bit*bag*")))
    assert len(rows) == 2 * 3 * 3 * 2
    for name, results in (("", "stream"), (", to memory", "memory")):
        row = next(row for row in rows if row.workload == f"128-bit/128 B/bag 8{name}")
        assert (row.metric, row.bar) == ("no lost beat", 0.98)
        assert row.value == pytest.approx(1.0), "8 rows of 64 bytes in 32 cycles of 16"
        assert row.reference == pytest.approx(128 / (128 + 4 + 4 / 8))
        assert row.params["results_go_to"] == results


@pytest.mark.usefixtures("_pairs")
def test_copies_go_from_memory_to_memory() -> None:
    rows = list(execute.run(Job(watcher=Silent(), only="128-bit/Embedding*")))
    assert [row.params["row_bytes"] for row in rows] == [64, 256, 512]
    for row in rows:
        assert (row.metric, row.bar, row.params["results_go_to"]) == (
            *("beats copied", 0.98),
            "memory",
        )
        assert row.reference == pytest.approx(
            row.params["row_bytes"] / (row.params["row_bytes"] + 4)
        )
    (quick,) = execute.run(Job(watcher=Silent(), quick=True, only="128-bit/Embedding*"))
    assert quick.workload == "128-bit/Embedding, 256 B"


def test_the_steady_state_is_cut_between_bursts() -> None:
    """Two results leave at once: cut between them, one would come for nothing."""
    report = a_report(useful_bytes=64 * 80, rows=80, bus_bytes=16)
    ends = (np.arange(80) // 2 * 20 + 100).astype(np.uint64)
    assert Run(report, (), ends).utilisation(1, together=2) == pytest.approx(64 / (10 * 16))
    assert Run(report, (), ends + np.uint64(3)).utilisation(1) == pytest.approx(64 / (10 * 16))
    for results, together in (("stream", 1), ("memory", 2)):
        pair: Any = APair(None, unit_of(128), (), results)
        assert execute._together(128, pair) == together


def test_an_embedding_compiles_to_a_copy() -> None:
    operation = execute.embedding("copy", 64, 1)
    program = operation.compiled(unit_of(128).with_changes(execute="reduce", results="memory"))
    assert program.placement == ((program.nests[0].name, "fabric", "copy"),)


def test_all_operations_of_the_paper_are_there() -> None:
    names = [name for name in cases(quick=False) if name.split("/")[0] in execute._PREFIXES]
    families = {name.split("/")[0] for name in names}
    assert families == {"RM1", "RM2", "RM3", "dlrmv2", "SpMM", "KG", "MP"}


@pytest.mark.parametrize("is_weighted", [False, True])
def test_bags_compile_for_both_units(is_weighted: bool) -> None:
    case = bags_of(64, 4, is_weighted=is_weighted, lookups=8, seed=1)
    operation = of_case(case)
    base = unit_of(128)
    assert 0 < limit_of(case.params, base) < 1
    wanted = "weighted sum" if is_weighted else "sum"
    program = operation.compiled(base.with_changes(execute="reduce"))
    assert program.placement == ((program.nests[0].name, "fabric", wanted),)
    assert operation.compiled(base).nests[0].execute == "host"


def test_other_bits_of_the_host_end_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    class AUnit(Unit):
        def __init__(self, config: AcceleratorConfig, **_: Any) -> None:
            self.config = config
            self.memory = "fake"

        def __exit__(self, *_: object) -> None: ...

        def run(self, operation: Operation) -> Run:
            value = 1.0 if self.config.execute == "reduce" else 2.0
            return Run(a_report(), (np.array([value], np.float32),), np.zeros(0, np.uint64))

    monkeypatch.setattr(pooled, "Unit", AUnit)
    operation = Operation("sums", lambda config: NotImplemented, {}, {}, 1, 1)
    with Pair(unit_of(128), ("ideal",)) as pair, pytest.raises(DeviceError) as caught:
        pair.run(operation)
    assert str(caught.value) == (
        "results of 'sums' must be those of the host with the ideal sink bit for bit, and aren't"
    )
