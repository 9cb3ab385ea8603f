from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch

from ember_hw.compiler.program import Nest, Program
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError, ProgramError
from ember_hw.host.backends.interpreter import Backend
from ember_hw.host.device import Device, open_device
from ember_hw.host.execution import Chunk
from ember_hw.host.launch import Launch
from ember_hw.host.launch_plan import LaunchPlan
from ember_hw.host.program_cache import programs_built
from ember_hw.host.reference import bit_equal
from ember_hw.host.tests.cases import CASES, SMALL_CASES, Case
from ember_hw.host.tests.programs import bag_program, with_rows
from ember_hw.registers import FaultCode

CONFIG = AcceleratorConfig()
TABLE = np.random.default_rng(0).standard_normal((10, 7), np.float32)
INPUTS = (np.array([3, 1, 4, 1]), np.array([0, 0, 3]))
POOLED = np.stack([np.zeros(7, np.float32), (TABLE[3] + TABLE[1]) + TABLE[4], TABLE[1]])


@pytest.fixture
def device() -> Iterator[Device]:
    with open_device("interpreter") as opened:
        yield opened


def inputs_of(case: Case) -> tuple[Any, ...]:
    return (case.indices,) if case.offsets is None else (case.indices, case.offsets)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_gives_its_one_answer_at_level_3(device: Device, case: Case) -> None:
    program = bag_program(case.table(), include_last_offset=case.include_last_offset)
    assert bit_equal(device.run(program, inputs_of(case)), case.expected())


@pytest.mark.parametrize("preset", ["default", "small", "tiny"])
@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_every_level_gives_the_one_answer(preset: str, opt_level: int) -> None:
    config = AcceleratorConfig.preset(preset)
    with open_device("interpreter", config=config) as device:
        for case in SMALL_CASES:
            last = case.include_last_offset
            program = bag_program(case.table(), opt_level, config=config, include_last_offset=last)
            assert bit_equal(device.run(program, inputs_of(case)), case.expected()), case.name


def test_a_changed_row_changes_the_result(device: Device) -> None:
    """The negative control of every comparison above."""
    program = bag_program(TABLE.copy())
    program.tables["tab"][4, 2] += 1
    assert not bit_equal(device.run(program, INPUTS), POOLED)


def test_numpy_in_gives_numpy_out(device: Device) -> None:
    assert isinstance(device.run(bag_program(TABLE), INPUTS), np.ndarray)


@pytest.mark.parametrize("by_name", [True, False])
def test_torch_in_gives_torch_out(device: Device, by_name: bool) -> None:
    indices, offsets = (torch.tensor(array) for array in INPUTS)
    inputs: Any = {"offsets": offsets, "indices": indices} if by_name else (indices, offsets)
    pooled = device.run(bag_program(TABLE), inputs)
    assert isinstance(pooled, torch.Tensor)
    assert bit_equal(pooled.numpy(), POOLED)


@pytest.mark.parametrize("columns", [7, 16])
def test_table_changed_in_place_is_never_stale(device: Device, columns: int) -> None:
    table = np.zeros((10, columns), np.float32)
    program = bag_program(table)
    assert not device.run(program, INPUTS).any()
    table[1] = 5.0
    assert device.run(program, INPUTS)[1].tolist() == [5.0] * columns


def test_table_that_was_replaced_is_loaded_again(device: Device) -> None:
    program = replace(bag_program(TABLE), tables={"tab": TABLE})
    device.run(program, INPUTS)
    tables: Any = program.tables
    tables["tab"] = TABLE + 1
    pooled = device.run(program, INPUTS)
    assert bit_equal(pooled, device.run(bag_program(TABLE + 1), INPUTS))


def test_tables_of_programs_that_take_turns_stay_loaded(device: Device) -> None:
    programs = [bag_program(TABLE + k) for k in range(3)]
    answers = [device.run(program, INPUTS) for program in programs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "load", None)  # it isn't needed again
        for program, answer in zip(programs, answers, strict=True):
            assert bit_equal(device.run(program, INPUTS), answer)


