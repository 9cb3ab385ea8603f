from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host.backends import verilator
from ember_hw.host.bindings import binding_of
from ember_hw.host.device import Device, open_device
from ember_hw.host.launch import LoadedProgram
from ember_hw.host.reference import bit_equal
from ember_hw.host.tests.cases import CASES, SMALL_CASES, Case
from ember_hw.host.tests.programs import bag_program, with_rows
from ember_hw.registers import NO_UNIT, STATUS, FaultCode, State, describe_fault
from ember_hw.sim.build import build_model
from ember_hw.sim.model import SimulationError, VerilatorModel
from ember_hw.sim.options import IdealMemory, StallingSink, TestMemory, Trace

pytestmark = [pytest.mark.verilator, pytest.mark.timeout(900)]  # the first one builds the model

CONFIG = AcceleratorConfig.preset("tiny")
TABLE = np.random.default_rng(0).standard_normal((10, 7), np.float32)
INPUTS = (np.array([3, 1, 4, 1]), np.array([0, 0, 3]))
POOLED = np.stack([np.zeros(7, np.float32), (TABLE[3] + TABLE[1]) + TABLE[4], TABLE[1]])


def open_tiny(**options: Any) -> Device:
    return open_device("verilator", config=CONFIG, optimise=False, **options)


@pytest.fixture(scope="module")
def shared() -> Iterator[Device]:
    with open_tiny() as device:
        yield device


@pytest.fixture
def device(shared: Device) -> Device:
    """The module's one device; that a test before it failed a run must not matter."""
    return shared


@pytest.fixture
def backend() -> Iterator[verilator.Backend]:
    opened = verilator.Backend(CONFIG, optimise=False)
    yield opened
    opened.close()


def run_case(device: Device, case: Case, opt_level: int) -> np.ndarray:
    last = case.include_last_offset
    program = bag_program(case.table(), opt_level, config=CONFIG, include_last_offset=last)
    inputs = (case.indices,) if case.offsets is None else (case.indices, case.offsets)
    return device.run(program, inputs)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_gives_its_one_answer(device: Device, case: Case) -> None:
    assert bit_equal(run_case(device, case, 3), case.expected())


@pytest.mark.parametrize("opt_level", [0, 1, 2])
def test_every_level_gives_the_one_answer(device: Device, opt_level: int) -> None:
    for case in SMALL_CASES:
        assert bit_equal(run_case(device, case, opt_level), case.expected()), case.name


def test_runs_of_one_size_read_what_each_brings(device: Device) -> None:
    program = bag_program(TABLE, config=CONFIG)
    for shift in (0, 1, 2, 0):
        rows = TABLE[shift:]
        expected = np.stack([np.zeros(7, np.float32), (rows[3] + rows[1]) + rows[4], rows[1]])
        assert bit_equal(device.run(program, (INPUTS[0] + shift, INPUTS[1])), expected)


@pytest.mark.parametrize("sink", ["ideal", "core-like"])
def test_answer_does_not_depend_on_memory_and_sink(sink: str) -> None:
    with open_tiny(memory=TestMemory(seed=3), sink=sink) as device:
        for opt_level in range(4):
            program = bag_program(TABLE, opt_level, config=CONFIG)
            assert bit_equal(device.run(program, INPUTS), POOLED)
        memory = "test (latency 1 to 200 cycles, stalls, seed 3)"
        assert (device.report.memory, device.report.sink) == (memory, sink)


def test_report_has_the_hardware_s_counters(device: Device) -> None:
    device.run(bag_program(TABLE, config=CONFIG), INPUTS)
    report = device.report
    assert report.memory == "ideal (latency 100 cycles)"
    assert (report.lookups, report.bundles, report.rows, report.row_beats) == (4, 5, 4, 16)
    assert report.useful_bytes == 4 * 28
    assert report.cycles is not None
    assert report.cycles > 300  # three loads in a row
    beats = report.row_beats + (report.index_beats or 0)
    assert beats + sum(report.stalls.values()) == report.cycles
    assert report.utilisation == 112 / (report.cycles * 8)


