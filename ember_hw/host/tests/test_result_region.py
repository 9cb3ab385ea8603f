# pyright: basic
"""Where results in memory lie, and that the interpreter's answers are those of the stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import ember_hw
from ember_hw.compiler import compile_function
from ember_hw.compiler.backend.reduce_split import Execute
from ember_hw.compiler.tests.kernels import KERNELS, Kernel
from ember_hw.errors import DeviceError, ProgramError
from ember_hw.host import result_region
from ember_hw.host.backends.result_memory import ResultMemory
from ember_hw.host.bindings import binding_of
from ember_hw.host.device import Device, open_device
from ember_hw.host.launch import Launch, LoadedProgram
from ember_hw.host.reference import bit_equal
from ember_hw.host.result_region import result_length, result_runs
from ember_hw.host.tests.test_fabric import CONFIG as STREAM
from ember_hw.isa import Source
from ember_hw.registers import FaultCode, describe_fault

CONFIG = STREAM.with_changes(name="classes that write", results="memory")
(SUM,) = (kernel for kernel in KERNELS if kernel.name == "eb_sum")


@pytest.fixture(scope="module")
def devices() -> Iterator[tuple[Device, Device]]:
    with (
        open_device("interpreter", config=STREAM) as stream,
        open_device("interpreter", config=CONFIG) as memory,
    ):
        yield stream, memory


def launch_of(kernel: Kernel, columns: int, execute: Execute = "auto") -> Launch:
    program = compile_function(kernel.text, config=CONFIG, execute=execute, may_leave_loops=True)
    request = binding_of(program).request(program, kernel.arguments(columns, 1))
    (launch,) = LoadedProgram(program).launches(request)
    return launch


@pytest.mark.parametrize("execute", ["auto", "host"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_answers_are_those_of_the_stream(
    devices: tuple[Device, Device], kernel: Kernel, execute: Execute
) -> None:
    stream, memory = devices
    programs = [
        compile_function(kernel.text, config=device.config, execute=execute, may_leave_loops=True)
        for device in devices
    ]
    assert programs[0].placement == programs[1].placement
    for columns in (1, 7):
        arguments = kernel.arguments(columns, columns)
        found = memory.run(programs[1], arguments)
        assert bit_equal(found, stream.run(programs[0], arguments))
        assert memory.report.results == stream.report.results
        assert memory.report.leaving_bytes == stream.report.leaving_bytes
        assert memory.report.written_bytes == memory.report.leaving_bytes
        assert stream.report.written_bytes == 0


def test_the_region_lies_behind_all_others_and_is_as_large_as_the_results() -> None:
    launch = launch_of(SUM, 7)
    assert launch.results is not None
    assert launch.results.runs == ((6, 28),)
    region = launch.results.region
    assert region.num_bytes == 6 * 32
    assert region.base % 4096 == 0
    assert all(other.base + other.data.size <= region.base for other in launch.regions)
    assert launch.microcode.records["result"] == {"base": region.base, "region_bytes": 6 * 32}
    assert set(region.data.tolist()) == {0xA5}


def test_runs_of_other_sizes_have_regions_of_their_own() -> None:
    program = compile_function(SUM.text, config=CONFIG)
    loaded = LoadedProgram(program)
    sizes = []
    for columns in (7, 7, 64):
        request = binding_of(program).request(program, SUM.arguments(columns, 1))
        run = loaded.prepare(request)
        launch = run.launch(0)
        assert launch.results is not None
        launch.results.region.data[:] = 0
        sizes.append(launch.results.region.num_bytes)
        assert set(run.launch(0).results.region.data.tolist()) == {0xA5}  # pyright: ignore[reportOptionalMemberAccess]
        loaded.keep(run)
    assert sizes == [192, 192, 6 * 256]


class Bags(torch.nn.Module):
    """Tables whose rows have lengths of their own, pooled by one program."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.wide = torch.nn.EmbeddingBag(10, 24, mode="sum").requires_grad_(False)
        self.narrow = torch.nn.EmbeddingBag(7, 3, mode="sum").requires_grad_(False)

    def forward(self, a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor) -> Any:
        return self.wide(a, offsets), self.narrow(b, offsets)


@pytest.mark.parametrize(("execute", "results"), [("fabric", 3), ("host", 4)])
def test_results_have_the_lengths_of_their_tables(
    devices: tuple[Device, Device], execute: Execute, results: int
) -> None:
    """In the fabric the host's bundles tell them, else those of the unit alone."""
    inputs = torch.tensor([1, 9, 4, 4]), torch.tensor([6, 0, 2, 2]), torch.tensor([0, 3, 3])
    program = ember_hw.compile(Bags(), inputs, config=CONFIG, execute=execute)
    assert program.nests[0].microcode.get("reduce", "length_source") == Source.SLOT
    request = binding_of(program).request(program, inputs)
    (launch,) = LoadedProgram(program).launches(request)
    assert launch.results is not None
    assert launch.results.runs == ((results, 96), (results, 12))
    assert launch.results.region.num_bytes == results * (96 + 16)
    _, memory = devices
    found, wanted = memory.run(program, inputs), binding_of(program).reference(program, inputs)
    for one, other in zip(found, wanted, strict=True):
        assert bit_equal(np.asarray(one), np.asarray(other))
    assert memory.report.written_bytes == results * (96 + 12)


