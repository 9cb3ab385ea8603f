from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from ember_hw.bench.programs import TASKS
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host.backends import verilator
from ember_hw.host.backends.requests import (
    HeldProgram,
    argument_values,
    check_ended,
    input_arrays,
    read_completed,
    read_fault,
    read_state,
    request_accesses,
)
from ember_hw.host.backends.verilog import cached_verilog, model_shape
from ember_hw.host.launch import Launch
from ember_hw.isa import Microcode
from ember_hw.registers import (
    ARGUMENTS_ADDRESS,
    COMPLETED,
    CONTROL,
    CONTROL_JOINS,
    CONTROL_START,
    FAULT,
    FAULT_ADDRESS_HIGH,
    FAULT_ADDRESS_LOW,
    MICROCODE_ADDRESS,
    NO_UNIT,
    REQUESTS,
    STATUS,
    FaultCode,
    State,
)
from ember_hw.sim.build import build_model
from ember_hw.sim.model import AccessKind, VerilatorModel
from ember_hw.sim.options import IdealMemory

CONFIG = AcceleratorConfig.preset("tiny").with_changes(
    name="tiny with queues", input_queue=1, request_entries=2
)


def launches(count: int) -> list[Launch]:
    return TASKS["embedding_bag_requests"](requests=count, row_bytes=16, bags=3).launches(CONFIG)


def spoiled(task: list[Launch], number: int) -> list[Launch]:
    """Let one of some requests read beyond its region."""
    arguments = [launch.arguments for launch in task]
    place = next(n for n, (a, b) in enumerate(zip(*arguments[:2], strict=True)) if a != b)
    wrong = [*arguments[number]]
    wrong[place] = 1 << 20
    task[number] = replace(task[number], arguments=tuple(wrong))
    return task


