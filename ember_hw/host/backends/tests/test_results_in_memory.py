# pyright: basic
"""Results in memory on the simulated unit: answers, rate, faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import ember_hw
from ember_hw.compiler import compile_function
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.program import Program
from ember_hw.compiler.tests.kernels import KERNELS, Kernel
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host import launch_plan
from ember_hw.host.backends import interpreter
from ember_hw.host.backends.verilator import Backend
from ember_hw.host.bindings import binding_of
from ember_hw.host.device import Device, open_device
from ember_hw.host.launch import Launch, LoadedProgram
from ember_hw.host.reference import bit_equal
from ember_hw.host.result_region import room_bytes
from ember_hw.host.tests.test_fabric import TWO_NESTS, two_nests
from ember_hw.registers import NO_UNIT, WATCHDOG, FaultCode, describe_fault
from ember_hw.sim.dram import DRAM_PRESETS
from ember_hw.sim.memory_library import COMMANDS
from ember_hw.sim.model import VerilatorModel
from ember_hw.sim.options import IdealMemory, TestMemory
from ember_hw.sim.timing_check import check_commands

pytestmark = [pytest.mark.verilator, pytest.mark.timeout(900)]  # the first one builds the model

#: With enough reads in flight for a beat a cycle.
CONFIG = AcceleratorConfig.preset("tiny").with_changes(
    name="tiny that writes",
    execute="reduce",
    results="memory",
    outstanding_reads=8,
    reorder_buffer_beats=64,
)
BAGS = [kernel for kernel in KERNELS if kernel.name in ("eb_sum", "eb_mean", "eb_max", "spmm")]
(SUM,) = (kernel for kernel in BAGS if kernel.name == "eb_sum")
BURST_BYTES = CONFIG.max_burst_beats * CONFIG.bus_bytes
FOR_EVER = (1 << 40, 1 << 40)


def open_unit(**options: Any) -> Device:
    return open_device("verilator", config=CONFIG, optimise=False, **options)


@pytest.fixture(scope="module")
def shared() -> Iterator[Device]:
    with open_unit() as opened:
        yield opened


@pytest.fixture
def device(shared: Device) -> Device:
    """The module's one device; that a test before it failed a run must not matter."""
    return shared


def expected(kernel: Kernel, columns: int, seed: int | None = None) -> np.ndarray:
    arguments = kernel.arguments(columns, columns if seed is None else seed)
    interpret(parse_module(kernel.text), "kernel", list(arguments.values()))
    return arguments["out"]


def compiled(kernel: Kernel) -> Program:
    return compile_function(kernel.text, config=CONFIG, execute="fabric")


def model_of(device: Device) -> VerilatorModel:
    backend = device._backend
    assert isinstance(backend, Backend)
    return backend._open_model()


def set_memory(device: Device, memory: Any) -> None:
    """Give the unit another memory; its next run begins with it."""
    model_of(device).set_memory(memory)


def launch_of(program: Program, arguments: Any) -> Launch:
    request = binding_of(program).request(program, arguments)
    (launch,) = LoadedProgram(program).launches(request)
    return launch


def result_base(program: Program, arguments: Any) -> int:
    launch = launch_of(program, arguments)
    assert launch.results is not None
    return launch.results.region.base


@pytest.mark.parametrize("kernel", BAGS, ids=str)
def test_results_in_memory_are_those_of_scf(device: Device, kernel: Kernel) -> None:
    program = compiled(kernel)
    for columns in (1, 2, 7, 64, 1023):
        found = device.run(program, kernel.arguments(columns, columns))
        assert bit_equal(found, expected(kernel, columns)), columns
        report = device.report
        assert (report.results, report.leaving_bytes) == (len(found), found.nbytes)
        assert (report.rows, report.written_bytes) == (8, found.nbytes)
        assert f"written bytes           {found.nbytes:,}, into memory" in str(report)