def told_by(launch: Launch, scalar: int) -> Launch:
    """Return a launch whose lengths come from a scalar of the unit's own bundles."""
    fields = {("reduce", "length_source"): int(Source.SLOT), ("reduce", "length_scalar"): scalar}
    return replace(launch, microcode=launch.microcode.with_fields(fields))


def test_lengths_may_be_told_by_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = launch_of(SUM, 7, "host")
    assert launch.nest is not None
    assert launch.nest.fabric is not None
    assert result_length(launch.microcode) == 28
    told = told_by(launch, 3)
    assert result_length(told.microcode) is None
    lengths = np.array([28, 28, 0, 28], np.uint32)

    def bundles(microcode, *_: object, **__: object):
        assert not any(microcode.get(f"row{n}", "events") for n in range(CONFIG.row_entries))
        row = result_region._emitted(told)[0]
        for part in (lengths[:2], lengths[2:]):
            scalars = np.zeros((len(part), 4), np.uint32)
            scalars[:, 3] = part
            yield type("AChunk", (), {"events": np.full(len(part), row.events), "scalars": scalars})

    monkeypatch.setattr(result_region, "execute", bundles)
    assert result_runs(told, launch.nest.fabric) == ((2, 28),), "nothing behind a length of 0"
    lengths[2:] = 64, 28
    assert result_runs(told, launch.nest.fabric) == ((2, 28), (1, 64), (1, 28))


def test_the_walk_ends_where_the_unit_would(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = launch_of(SUM, 7)
    assert launch.nest is not None
    assert launch.nest.fabric is not None

    def faulty(*_: object, **__: object):
        raise DeviceError("an index must be a row of its table")
        yield

    monkeypatch.setattr(result_region, "execute", faulty)
    assert result_runs(launch, launch.nest.fabric) == ()


def test_chunks_are_cut_between_results(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = launch_of(SUM, 7)
    assert launch.results is not None
    monkeypatch.setattr(result_region, "_CHUNK_BEATS", 5)
    cycles = np.arange(12, dtype=np.uint64)
    chunks = list(launch.results.chunks(CONFIG, cycles))
    assert [chunk.row_last.tolist() for chunk in chunks] == [[False, True] * 2] * 3
    kept = [chunk.row_cycles for chunk in chunks if chunk.row_cycles is not None]
    assert np.concatenate(kept).tolist() == cycles.tolist()
    assert [len(chunk.events) for chunk in chunks] == [0, 0, 0]


def test_results_must_fit_the_addresses() -> None:
    config = CONFIG.with_changes(name="few addresses", address_width_bits=32)
    program = compile_function(SUM.text, config=config)
    loaded = LoadedProgram(program)
    run = loaded.prepare(binding_of(program).request(program, SUM.arguments(7, 1)))
    run.plan._results_address = (1 << 32) - 128
    with pytest.raises(ProgramError) as caught:
        run.launch(0)
    assert str(caught.value) == (
        "end of 'results' must be at most address 0x100000000 (address_width_bits 32 of config "
        "'few addresses'), not 0x1000000c0"
    )


@pytest.mark.parametrize("base", [4, (1 << 32) - 64])
def test_a_region_that_is_none_is_a_fault(base: int) -> None:
    launch = launch_of(SUM, 7)
    assert launch.results is not None
    narrow = CONFIG.with_changes(name="narrow", address_width_bits=32)
    fields = {("result", "base"): base}
    microcode = type(launch.microcode)(narrow, launch.microcode.with_fields(fields).records)
    with pytest.raises(DeviceError) as caught:
        ResultMemory(replace(launch, microcode=microcode), launch.results)
    assert str(caught.value) == describe_fault(FaultCode.ILLEGAL_REDUCE_MICROCODE, 0, 0, 0)


def test_a_result_beyond_the_region_is_told_by_its_beat() -> None:
    launch = launch_of(SUM, 7)  # 6 results of 2 beats of 16 bytes
    assert launch.results is not None
    memory = ResultMemory(launch, launch.results)
    memory.write(np.ones((5, 28), np.uint8))
    assert memory.written_bytes == 140
    base = launch.results.region.base
    for length, count, address in ((28, 2, 192), (36, 1, 192), (60, 1, 192), (28, 9, 192)):
        with pytest.raises(DeviceError) as caught:
            memory.write(np.ones((count, length), np.uint8))
        assert caught.value.address == base + address
    memory.write(np.ones((1, 32), np.uint8))
    with pytest.raises(DeviceError) as caught:
        memory.write(np.ones((1, 4), np.uint8))
    assert caught.value.address == base + 192