@pytest.mark.parametrize("opt_level", [0, 3])
def test_report_has_what_the_simulation_saw(device: Device, opt_level: int) -> None:
    many = np.arange(500) % 10
    device.run(bag_program(TABLE, opt_level, config=CONFIG), (many, np.array([0])))
    report = device.report
    profile = report.profile
    assert profile is not None
    assert {name: queue.most for name, queue in profile.occupancy.items()} == report.high_water
    for queue in profile.occupancy.values():
        assert sum(queue.cycles) == report.cycles
    assert profile.reuse is not None
    assert profile.reuse.read_bytes == report.moved_bytes
    assert 200 < profile.fill_cycles < 600
    assert 0 <= profile.drain_cycles < 20
    assert profile.bound_cycles is not None
    assert profile.bound_cycles <= (report.cycles or 0)
    assert report.limits["port"] == report.row_beats + (report.index_beats or 0)
    assert all(share <= 1 for share in report.limit_shares.values())


def test_profile_is_that_of_the_latest_launch(device: Device) -> None:
    program = bag_program(TABLE, config=CONFIG)
    device.run(program, (np.arange(50) % 10, np.array([0])))
    device.run(program, INPUTS)
    report = device.report
    device.run(program, (np.arange(70) % 10, np.array([0])))
    assert report.profile is not None
    assert sum(report.profile.occupancy["tokens"].cycles) == report.cycles
    assert report.profile.reuse is not None
    assert report.profile.reuse.read_bytes == report.moved_bytes


def test_execute_side_that_is_the_limit_is_told() -> None:
    program = bag_program(TABLE, config=CONFIG)
    with open_tiny(sink="core-like", memory=IdealMemory(latency_cycles=1)) as device:
        device.run(program, (np.arange(300) % 10, np.array([0])))
        report = device.report
    # Tokens of 300 lookups, of the end of the bag and of that of the root; rows of 28 bytes.
    assert report.limits["execute"] == 4 * 302 + 300 * 28 // 16
    assert max(report.limits, key=lambda name: report.limits[name]) == "execute"


def test_trace_that_is_too_long_to_keep_has_no_bound(
    backend: verilator.Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "_most_reads", 5)
    device = Device("verilator", backend)
    device.run(bag_program(TABLE, config=CONFIG), INPUTS)
    profile = device.report.profile
    assert profile is not None
    assert profile.bound_cycles is profile.reuse is None
    assert "memory" not in device.report.limits
    assert len(backend.reads()) == 5


def test_progress_tells_of_lookups_and_cycles(device: Device) -> None:
    told: list[tuple[int, int | None, int | None]] = []
    many = np.arange(20_000) % 10
    device.run(
        bag_program(TABLE, config=CONFIG),
        (many, np.array([0])),
        progress=lambda done, total, cycles: told.append((done, total, cycles)),
    )
    assert len(told) > 1  # 4 beats a row, 65,536 at a time
    assert told == sorted(told)
    done, total, cycles = told[-1]
    assert done == total == 20_000
    assert abs((cycles or 0) - (device.report.cycles or 0)) < 10