def test_memory_is_the_interpreters_byte_by_byte(device: Device) -> None:
    """What lies behind the ends of results, too."""
    backend = device._backend
    assert isinstance(backend, Backend)
    images: list[bytes] = []
    for unit in (backend, interpreter.Backend(CONFIG)):
        launch = launch_of(compiled(SUM), SUM.arguments(7, 7))
        chunks = [replace(c, row_beats=c.row_beats.copy()) for c in unit.execute(launch)]
        assert launch.results is not None
        images.append(launch.results.region.data.tobytes())
        beats = np.concatenate([chunk.row_beats for chunk in chunks])
        ends = np.concatenate([chunk.row_last for chunk in chunks])
        assert beats.tobytes() == images[-1]
        assert ends.tolist() == [False, False, False, True] * 6
    assert images[0] == images[1]
    assert images[0][28:32] == b"\xa5" * 4


@pytest.mark.parametrize("memory", ["ddr4-2400", "slow-link", "random", TestMemory(seed=4)])
def test_the_answer_does_not_depend_on_the_memory(memory: Any) -> None:
    with open_unit(memory=memory) as device:
        found = device.run(compiled(SUM), SUM.arguments(64, 64))
        assert bit_equal(found, expected(SUM, 64))
        assert device.report.profile is not None
        assert device.report.profile.drain_cycles > 0


def test_reads_and_writes_share_a_dram_and_break_no_limit(device: Device) -> None:
    dram = DRAM_PRESETS["ddr4-2400"]
    model = model_of(device)
    model._record_commands = True
    model.set_memory(dram)
    program = compile_function(SUM.text, config=CONFIG, execute="host")  # each row leaves
    assert bit_equal(device.run(program, SUM.arguments(1023, 1)), expected(SUM, 1023, seed=1))
    commands = model.dram_commands()
    assert check_commands(dram, commands) == []
    assert device.report.written_bytes == 8 * 4092
    kinds = np.bincount(commands["kind"], minlength=len(COMMANDS))
    assert kinds[COMMANDS.index("WRITE")] == 8 * 4096 // dram.access_bytes
    assert kinds[COMMANDS.index("READ")] >= 8 * 4096 // dram.access_bytes
    model.set_memory(IdealMemory())


def test_rows_pass_to_the_host_through_memory(device: Device) -> None:
    program = compile_function(SUM.text, config=CONFIG, execute="host")
    assert bit_equal(device.run(program, SUM.arguments(7, 7)), expected(SUM, 7))
    assert (device.report.results, device.report.written_bytes) == (8, 8 * 28)
    program = compile_function(TWO_NESTS, config=CONFIG)
    arguments, wanted = (two_nests(np.array([3, 8, 3, 0, 1])) for _ in range(2))
    interpret(parse_module(TWO_NESTS), "two", list(wanted.values()))
    total, dots = device.run(program, arguments)
    assert bit_equal(total, wanted["sum"])
    assert bit_equal(dots, wanted["dot"])
    assert [nest.written_bytes for nest in device.report.nests] == [20, 5 * 20]
    assert device.report.written_bytes == 120


def test_a_gather_goes_from_memory_to_memory_at_a_beat_a_cycle(device: Device) -> None:
    """A copy of rows: all that limits it is the port that carries rows and indices."""
    torch.manual_seed(1)
    module = torch.nn.Embedding(50, 64).requires_grad_(False)
    indices = torch.randint(0, 50, (300,), dtype=torch.int32)
    program = ember_hw.compile(module, (indices,), config=CONFIG, execute="fabric")
    assert program.placement == ((program.nests[0].name, "fabric", "copy"),)
    set_memory(device, IdealMemory(latency_cycles=4))
    found = device.run(program, (indices,))
    assert torch.equal(found, module(indices))
    report = device.report
    assert report.written_bytes == 300 * 256
    assert report.row_beats == 300 * 32
    port = report.limits["port"]
    assert report.cycles is not None
    assert port / report.cycles > 0.98, report
    set_memory(device, IdealMemory())


