from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ember_hw.bench import cluster
from ember_hw.bench.cluster import Cluster, ClusterDelivery
from ember_hw.bench.presets import cluster_unit
from ember_hw.bench.programs import TASKS
from ember_hw.bench.simulated import Delivery
from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.errors import DeviceError
from ember_hw.registers import (
    COMPLETED,
    FAULT,
    FAULT_ADDRESS_LOW,
    NO_UNIT,
    STATUS,
    Counter,
    FaultCode,
    State,
    counter_address,
)
from ember_hw.sim.model import RunState, UnitOutput

CONFIG = cluster_unit(64)
TASK = TASKS["embedding_bag_requests"](requests=2, row_bytes=64, bags=2, lookups=16)
LAUNCHES = [[launch] for launch in TASK.launches(CONFIG)]
ROWS = list(TASK.rows.reshape(2, -1))


class AModel:
    """Delivers at once what the interpreter does; each unit has counted its row beats."""

    ends = RunState.PROGRAM_ENDED
    states: Sequence[State] = ()

    def __init__(self, *_: Any, **__: Any) -> None:
        self._units = list(LAUNCHES)
        self._states = iter(self.states)
        self._completed = 0

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None

    def read_register(self, address: int) -> int:
        if address & 0xFFF == STATUS.address:
            return next(self._states, State.DONE)
        counted = {
            counter_address(c): n for c, n in ((Counter.ROW_BEATS, 128), (Counter.CYCLES, 9))
        }
        counted[COMPLETED.address] = self._completed
        counted[FAULT.address] = FaultCode.INDEX_OUT_OF_RANGE | NO_UNIT << 8 | 1 << 16
        counted[FAULT_ADDRESS_LOW.address] = 500
        return counted.get(address & 0xFFF, 0)

    def channel_counters(self, channel: int) -> Any:
        return SimpleNamespace(read_beats=10 * channel)

    def run(self, **_: Any) -> Any:
        outputs = [self._output(unit[0]) if unit else None for unit in self._units]
        self._completed = 1
        self._units = [[] for _ in outputs]
        return SimpleNamespace(state=self.ends, outputs=[o or self._nothing() for o in outputs])

    def _nothing(self) -> UnitOutput:
        beats = np.zeros((0, CONFIG.bus_bytes), np.uint8)
        bundles = np.zeros((0, CONFIG.bundle_bytes), np.uint8)
        return UnitOutput(bundles, beats, np.zeros(0, np.bool_), np.zeros(0, np.uint64))

    def _output(self, launch: Any) -> UnitOutput:
        regions = [(region.base, region.data) for region in launch.regions]
        (chunk,) = execute(launch.microcode, regions, requests=[launch.arguments])
        bundles = np.zeros((len(chunk.events), CONFIG.bundle_bytes), np.uint8)
        for bundle, events in zip(bundles, chunk.events, strict=True):
            bundle[:] = np.frombuffer(int(events).to_bytes(CONFIG.bundle_bytes, "little"), np.uint8)
        cycles = np.arange(len(chunk.row_beats), dtype=np.uint64)
        return UnitOutput(bundles, chunk.row_beats, chunk.row_last, cycles)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(cluster, "build_model", lambda *_, **__: None)
    monkeypatch.setattr(cluster, "cached_cluster_verilog", lambda *_, **__: "")
    monkeypatch.setattr(cluster, "VerilatorModel", AModel)
    return Cluster(CONFIG, units=2, channels=2, sharing="private")


IDLE = [State.IDLE] * 2
ENDS = [State.DONE, State.FAULTED]


def test_what_every_unit_delivers_is_checked(
    opened: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened._model, "_states", iter([*IDLE, State.RUNNING]))
    came = opened.run(LAUNCHES, ROWS, "bags")
    assert [len(unit.row_cycles) for unit in came.units] == [128, 128]
    assert came.channel_beats.tolist() == [0, 10]
    assert came.beats_per_cycle == pytest.approx(2, rel=0.02)
    assert came.cycles == 9


def test_rows_of_another_unit_are_refused(opened: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened._model, "_states", iter(IDLE))
    text = "rows of 'bags, unit 0' must be NumPy's, and aren't"
    with pytest.raises(DeviceError, match=f"^{re.escape(text)}$"):
        opened.run(LAUNCHES, ROWS[::-1], "bags")


@pytest.mark.parametrize(
    ("states", "ends", "text"),
    [
        (
            [State.RESETTING] * 5000,
            RunState.PROGRAM_ENDED,
            "every unit must be IDLE after a reset, and isn't",
        ),
        (
            [*IDLE, State.IDLE, State.DONE, State.IDLE],
            RunState.PROGRAM_ENDED,
            "unit 0 with 'bags': state at the end of a program must be DONE, not IDLE",
        ),
        (
            IDLE,
            RunState.IDLE_TIMEOUT,
            "units [0, 1] must go on with 'bags', but nothing moved for 100000 cycles",
        ),
        (
            [*IDLE, State.DRAINING, State.RESETTING, State.DONE, State.FAULTED, *ENDS],
            RunState.PROGRAM_ENDED,
            "unit 1 with 'bags': access unit fault INDEX_OUT_OF_RANGE (row entry 1, index 0x1f4): "
            "an index must be a row of its table",
        ),
    ],
)
def test_units_that_do_not_end_well_are_refused(
    opened: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    states: Sequence[State],
    ends: RunState,
    text: str,
) -> None:
    monkeypatch.setattr(opened._model, "_states", iter(states))
    monkeypatch.setattr(opened._model, "ends", ends)
    with pytest.raises(DeviceError, match=f"^{re.escape(text)}$"):
        opened.run(LAUNCHES, ROWS, "bags")


def test_shares_are_of_the_cycles_of_all_units() -> None:
    facts = [
        {"row_beats": 6, "index_beats": 1, "stalls": {"memory": 3}},
        {"row_beats": 6, "index_beats": 0, "stalls": {"memory": 24}},
    ]
    nothing = np.zeros(0, np.uint64)
    units = [
        Delivery(cycles, nothing, nothing.astype(np.uint8), 8, fact)
        for cycles, fact in zip((10, 30), facts, strict=True)
    ]
    shares = ClusterDelivery(units, np.zeros(1, np.int64)).shares()
    expected = {"row beats": 12 / 40, "index lines": 1 / 40, "memory": 27 / 40}
    assert shares == pytest.approx(expected)
