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
from ember_hw.host.backends.requests import input_arrays, request_accesses
from ember_hw.host.launch import Launch
from ember_hw.registers import ARGUMENTS_ADDRESS, CONTROL, REQUESTS, STATUS, State
from ember_hw.sim.model import AccessKind

CONFIG = AcceleratorConfig.preset("tiny").with_changes(
    name="tiny with queues", input_queue=1, request_entries=2
)


def launches(count: int) -> list[Launch]:
    return TASKS["embedding_bag_requests"](requests=count, row_bytes=16, bags=3).launches(CONFIG)


def test_each_request_waits_for_room_and_only_changed_arguments_are_written() -> None:
    task = launches(3)
    held = [0] * CONFIG.exports
    found = [
        (access.kind, access.address - (2 << 12), access.value)
        for access in request_accesses(task, CONFIG, held=held, unit=2)
    ]
    first, second, third = (launch.arguments for launch in task)
    wait, stop = AccessKind.WAIT, AccessKind.STOP_IF
    starts = [n for n, access in enumerate(found) if access[1] == CONTROL.address]
    assert [found[n - 2][0] for n in starts[1:]] == [wait] * 2
    assert found[starts[1] - 2 : starts[1]] == [
        (wait, REQUESTS.address, 1),
        (stop, STATUS.address, State.FAULTED),
    ]
    written = {address for _, address, _ in found[starts[0] + 1 : starts[1] - 2]}
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
    task = launches(6)
    arguments = [launch.arguments for launch in task]
    place = next(n for n, (a, b) in enumerate(zip(*arguments[:2], strict=True)) if a != b)
    wrong = [*arguments[2]]
    wrong[place] = 1 << 20
    task[2] = replace(task[2], arguments=tuple(wrong))
    with pytest.raises(DeviceError, match=re.escape("STREAM_OUT_OF_BOUNDS (unit ")):
        list(backend.execute_requests(task))
    assert sum(len(chunk.events) for chunk in backend.execute_requests(launches(6))) > 6