@pytest.mark.parametrize(
    ("memory", "code", "place"),
    [
        (
            lambda base: TestMemory(seed=2, error_range=(base + BURST_BYTES + 5, 1)),
            FaultCode.WRITE_SLAVE_ERROR,
            BURST_BYTES,
        ),
        (
            lambda base: TestMemory(seed=2, decode_error_range=(base + 6 * 256 - 1, 1)),
            FaultCode.WRITE_DECODE_ERROR,
            6 * 256 - BURST_BYTES,
        ),
    ],
)
def test_errors_of_writes_reach_python(
    device: Device, memory: Callable[[int], Any], code: FaultCode, place: int
) -> None:
    program, arguments = compiled(SUM), SUM.arguments(64, 64)
    base = result_base(program, arguments)
    set_memory(device, memory(base))
    with pytest.raises(DeviceError) as caught:
        device.run(program, arguments)
    assert str(caught.value) == describe_fault(code, NO_UNIT, 0, base + place)
    error = caught.value
    assert (error.code, error.unit, error.address) == (code, NO_UNIT, base + place)
    set_memory(device, IdealMemory())
    assert bit_equal(device.run(program, arguments), expected(SUM, 64))


@pytest.mark.parametrize("backend", ["interpreter", "verilator"])
def test_results_beyond_their_region_are_refused_alike(
    device: Device, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, arguments = compiled(SUM), SUM.arguments(7, 7)
    base = result_base(program, arguments)
    bytes_there = 6 * 32

    def run() -> np.ndarray:
        if backend == "verilator":
            return device.run(program, arguments)
        with open_device("interpreter", config=CONFIG) as opened:
            return opened.run(program, arguments)

    for lacking in (8, 40, bytes_there):
        with monkeypatch.context() as patched:
            patched.setattr(launch_plan, "room_bytes", lambda *a, n=lacking: room_bytes(*a) - n)
            with pytest.raises(DeviceError) as caught:
                run()
        address = base + bytes_there - lacking
        fault = describe_fault(FaultCode.RESULT_OUT_OF_BOUNDS, NO_UNIT, 0, address)
        assert str(caught.value) == fault
        assert (caught.value.code, caught.value.address) == (
            FaultCode.RESULT_OUT_OF_BOUNDS,
            address,
        )
    assert bit_equal(run(), expected(SUM, 7))


def test_memory_that_stops_is_told_by_the_watchdog(device: Device) -> None:
    program, arguments = compiled(SUM), SUM.arguments(64, 64)
    set_memory(device, TestMemory(seed=1, write_latency_cycles=(3000, 3000)))
    model_of(device).write_register(WATCHDOG.address, 300)
    with pytest.raises(DeviceError) as caught:
        device.run(program, arguments)
    assert str(caught.value) == describe_fault(FaultCode.MEMORY_STALLED, NO_UNIT, 0, 0)
    assert caught.value.code == FaultCode.MEMORY_STALLED
    set_memory(device, IdealMemory())
    assert bit_equal(device.run(program, arguments), expected(SUM, 64))


def test_a_run_that_hangs_shows_the_port_for_writes() -> None:
    silent = TestMemory(seed=1, write_latency_cycles=FOR_EVER)
    with open_unit(memory=silent, max_idle_cycles=2000) as device:
        with pytest.raises(DeviceError) as caught:
            device.run(compiled(SUM), SUM.arguments(64, 64))
    lines = str(caught.value).splitlines()
    assert "  write answers     ready, but not valid; 16 bursts outstanding" in lines
    assert not [line for line in lines if "row stream" in line]


def test_results_that_do_not_come_are_noticed(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device._backend, "_written_bytes", lambda: 160)
    with pytest.raises(DeviceError) as caught:
        device.run(compiled(SUM), SUM.arguments(7, 7))
    assert str(caught.value) == (
        "bytes of results in memory must be the 168 that the loops ask for, not 160"
    )
