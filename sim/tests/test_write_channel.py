"""The harness's port for writes against a stand-in that writes."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_hw.sim.build import ModelShape, build_model
from ember_hw.sim.dram import DRAM_PRESETS
from ember_hw.sim.memory_library import COMMANDS
from ember_hw.sim.model import RunResult, RunState, SimulationError, VerilatorModel
from ember_hw.sim.options import IdealMemory, LinkMemory, RandomMemory, TestMemory
from ember_hw.sim.results import StreamState
from ember_hw.sim.timing_check import check_commands

pytestmark = pytest.mark.verilator

VERILOG = Path(__file__).with_name("toy_writing_unit.v").read_text()
BUS_BYTES, BASE = 16, 0x1_0000
GOOD, SLAVE_ERRORS, DECODE_ERRORS, LATEST_BEAT, LATEST_ANSWER = range(0x40, 0x54, 4)
DROP_VALID, CHANGE_PAYLOAD, EARLY_LAST, WIDE_STROBES, FIXED_BURST = range(1, 6)
STALLING = TestMemory(seed=3, request_stall_probability=0.5, beat_stall_probability=0.5)


@pytest.fixture(scope="module")
def library() -> Path:
    shape = ModelShape(
        **{"bus_bytes": BUS_BYTES, "bundle_bytes": 9, "event_bits": 6, "id_bits": 4},
        **{"address_bits": 40, "reduces": 1, "writes": 1},
    )
    return build_model(VERILOG, shape, optimise=False)


@pytest.fixture
def open_model(library: Path) -> Iterator[Callable[..., VerilatorModel]]:
    models = []

    def open_(**options: Any) -> VerilatorModel:
        models.append(VerilatorModel(library, **options))
        return models[-1]

    yield open_
    for model in models:
        model.close()


@dataclass(frozen=True, kw_only=True)
class Program:
    """What the toy writes; the fields are its registers from `base` on, in order."""

    base: int = BASE
    bursts: int = 10
    beats: int = 4
    tail_bytes: int = BUS_BYTES
    misdeed: int = 0
    size: int = 4
    order: int = 0

    def run(self, model: VerilatorModel, **limits: Any) -> RunResult:
        for number, value in enumerate([*vars(self).values()], start=1):
            model.write_register(4 * number, value)
        model.write_register(0, 1)
        return model.run(max_idle_cycles=2000, **limits)

    def expected(self) -> np.ndarray:
        """Return the bytes of full beats."""
        numbers = np.arange(self.bursts * self.beats)[:, None]
        return (7 * numbers + np.arange(BUS_BYTES)).astype(np.uint8).reshape(-1)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize(
    "memory",
    [
        *(IdealMemory(latency_cycles=1), IdealMemory(latency_cycles=90), STALLING),
        *(RandomMemory(seed=9), LinkMemory(latency_cycles=40), *DRAM_PRESETS.values()),
    ],
    ids=lambda memory: getattr(memory, "name", ""),
)
def test_every_byte_is_written(
    open_model: Callable[..., VerilatorModel], memory: Any, order: int
) -> None:
    model = open_model(memory=memory)
    program = Program(bursts=30, beats=8, tail_bytes=5, order=order)
    written = np.full(30 * 8 * BUS_BYTES, 0x55, np.uint8)
    model.map_region(written, BASE, is_writable=True)
    model.record_writes()
    assert program.run(model).state is RunState.PROGRAM_ENDED
    whole = program.expected()
    whole[-BUS_BYTES + 5 :] = 0x55
    np.testing.assert_array_equal(written, whole)
    counters = model.write_counters()
    assert (counters.write_requests, counters.write_beats) == (30, 240)
    assert (counters.write_bytes, counters.write_errors) == (240 * BUS_BYTES - 11, 0)
    assert (np.diff(model.write_cycles().astype(np.int64)) > 0).all()
    assert len(model.write_cycles()) == 240
    assert model.read_register(GOOD) == 30


@pytest.mark.parametrize("latency", [2, 30, 201])
def test_ideal_memory_takes_a_beat_a_cycle_and_answers_after_its_latency(
    open_model: Callable[..., VerilatorModel], latency: int
) -> None:
    model = open_model(memory=IdealMemory(latency_cycles=latency))
    model.map_region(np.zeros(16 * 16 * BUS_BYTES, np.uint8), BASE, is_writable=True)
    model.record_writes()
    Program(bursts=16, beats=16).run(model)
    assert (np.diff(model.write_cycles().astype(np.int64)) == 1).all()
    waited = model.read_register(LATEST_ANSWER) - model.read_register(LATEST_BEAT)
    assert waited in (latency, latency + 1), "the toy takes answers every second cycle"
    assert model.write_counters().peak_outstanding_writes == 16


def test_a_link_has_its_rate_for_writes_too(open_model: Callable[..., VerilatorModel]) -> None:
    model = open_model(memory=LinkMemory(latency_cycles=50, bytes_per_cycle=4))
    model.map_region(np.zeros(10 * 4 * BUS_BYTES, np.uint8), BASE, is_writable=True)
    Program(bursts=10, beats=4).run(model)
    waited = model.read_register(LATEST_ANSWER) - model.read_register(LATEST_BEAT)
    # It crosses from the end of the first burst on; 36 of 40 beats are on their way meanwhile.
    assert waited in (50 + 10 * 4 * 4 - 36, 50 + 10 * 4 * 4 - 36 + 1)


def test_bytes_are_there_when_a_write_is_answered(
    open_model: Callable[..., VerilatorModel],
) -> None:
    model = open_model(memory=IdealMemory(latency_cycles=100))
    written = np.zeros(4 * BUS_BYTES, np.uint8)
    model.map_region(written, BASE, is_writable=True)
    program = Program(bursts=1)
    assert program.run(model, max_cycles=80).state is RunState.CYCLE_LIMIT
    assert model.write_counters().write_beats == 4
    state = model.write_state()
    assert (state.outstanding, state.answers) == (1, StreamState(False, state.answers.ready))
    assert not written.any()
    with pytest.raises(ValueError, match=r"outstanding") as caught:
        model.set_memory(IdealMemory())
    assert str(caught.value) == (
        "the memory must be set while nothing is outstanding; reset the model first"
    )
    assert model.run().state is RunState.PROGRAM_ENDED
    np.testing.assert_array_equal(written, program.expected())


def test_a_reset_forgets_writes_in_flight(open_model: Callable[..., VerilatorModel]) -> None:
    written = np.zeros(40 * BUS_BYTES, np.uint8)
    for cycles in range(1, 60, 7):
        model = open_model(memory=IdealMemory(latency_cycles=20))
        model.map_region(written, BASE, is_writable=True)
        Program().run(model, max_cycles=cycles)
        model.reset()
        written[:] = 0
        assert Program().run(model).state is RunState.PROGRAM_ENDED
        np.testing.assert_array_equal(written, Program().expected())


def test_of_a_burst_in_error_nothing_is_written(
    open_model: Callable[..., VerilatorModel],
) -> None:
    model = open_model()
    beats = np.zeros((6, BUS_BYTES), np.uint8)
    fixed = np.zeros(4 * BUS_BYTES, np.uint8)
    model.map_region(beats, BASE, is_writable=True)
    model.map_region(fixed, BASE + 8 * BUS_BYTES)
    # Burst 0 lies in the region, burst 1 leaves it, burst 2 lies where nothing is written.
    program = Program(bursts=3)
    assert program.run(model).state is RunState.PROGRAM_ENDED
    counts = map(model.read_register, (GOOD, SLAVE_ERRORS, DECODE_ERRORS))
    assert tuple(counts) == (1, 1, 1)
    assert model.write_counters().write_errors == 2
    np.testing.assert_array_equal(beats[:4].reshape(-1), program.expected()[: 4 * BUS_BYTES])
    assert not beats[4:].any()
    assert not fixed.any()


def test_errors_are_injected_by_address(open_model: Callable[..., VerilatorModel]) -> None:
    memory = TestMemory(
        seed=1,
        error_range=(BASE + 7 * BUS_BYTES + 15, 2),  # bursts 1 and 2
        decode_error_range=(BASE + 8 * BUS_BYTES, 1),
    )
    model = open_model(memory=memory)
    model.map_region(np.zeros(40 * BUS_BYTES, np.uint8), BASE, is_writable=True)
    Program().run(model)
    counts = map(model.read_register, (GOOD, SLAVE_ERRORS, DECODE_ERRORS))
    assert tuple(counts) == (8, 1, 1), "a decode error is the worse one"


def test_memory_stops_for_writes_alone(open_model: Callable[..., VerilatorModel]) -> None:
    memory = TestMemory(seed=1, write_latency_cycles=(5000, 5000))
    model = open_model(memory=memory)
    model.map_region(np.zeros(40 * BUS_BYTES, np.uint8), BASE, is_writable=True)
    assert Program().run(model).state is RunState.IDLE_TIMEOUT
    assert model.write_state().outstanding == 10
    assert model.run(max_idle_cycles=6000).state is RunState.PROGRAM_ENDED


def test_narrow_writes_use_lanes_of_their_own(open_model: Callable[..., VerilatorModel]) -> None:
    model = open_model()
    written = np.zeros(2 * BUS_BYTES, np.uint8)
    model.map_region(written, BASE, is_writable=True)
    program = Program(base=BASE + 8, bursts=2, beats=2, size=2, tail_bytes=3)
    assert program.run(model).state is RunState.PROGRAM_ENDED
    # Beats of 4 bytes, in lanes 8 to 15 and 0 to 6.
    expected = np.zeros(2 * BUS_BYTES, np.uint8)
    for number, at in enumerate((8, 12, 16, 20)):
        count = 3 if number == 3 else 4
        lanes = at % BUS_BYTES + np.arange(count)
        expected[at : at + count] = 7 * number + lanes
    np.testing.assert_array_equal(written, expected)


def test_writes_of_a_dram_break_no_limit(open_model: Callable[..., VerilatorModel]) -> None:
    dram = DRAM_PRESETS["ddr4-2400"]
    model = open_model(memory=dram, record_commands=True)
    model.map_region(np.zeros(1 << 20, np.uint8), BASE, is_writable=True)
    Program(bursts=200, beats=16).run(model)
    commands = model.dram_commands()
    assert check_commands(dram, commands) == []
    assert (commands["kind"] == COMMANDS.index("WRITE")).sum() == 200 * 16 * 16 // 64


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            Program(misdeed=DROP_VALID),
            r"m_axi_result_aw must keep VALID until READY, but dropped it in cycle \d+",
        ),
        (
            Program(misdeed=CHANGE_PAYLOAD),
            r"m_axi_result_w must hold its payload until READY, but changed it in cycle \d+",
        ),
        (
            Program(misdeed=EARLY_LAST),
            "m_axi_result_w must have WLAST with the last beat of a burst, and only there "
            r"\(beat 0 of the burst at 65536, cycle \d+\)",
        ),
        (
            Program(misdeed=WIDE_STROBES, size=3),
            "m_axi_result_w must have strobes in the lanes of its beats alone "
            r"\(beat 0 of the burst at 65536, cycle \d+\)",
        ),
        (
            Program(misdeed=FIXED_BURST),
            r"m_axi_result_aw must ask for INCR bursts, not AWBURST 0 \(address 65536, "
            r"cycle \d+\)",
        ),
        (
            Program(size=5),
            r"m_axi_result_aw must ask for beats of at most 16 bytes, not 32 \(address 65536, "
            r"cycle \d+\)",
        ),
        (
            Program(base=BASE + 0xFE0),
            r"m_axi_result_aw must not cross a 4 KB boundary \(address 69600, cycle \d+\)",
        ),
    ],
)
def test_broken_rules_end_the_simulation(
    open_model: Callable[..., VerilatorModel], program: Program, message: str
) -> None:
    model = open_model(memory=STALLING)
    with pytest.raises(SimulationError, match=f"^{message}$"):
        program.run(model)


def test_only_what_can_be_written_is_mapped_for_it(
    open_model: Callable[..., VerilatorModel],
) -> None:
    fixed = np.zeros(64, np.uint8)
    fixed.flags.writeable = False
    model = open_model()
    model.map_region(fixed, BASE)
    with pytest.raises(ValueError, match="writeable") as caught:
        model.map_region(fixed, BASE + 64, is_writable=True)
    assert re.fullmatch(
        "a mapped array must be writeable to be written, and isn't", str(caught.value)
    )


def test_writing_needs_a_reduce_unit_of_a_single_unit() -> None:
    widths = {"bus_bytes": 16, "bundle_bytes": 9, "event_bits": 6, "id_bits": 4, "address_bits": 40}
    for changes in ({"reduces": 0}, {"reduces": 1, "units": 2, "memory_ports": 2}):
        with pytest.raises(ValueError, match=r"^writes must be 0 to 0, not 1$"):
            ModelShape(**widths, **changes, writes=1)