def test_programs_beyond_a_limit_are_loaded_again(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ember_hw.host.device.LOADED_PROGRAMS", 1)
    first, second = bag_program(TABLE), bag_program(TABLE + 1)
    for _ in range(2):
        assert bit_equal(device.run(first, INPUTS), POOLED)
        assert not bit_equal(device.run(second, INPUTS), POOLED)


def test_reload_brings_in_new_values(device: Device) -> None:
    program = bag_program(np.zeros((10, 7), np.float32))
    device.load(program)
    program.tables["tab"][...] = TABLE
    device.reload(program)
    assert bit_equal(device.run(program, INPUTS), POOLED)


def test_unloaded_program_is_loaded_again_by_a_run(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, loads = bag_program(TABLE), 0
    load = device.load

    def count(program: Program) -> None:
        nonlocal loads
        loads += 1
        load(program)

    monkeypatch.setattr(device, "load", count)
    device.unload(program)  # it isn't loaded
    for expected in (1, 1, 2):
        if expected == 2:
            device.unload(program)
        assert bit_equal(device.run(program, INPUTS), POOLED)
        assert loads == expected


def test_fault_is_an_error_and_the_next_run_is_right(device: Device) -> None:
    program = bag_program(TABLE)
    broken = with_rows(program, 4)
    with pytest.raises(DeviceError, match="INDEX_OUT_OF_RANGE") as caught:
        device.run(broken, INPUTS)
    assert caught.value.code == FaultCode.INDEX_OUT_OF_RANGE
    assert caught.value.address == 4
    with pytest.raises(DeviceError, match="report must be read"):
        _ = device.report
    assert bit_equal(device.run(program, INPUTS), POOLED)


def test_report_says_what_ran(device: Device) -> None:
    device.run(bag_program(TABLE), INPUTS)
    report = device.report
    assert (report.program, report.backend, report.config) == ("bag", "interpreter", "default")
    assert (report.lookups, report.bundles, report.rows, report.row_beats) == (4, 5, 4, 4)
    assert report.useful_bytes == 4 * 28
    assert report.cycles is None
    assert report.seed == 7


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_useful_bytes_are_those_of_the_rows_at_every_level(device: Device, opt_level: int) -> None:
    device.run(bag_program(TABLE, opt_level), INPUTS)
    assert device.report.useful_bytes == 4 * 28


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_progress_tells_of_lookups_at_every_level(device: Device, opt_level: int) -> None:
    told: list[tuple[int, int | None, int | None]] = []
    program = bag_program(TABLE, opt_level)
    device.run(
        program, INPUTS, progress=lambda done, total, cycles: told.append((done, total, cycles))
    )
    assert told[-1] == (4, 4, None)


def test_torch_indices_behind_numpy_offsets_give_torch_out(device: Device) -> None:
    program = bag_program(TABLE)
    program = replace(program, model={**program.model, "input_names": ["offsets", "indices"]})
    pooled = device.run(program, (INPUTS[1], torch.tensor(INPUTS[0])))
    assert isinstance(pooled, torch.Tensor)
    assert bit_equal(pooled.numpy(), POOLED)


def test_lookup_that_gets_lost_is_an_error() -> None:
    class Losing(Backend):
        def execute(self, launch: Launch) -> Iterator[Chunk]:
            for chunk in super().execute(launch):
                kept = np.arange(chunk.events.size) != 2
                yield Chunk(
                    chunk.events[kept], chunk.scalars[kept], chunk.row_beats[1:], chunk.row_last[1:]
                )

    message = "calls of callback 1 of nest 'bag' must be the 4 that the request implies, not 3"
    with pytest.raises(DeviceError, match=f"^{message}$"):
        Device("losing", Losing(CONFIG)).run(bag_program(TABLE), INPUTS)


def test_second_call_of_a_shape_class_compiles_and_plans_nothing(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = bag_program(TABLE)
    assert bit_equal(device.run(program, INPUTS), POOLED)
    plans: list[Any] = []
    plan = LaunchPlan.__init__

    def count(self: LaunchPlan, *arguments: Any) -> None:
        plans.append(self)
        plan(self, *arguments)

    monkeypatch.setattr(LaunchPlan, "__init__", count)
    monkeypatch.setattr(Nest, "bind", None)  # nothing is bound again
    built = programs_built()
    for shift in (0, 1, 2):
        pooled = device.run(program, ((INPUTS[0] + shift), INPUTS[1]))
        expected = np.stack([POOLED[0], TABLE[3 + shift] + TABLE[1 + shift], TABLE[1 + shift]])
        expected[1] += TABLE[4 + shift]
        assert bit_equal(pooled, expected)
    assert (plans, programs_built()) == ([], built)


def test_run_that_failed_leaves_no_plan_behind(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = bag_program(TABLE)
    device.run(program, INPUTS)

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        device.run(program, INPUTS, progress=stop)
    bound: list[Nest] = []
    bind = Nest.bind

    def count(self: Nest, environment: Any) -> Any:
        bound.append(self)
        return bind(self, environment)

    monkeypatch.setattr(Nest, "bind", count)
    assert bit_equal(device.run(program, INPUTS), POOLED)
    assert bound == [*program.nests]


def test_run_within_a_run_is_right(device: Device) -> None:
    program = bag_program(TABLE)
    device.run(program, INPUTS)
    inner: list[Any] = []

    def run(*_: Any) -> None:
        inner.append(device.run(program, (INPUTS[0][::-1].copy(), INPUTS[1])))

    assert bit_equal(device.run(program, INPUTS, progress=run), POOLED)
    assert bit_equal(inner[0][2], TABLE[3])


def test_report_before_a_run_is_refused(device: Device) -> None:
    message = "report must be read after a run that ended without an error"
    with pytest.raises(DeviceError, match=f"^{message}$"):
        _ = device.report


def test_program_for_another_config_is_refused(device: Device) -> None:
    small = AcceleratorConfig.preset("small")
    message = (
        f"program 'bag' must be compiled for config 'default' (hash {CONFIG.hash():#010x}) of "
        f"device 'interpreter', not for 'small' (hash {small.hash():#010x})"
    )
    with pytest.raises(ProgramError, match=f"^{re.escape(message)}$"):
        device.run(bag_program(TABLE, config=small), INPUTS)


def test_count_that_differs_from_the_queues_is_an_error() -> None:
    class Miscounting(Backend):
        def facts(self) -> dict[str, Any]:
            return {**super().facts(), "row_beats": 5}

    device = Device("miscounting", Miscounting(CONFIG))
    message = "row_beats on the queues must be the 5 that the unit counted, not 4"
    with pytest.raises(DeviceError, match=f"^{message}$"):
        device.run(bag_program(TABLE), INPUTS)


def test_closed_device_is_refused() -> None:
    device = open_device("interpreter")
    device.close()
    device.close()
    message = "device 'interpreter' must be open, and was closed"
    with pytest.raises(DeviceError, match=f"^{message}$"):
        device.run(bag_program(TABLE), INPUTS)


@pytest.mark.parametrize("backend", ["gpu", "board", "verilator:fast"])
def test_unknown_backend_is_refused(backend: str) -> None:
    message = f"backend must be one of interpreter, verilator, board:<name>, not '{backend}'"
    with pytest.raises(ValueError, match=f"^{message}$"):
        open_device(backend)


def test_unknown_engine_is_refused() -> None:
    message = "engine must be one of auto, c, numpy, not 'gpu'"
    with pytest.raises(ValueError, match=f"^{message}$"):
        open_device("interpreter", engine=cast(Any, "gpu"))


@pytest.mark.parametrize("engine", ["c", "numpy"])
def test_report_names_what_ran_the_execute_side(engine: Any) -> None:
    with open_device("interpreter", engine=engine) as device:
        assert bit_equal(device.run(bag_program(TABLE), INPUTS), POOLED)
        assert device.report.engine == engine


@pytest.mark.parametrize(
    ("backend", "rule"),
    [
        ("interpreter", "left out"),
        ("verilator", "seed or optimise or max_idle_cycles or record_reads or trace or verilog"),
    ],
)
def test_unknown_option_is_refused(backend: str, rule: str) -> None:
    message = f"option of backend '{backend}' must be {rule}, not 'speed'"
    with pytest.raises(TypeError, match=f"^{message}$"):
        open_device(backend, speed=9)
