from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from ember_hw.bench.bags import MIXED, Bags
from ember_hw.bench.simulated import Delivery, Simulator, check_bundles, check_rows, delivery
from ember_hw.bench.workload import Workload
from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.compiler.interpreters.microcode_issue import Chunk
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host.launch import Launch
from ember_hw.sim.options import IdealMemory, StallingSink

CONFIG = AcceleratorConfig.preset("tiny")
BAGS = Bags(row_bytes=24, bag=MIXED, has_weights=True, lookups=60)


@pytest.fixture
def workload() -> Workload:
    return BAGS.workload(1)


@pytest.fixture
def launch(workload: Workload) -> Launch:
    return workload.launch(CONFIG)


@pytest.fixture
def wanted(launch: Launch) -> list[Chunk]:
    regions = [(region.base, region.data) for region in launch.regions]
    return list(execute(launch.microcode, regions))


def test_utilisation_is_that_of_the_steady_state() -> None:
    cycles = np.concatenate([[1_000], np.arange(2_000, 2_198, 2), [9_000]]).astype(np.uint64)
    delivery = Delivery(9_000, cycles, np.full(101, 48, np.uint8), 64, {})
    assert delivery.utilisation == pytest.approx(48 / (2 * 64))


def test_what_the_interpreter_yields_passes(
    workload: Workload, launch: Launch, wanted: list[Chunk]
) -> None:
    check_bundles(workload.name, launch, wanted, wanted)
    check_rows(workload, wanted, wanted, wanted[0].row_keep)


def test_outstanding_reads_are_a_field_of_the_header(workload: Workload) -> None:
    launch = workload.launch(CONFIG, outstanding_reads=3)
    assert launch.microcode.get("header", "outstanding_reads") == 3


def changed_events(chunk: Chunk) -> Chunk:
    events = chunk.events.copy()
    events[5] ^= 1 << 3
    return replace(chunk, events=events)


def changed_weight(chunk: Chunk) -> Chunk:
    scalars = chunk.scalars.copy()
    scalars[2, 0] ^= 1
    return replace(chunk, scalars=scalars)


def lost_bundle(chunk: Chunk) -> Chunk:
    return replace(chunk, events=chunk.events[1:], scalars=chunk.scalars[1:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed_events, "bundle 5 of {name!r} must be the interpreter's, and isn't"),
        (changed_weight, "bundle 2 of {name!r} must be the interpreter's, and isn't"),
        (lost_bundle, "bundles of {name!r} must be {bundles}, not {less}"),
    ],
)
def test_wrong_bundles_are_refused(
    workload: Workload,
    launch: Launch,
    wanted: list[Chunk],
    change: Callable[[Chunk], Chunk],
    message: str,
) -> None:
    (chunk,) = wanted
    bundles = len(chunk.events)
    text = message.format(name=workload.name, bundles=bundles, less=bundles - 1)
    with pytest.raises(DeviceError, match=f"^{re.escape(text)}$"):
        check_bundles(workload.name, launch, [change(chunk)], wanted)


def changed_byte(chunk: Chunk) -> Chunk:
    beats = chunk.row_beats.copy()
    beats[7, 3] ^= 1
    return replace(chunk, row_beats=beats)


def changed_end(chunk: Chunk) -> Chunk:
    last = chunk.row_last.copy()
    last[4] = not last[4]
    return replace(chunk, row_last=last)


def lost_beat(chunk: Chunk) -> Chunk:
    return replace(chunk, row_beats=chunk.row_beats[1:], row_last=chunk.row_last[1:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed_byte, "row beat 7 of {name!r} must be the interpreter's, and isn't"),
        (changed_end, "row beat 4 of {name!r} must be the interpreter's, and isn't"),
        (lost_beat, "row beats of {name!r} must be {beats}, not {less}"),
    ],
)
def test_wrong_rows_are_refused(
    workload: Workload, wanted: list[Chunk], change: Callable[[Chunk], Chunk], message: str
) -> None:
    (chunk,) = wanted
    beats = len(chunk.row_beats)
    text = message.format(name=workload.name, beats=beats, less=beats - 1)
    with pytest.raises(DeviceError, match=f"^{re.escape(text)}$"):
        check_rows(workload, [change(chunk)], wanted, chunk.row_keep)


def test_microcode_that_fetches_other_rows_than_numpy_is_refused(
    workload: Workload, wanted: list[Chunk]
) -> None:
    assert workload.rows is not None
    other = replace(workload, rows=workload.rows ^ 1)
    text = f"rows of {workload.name!r} must be NumPy's, and aren't"
    with pytest.raises(DeviceError, match=f"^{re.escape(text)}$"):
        check_rows(other, wanted, wanted, wanted[0].row_keep)


def test_requests_with_a_pause_between_them_are_refused(
    workload: Workload, launch: Launch, wanted: list[Chunk]
) -> None:
    beats = len(wanted[0].row_beats)
    text = (
        f"requests of {workload.name!r} must follow each other without a pause, but the unit "
        f"counted 3 row beats of {beats}"
    )
    with pytest.raises(DeviceError, match=f"^{re.escape(text)}$"):
        delivery(workload, [launch], cast(Any, wanted), {"row_beats": 3, "cycles": 9})


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator(
        CONFIG,
        memory=IdealMemory(latency_cycles=5),
        sink=StallingSink(seed=1, stall_probability=0.1),
        optimise=False,
    ) as opened:
        yield opened


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
@pytest.mark.parametrize("outstanding", [0, 1])
def test_a_point_runs_checked_on_the_simulated_unit(
    simulator: Simulator, workload: Workload, outstanding: int
) -> None:
    delivery = simulator.run(workload, outstanding_reads=outstanding)
    lookups = workload.params["lookups"]
    assert len(delivery.row_cycles) == 3 * lookups
    assert int(delivery.useful_bytes.sum()) == 24 * lookups
    assert delivery.facts["high_water"]["outstanding"] <= (outstanding or CONFIG.outstanding_reads)
    assert 0 < delivery.utilisation < 1
    assert delivery.cycles > 3 * lookups