def test_trace_is_a_window_from_the_start_of_each_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the window writes is tested in sim/, on a model that is built in less time."""
    built_with: list[str] = []
    events: list[tuple[str, int, int]] = []

    def build(*arguments: Any, trace: str, **options: Any) -> Path:
        built_with.append(trace)
        return build_model(*arguments, **options)

    def open_trace(
        model: VerilatorModel, path: Path, *, first: int, end: int, by_rows: bool
    ) -> None:
        now = 0 if by_rows else model.counters().cycles
        events.append((path.name, first - now, end - now))

    def close_trace(_: VerilatorModel) -> None:
        events.append(("close", 0, 0))

    monkeypatch.setattr(verilator, "build_model", build)
    monkeypatch.setattr(VerilatorModel, "open_trace", open_trace)
    monkeypatch.setattr(VerilatorModel, "close_trace", close_trace)
    monkeypatch.setattr(VerilatorModel, "traced_cycles", 30)
    for trace in (
        Trace(path=tmp_path / "run.vcd", first=20, end=50),
        Trace(path=tmp_path / "run.fst", first=20, end=50, by="lookups"),
    ):
        with open_tiny(trace=trace) as device:
            for _ in range(2):
                device.run(bag_program(TABLE, config=CONFIG), INPUTS)
        assert events == [(trace.path.name, 20, 50), ("close", 0, 0)] * 2
        events.clear()
    assert built_with == ["vcd", "fst"]


def test_trace_that_can_t_be_written_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    told: list[str] = []
    trace = Trace(path=tmp_path / "missing" / "run.vcd")
    message = (
        f"trace must go to a file that can be written, not {str(trace.path)!r} "
        "(No such file or directory)"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        verilator.Backend(CONFIG, trace=trace, progress=told.append)
    assert told == []


def test_shorter_latency_takes_fewer_cycles(device: Device) -> None:
    program = bag_program(TABLE, config=CONFIG)
    device.run(program, INPUTS)
    with open_tiny(memory=IdealMemory(latency_cycles=10)) as quick:
        quick.run(program, INPUTS)
        assert (quick.report.cycles or 0) + 200 < (device.report.cycles or 0)


def test_fault_is_decoded_and_the_next_run_is_right(device: Device) -> None:
    program = bag_program(TABLE, config=CONFIG)
    broken = with_rows(program, 4)
    message = describe_fault(FaultCode.INDEX_OUT_OF_RANGE, NO_UNIT, 0, 4)
    with pytest.raises(DeviceError, match=f"^{re.escape(message)}$") as caught:
        device.run(broken, INPUTS)
    assert caught.value.code == FaultCode.INDEX_OUT_OF_RANGE
    assert (caught.value.unit, caught.value.stream, caught.value.address) == (NO_UNIT, 0, 4)
    assert bit_equal(device.run(program, INPUTS), POOLED)


def test_only_changed_words_are_written(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    program = bag_program(TABLE, config=CONFIG)
    device.run(program, INPUTS)
    written: list[int] = []
    write_register = VerilatorModel.write_register

    def record(model: VerilatorModel, address: int, value: int) -> None:
        written.append(address)
        write_register(model, address, value)

    monkeypatch.setattr(VerilatorModel, "write_register", record)
    assert bit_equal(device.run(program, INPUTS), POOLED)
    assert len(written) == 1  # the start
    shorter = (INPUTS[0], INPUTS[1][:2])
    assert device.run(program, shorter).shape == (2, 7)
    assert 2 < len(written) < 6  # the number of bags, the bytes of the offsets, the start


def test_run_that_is_given_up_leaves_no_trace(backend: verilator.Backend) -> None:
    many = np.arange(70_000) % 10
    program = bag_program(TABLE[:, :2].copy(), config=CONFIG)
    request = binding_of(program).request(program, (many, np.array([0])))
    (launch,) = LoadedProgram(program).launches(request)
    chunks = backend.execute(launch)
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]  # a generator
    assert bit_equal(
        Device("verilator", backend).run(bag_program(TABLE, config=CONFIG), INPUTS), POOLED
    )


def test_hang_is_reported_and_the_next_run_is_right() -> None:
    backend = verilator.Backend(
        CONFIG, memory=IdealMemory(latency_cycles=500), optimise=False, max_idle_cycles=400
    )
    device = Device("verilator", backend)
    program = bag_program(TABLE, config=CONFIG)
    message = (
        "the access unit must go on, but nothing moved for 400 cycles in state RUNNING: cycles "
    )
    with pytest.raises(DeviceError, match=f"^{message}\\d+, row_beats 0, .*'front': ") as caught:
        device.run(program, INPUTS)
    head, *queues = str(caught.value).splitlines()
    assert head.endswith("; what waits:")
    assert queues == [
        "  bundles           0 of 16: bundles waiting",
        "  row beats         0 of 16: beats in the reorder buffer",
        "  outstanding       0 of 4: row reads in flight",
        "  tokens            0 of 16: iterations waiting for loads",
        "  bundle stream     ready, but not valid",
        "  row stream        ready, but not valid",
        "  m_axi requests    ready, but not valid",
        "  m_axi beats       ready, but not valid; 1 bursts outstanding",
    ]
    backend.max_idle_cycles = 1000
    assert bit_equal(device.run(program, INPUTS), POOLED)
    device.close()


def test_failed_model_is_replaced(
    backend: verilator.Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, program = Device("verilator", backend), bag_program(TABLE, config=CONFIG)

    def fail(model: VerilatorModel, **_: Any) -> None:
        raise SimulationError("an assertion failed")

    with monkeypatch.context() as patch:
        patch.setattr(VerilatorModel, "run", fail)
        with pytest.raises(SimulationError, match=r"^an assertion failed$"):
            device.run(program, INPUTS)
    assert bit_equal(device.run(program, INPUTS), POOLED)


def test_hardware_of_another_config_is_refused(
    backend: verilator.Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.close()
    monkeypatch.setattr(verilator, "MAGIC_VALUE", 0x1234)
    message = "register MAGIC must be 0x1234 for config 'tiny', not 0x454d4252"
    with pytest.raises(DeviceError, match=f"^{message}$"):
        Device("verilator", backend).run(bag_program(TABLE, config=CONFIG), INPUTS)


def status_reads(state: State, times: int) -> Callable[[VerilatorModel, int], int]:
    """Make the first reads of STATUS answer this state."""
    read_register, left = VerilatorModel.read_register, iter(range(times))

    def read(model: VerilatorModel, address: int) -> int:
        if address == STATUS.address and next(left, None) is not None:
            return int(state)
        return read_register(model, address)

    return read


def test_unit_that_never_gets_idle_is_refused(
    backend: verilator.Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.close()
    monkeypatch.setattr(VerilatorModel, "read_register", status_reads(State.RESETTING, 10_000))
    message = "state after a reset must be IDLE, not RESETTING"
    with pytest.raises(DeviceError, match=f"^{message}$"):
        Device("verilator", backend).run(bag_program(TABLE, config=CONFIG), INPUTS)


def test_end_in_another_state_is_refused(
    backend: verilator.Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, program = Device("verilator", backend), bag_program(TABLE, config=CONFIG)
    monkeypatch.setattr(VerilatorModel, "read_register", status_reads(State.DRAINING, 1))
    message = "state at the end of a program must be DONE, not DRAINING"
    with pytest.raises(DeviceError, match=f"^{message}$"):
        device.run(program, INPUTS)
    assert bit_equal(device.run(program, INPUTS), POOLED)


@pytest.mark.parametrize(
    "sink", ["ideal", "core-like", StallingSink(seed=5, stall_probability=0.5)]
)
def test_fault_ends_whatever_the_execute_side_waits_for(
    sink: Any,
) -> None:
    """An execute side that has a bundle waits for its rows, and some of them never come."""
    program = bag_program(TABLE, config=CONFIG)
    wrong = with_rows(program, 4)
    many = (np.array([3, 1, 2, 9] * 20), np.array([0, 40]))
    with open_tiny(sink=sink, max_idle_cycles=3_000) as device:
        for _ in range(2):
            with pytest.raises(DeviceError, match="INDEX_OUT_OF_RANGE"):
                device.run(wrong, many)
            assert bit_equal(device.run(program, INPUTS), POOLED)