def test_each_request_waits_for_room_and_only_changed_arguments_are_written() -> None:
    task = launches(3)
    held = [0] * CONFIG.exports
    found = [
        (access.kind, access.address - (2 << 12), access.value)
        for access in request_accesses(task, CONFIG, held=held, unit=2)
    ]
    first, second, third = (launch.arguments for launch in task)
    starts = [n for n, access in enumerate(found) if access[1] == CONTROL.address]
    assert [found[n - 1] for n in starts[1:]] == [(AccessKind.WAIT, REQUESTS.address, 1)] * 2
    joins = CONTROL_START | CONTROL_JOINS
    assert [found[n][2] for n in starts] == [CONTROL_START, joins, joins]
    written = {address for _, address, _ in found[starts[0] + 1 : starts[1] - 1]}
    changed = [n for n, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
    assert written == {ARGUMENTS_ADDRESS + 4 * n for n in changed}
    assert 0 < len(changed) < CONFIG.exports
    assert held == list(third)


def test_lines_go_to_the_number_of_their_stream() -> None:
    line = np.arange(64, dtype=np.uint8)
    destinations, lines = input_arrays([((1, 0), line), ((0, 1), line + 1)], CONFIG)
    assert destinations.tolist() == [CONFIG.streams_per_unit, 1]
    assert lines[1, 0] == 1
    assert input_arrays([], CONFIG)[1].shape == (0, 64)


@pytest.fixture(scope="module")
def backend() -> Iterator[verilator.Backend]:
    opened = verilator.Backend(CONFIG, optimise=False)
    yield opened
    opened.close()


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
@pytest.mark.parametrize("name", ["embedding_bag_requests", "embedding_bag_queue"])
@pytest.mark.parametrize("count", [1, 7])
def test_requests_one_behind_the_other_deliver_all(
    backend: verilator.Backend, name: str, count: int
) -> None:
    task = TASKS[name](requests=count, row_bytes=40, bags=5, lookups=24)
    chunks = [
        (chunk.events.copy(), chunk.scalars.copy(), chunk.row_beats.copy(), chunk.row_last.copy())
        for chunk in backend.execute_requests(task.launches(CONFIG), task.feed)
    ]
    events, scalars, beats, last = (np.concatenate(part) for part in zip(*chunks, strict=True))
    task.expected.check(
        name, CONFIG, events=events, scalars=scalars, row_beats=beats, row_last=last
    )
    assert backend.facts()["rows"] == 24 * count


@pytest.mark.verilator
@pytest.mark.timeout(900)
def test_fault_of_a_request_ends_those_behind_it(backend: verilator.Backend) -> None:
    task = spoiled(launches(6), 2)
    for _ in range(2):
        with pytest.raises(DeviceError) as caught:
            list(backend.execute_requests(task))
        error = caught.value
        assert (error.code, error.unit, error.stream) == (FaultCode.STREAM_OUT_OF_BOUNDS, 0, 0)
        assert error.address == 1 << 20
        # The loops run ahead of the rows of the requests before.
        assert error.completed in (0, 1, 2)
        assert str(error) == (
            "access unit fault STREAM_OUT_OF_BOUNDS (unit 0, stream 0, element 0x100000): "
            "a memory stream must read within its region; "
            f"{error.completed} of 6 requests had ended before"
        )
    assert sum(len(chunk.events) for chunk in backend.execute_requests(launches(6))) > 6


@pytest.mark.verilator
@pytest.mark.timeout(900)
def test_no_fault_is_lost_wherever_the_next_start_comes() -> None:
    """The rows of the first request are not in memory; the second starts so many cycles later."""
    task = launches(2)
    library = build_model(cached_verilog(CONFIG), model_shape(CONFIG), optimise=False)
    model = VerilatorModel(library, memory=IdealMemory(latency_cycles=10))
    model.reset()
    read = model.read_register
    while read_state(read) is not State.IDLE:
        pass
    for number, word in enumerate(task[0].microcode.encode()):
        model.write_register(MICROCODE_ADDRESS + 4 * number, word)
    for region in task[0].regions:
        if region.symbol != "tab":
            model.map_region(region.data, region.base)
    faults: set[tuple[FaultCode, int, int, int]] = set()
    states: set[State] = set()
    taken: set[bool] = set()
    for cycles in range(200):
        first, second = (
            request_accesses(task, CONFIG, held=[-1] * CONFIG.exports)[part]
            for part in (slice(CONFIG.exports + 1), slice(CONFIG.exports + 1, None))
        )
        assert first[-1].value == CONTROL_START
        assert second[-1].value == CONTROL_START | CONTROL_JOINS
        before = read_completed(read)
        for access in (*first, *second[:-2]):
            model.write_register(access.address, access.value)
        model.run(max_cycles=cycles + 1)
        states.add(state := read_state(read))
        model.set_accesses(second[-2:])
        model.run()
        is_taken = model.accesses_left == 0
        taken.add(is_taken)
        assert not is_taken or state is State.RUNNING, f"{cycles} cycles later"
        while read_state(read) not in (State.DONE, State.FAULTED):
            model.run(max_cycles=20)
        with pytest.raises(DeviceError, match=r"; 0 of 2 requests had ended before$"):
            check_ended(read, requests=2, completed_before=before)
        faults.add(read_fault(read))
    model.close()
    ((code, unit, _, _),) = faults
    assert (code, unit) == (FaultCode.READ_DECODE_ERROR, NO_UNIT)
    assert taken == {False, True}
    assert states == {State.RUNNING, State.DRAINING, State.RESETTING, State.FAULTED}


@pytest.mark.parametrize(
    ("state", "completed", "text"),
    [
        (State.IDLE, 7, "state at the end of a program must be DONE, not IDLE"),
        (State.DONE, 8, "requests that ended must be all 2, not 1"),
        (
            State.FAULTED,
            6,
            "access unit fault READ_SLAVE_ERROR (row entry 1, address 0x500000040): memory "
            "answered SLVERR; 4294967295 of 2 requests had ended before",
        ),
    ],
)
def test_an_end_that_is_none_is_refused(state: State, completed: int, text: str) -> None:
    held = {
        STATUS.address: state,
        COMPLETED.address: completed,
        FAULT.address: FaultCode.READ_SLAVE_ERROR | NO_UNIT << 8 | 1 << 16,
        FAULT_ADDRESS_LOW.address: 64,
        FAULT_ADDRESS_HIGH.address: 5,
    }
    with pytest.raises(DeviceError, match=f"^{re.escape(text)}$"):
        check_ended(
            lambda address: held[address - (3 << 12)], requests=2, completed_before=7, unit=3
        )


def test_an_end_may_come_beyond_the_counter_s_width() -> None:
    held = {STATUS.address: State.DONE, COMPLETED.address: 1}
    check_ended(held.__getitem__, requests=3, completed_before=(1 << 32) - 2)


def test_what_a_unit_holds_is_not_written_again() -> None:
    written: list[tuple[int, list[int]]] = []

    def write(address: int, values: list[int]) -> None:
        written.append((address, values))
        if 13 in values:
            raise DeviceError("the link broke")

    held = HeldProgram(write)
    held.write_microcode([1, 2, 3, 4])
    held.write_microcode([1, 2, 3, 4])
    held.write_microcode([5, 2, 6, 7])
    first = MICROCODE_ADDRESS
    assert written == [(first, [1, 2, 3, 4]), (first, [5]), (first + 8, [6, 7])]
    with pytest.raises(DeviceError, match="broke"):
        held.write_microcode([13, 2, 6, 7])
    written.clear()
    held.write_microcode([5, 2, 6, 7])  # not known any more
    held.forget()
    held.write_microcode([5, 2, 6, 7])
    assert written == [(first, [5, 2, 6, 7])] * 2


def test_arguments_that_a_reset_left_are_not_written() -> None:
    written: list[tuple[int, list[int]]] = []
    config = AcceleratorConfig.preset("tiny")
    launch = Launch(Microcode(config), (), (), arguments=(0, 7))
    held = HeldProgram(lambda address, values: written.append((address, values)))
    held.forget(arguments=[0] * config.exports)
    held.write_arguments(launch)
    assert written == [(ARGUMENTS_ADDRESS + 4, [7])]
    assert held.arguments == argument_values(launch)
    held.forget()
    held.write_arguments(launch)
    assert written[1:] == [(ARGUMENTS_ADDRESS, argument_values(launch))]
