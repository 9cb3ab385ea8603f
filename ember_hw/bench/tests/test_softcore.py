import numpy as np
import pytest

from ember_hw.bench import softcore
from ember_hw.bench.registry import Job
from ember_hw.bench.softcore import BAG, BagSums, Way, check_sums, softcore_rows, ways_of
from ember_hw.errors import DeviceError
from ember_hw.sim.softcore import packages
from ember_hw.sim.softcore.packages import CORES, missing_packages
from ember_hw.sim.softcore.run import Kernel, SoftcoreResult

needs_the_extra = pytest.mark.skipif(
    bool(missing_packages()),
    reason=f"the extra `softcore` isn't installed: {', '.join(missing_packages())}",
)


class Watcher:
    def __call__(self, text):
        pass

    def detail(self, text):
        pass

    def reached(self, done, total, cycles):
        pass


@pytest.fixture
def measured(monkeypatch):
    """Stands in for everything that needs the extra; gives what was run."""
    runs = []

    def run_softcore(program, firmware, job, *, latency_cycles, limit_cycles):
        runs.append((job, latency_cycles))
        lookups = BAG * job.bags
        cycles = lookups * ((100 + 10 * job.kernel) if job.kernel.uses_unit else latency_cycles)
        sums = BagSums.make(job.bags, 0).expected()
        return SoftcoreResult(sums, cycles, 5, 1, 2, 3, 4)

    monkeypatch.setattr(softcore, "missing_packages", list)
    monkeypatch.setattr(softcore, "cached_verilog", lambda config, progress: "")
    monkeypatch.setattr(softcore, "build_softcore", lambda *_, **__: None)
    monkeypatch.setattr(softcore, "build_firmware", lambda columns: b"")
    monkeypatch.setattr(softcore, "run_softcore", run_softcore)
    return runs


def test_sums_are_those_of_the_bags():
    sums = BagSums(
        offsets=np.array([0, 2, 2, 3], np.int32),
        indices=np.array([1, 1, 0], np.int32),
        table=np.array([[3, 4], [1 << 30, -5]], np.int32),
    )
    assert sums.expected().tolist() == [[-(1 << 31), -10], [0, 0], [3, 4]]


def test_a_wrong_sum_is_named():
    with pytest.raises(DeviceError, match=r"^sum of bag 1, column 0 of 'here' must be 7, not 8$"):
        check_sums("here", np.array([[1], [8]], np.int32), np.array([[1], [7]], np.int32))


def test_a_core_with_a_data_cache_also_pops_lines():
    lines = [str(way) for way in ways_of(CORES["vexriscv"]) if way.pops_lines]
    assert lines == [
        "with the unit, by row, pops lines",
        "with the unit, by 16 columns, pops lines",
    ]


@pytest.mark.parametrize("kernel", list(Kernel))
def test_a_job_writes_the_microcode_only_where_the_unit_is_used(kernel):
    job = BagSums.make(1, 0).job(Way(kernel))
    assert bool(job.register_writes) == kernel.uses_unit
    assert len({job.row_events, job.sum_events, job.program_events}) == 3


def test_ways_with_the_unit_are_compared_with_the_better_one_without(measured):
    rows = list(softcore_rows(Job(watcher=Watcher(), quick=True)))
    assert len(rows) == len(measured) == 18
    alone = [row for row in rows if " alone" in row.workload]
    assert all(row.reference is None and row.ratio is None for row in alone)
    row = next(row for row in rows if "by row, pops words, latency 100" in row.workload)
    assert (row.value, row.reference) == (120, 100)
    assert row.ratio == pytest.approx(100 / 120)
    assert row.params["setup_cycles"] == 5


def test_only_what_is_wanted_and_what_it_is_compared_with_is_run(measured):
    job = Job(watcher=Watcher(), only="picorv32 with the unit, by row*latency 30")
    (row,) = softcore_rows(job)
    assert row.reference == 30
    assert [(job.kernel, latency) for job, latency in measured] == [
        (Kernel.GATHER_ROWS, 30),
        (Kernel.GATHER_PARTS, 30),
        (Kernel.POP_ROWS, 30),
    ]
    assert list(softcore_rows(Job(watcher=Watcher(), only="gather*"))) == []


def test_a_missing_extra_is_told_of_and_no_error(monkeypatch):
    monkeypatch.setattr(packages, "find_spec", lambda module: None)
    rows = list(softcore_rows(Job(watcher=Watcher())))
    assert [row.workload for row in rows] == [
        f"{name}: skipped, needs pip install 'ember_hw[softcore]'" for name in CORES
    ]
    assert (rows[0].value, rows[0].params["extra"], rows[0].bar) == (3, "softcore", None)


@needs_the_extra
@pytest.mark.verilator
@pytest.mark.slow
def test_the_unit_hides_the_memory_s_latency_from_a_core():
    rows = {row.workload: row.value for row in softcore_rows(Job(watcher=Watcher(), quick=True))}
    alone = [rows[f"vexriscv alone, by 16 columns, latency {n}"] for n in (1, 30, 100)]
    popped = [
        rows[f"vexriscv with the unit, by 16 columns, pops lines, latency {n}"] for n in (1, 100)
    ]
    # Eight line fills a row and one for each eight indices wait for the memory.
    assert alone[1] - alone[0] > 8 * 29
    assert alone[2] - alone[1] > 8 * 70
    assert popped[1] - popped[0] < 5
    assert popped[1] < alone[1]
