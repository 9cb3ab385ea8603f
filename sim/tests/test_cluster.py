"""Several units, channels and index streams, and lists of register accesses, with toys."""

import re
from collections.abc import Iterator

import numpy as np
import pytest

from ember_hw.sim.dram import DRAM_PRESETS
from ember_hw.sim.memory_library import COMMANDS, replay
from ember_hw.sim.model import Access, AccessKind, RunState, SimulationError, VerilatorModel
from ember_hw.sim.options import IdealMemory, Pushes, RandomMemory, StallingSink
from ember_hw.sim.timing_check import check_commands

from . import toy
from .toy import BASE, Program, run_program, toy_cluster_library

pytestmark = pytest.mark.verilator
UNUSED = 0x60  # a register that reads as 0


@pytest.fixture
def model(table: np.ndarray) -> Iterator[VerilatorModel]:
    with VerilatorModel(toy_cluster_library()) as opened:
        opened.map_region(table, BASE)
        yield opened


def test_units_run_at_the_same_time_on_their_own_channels(model, table):
    model.set_memory(IdealMemory(latency_cycles=20), channel=0)
    model.set_memory(RandomMemory(seed=3), channel=1)
    model.set_sink(StallingSink(seed=4, joint=Pushes(row_event_masks=(0b001000,))), unit=1)
    programs = Program(rows=100, id_per_slot=1), Program(rows=60, stride=128, id_per_slot=1)
    for unit, program in enumerate(programs):
        program.start(model, unit)
    result = model.run()
    assert result.state is RunState.PROGRAM_ENDED
    np.testing.assert_array_equal(result.outputs[0].row_beats, table[:100])
    np.testing.assert_array_equal(result.outputs[1].row_beats, table[:120:2])
    assert [model.channel_counters(channel).read_requests for channel in (0, 1)] == [100, 60]
    assert model.counters().row_beats == 160
    assert model.counters().read_beats_by_id.sum() == 160


def test_only_the_units_asked_for_are_awaited(model):
    Program(rows=3, misdeed=toy.HANG).start(model, 0)
    Program(rows=3).start(model, 1)
    assert model.run(awaited=[1], max_idle_cycles=500).state is RunState.PROGRAM_ENDED
    assert model.run(awaited=[0], max_idle_cycles=500).state is RunState.IDLE_TIMEOUT


def test_bursts_are_kept_by_channel(model):
    model.record_reads()
    Program(rows=5, beats=2, stride=256).start(model, 0)
    Program(rows=1, base=BASE + 64).start(model, 1)
    model.run()
    reads = model.reads(0)
    assert reads["address"].tolist() == [BASE + 256 * n for n in range(5)]
    assert reads["beats"].tolist() == [2] * 5
    assert reads["beat_bytes"].tolist() == [64] * 5
    assert (np.diff(reads["cycle"].astype(int)) >= 1).all()
    assert model.reads(1)["address"].tolist() == [BASE + 64]
    model.record_reads(False)
    assert len(model.reads(0)) == 0


@pytest.mark.parametrize("name", DRAM_PRESETS)
def test_dram_commands_of_a_run_break_no_limit(table, name):
    dram = DRAM_PRESETS[name]
    with VerilatorModel(toy_cluster_library(), memory=dram, record_commands=True) as model:
        model.map_region(table, BASE)
        model.record_reads()
        for unit in (0, 1):
            Program(rows=120, stride=256, beats=4, id_per_slot=1).start(model, unit)
        result = model.run()
        assert result.state is RunState.PROGRAM_ENDED
        for channel in (0, 1):
            np.testing.assert_array_equal(result.outputs[channel].row_beats, table[:480])
            commands = model.dram_commands(channel)
            assert check_commands(dram, commands) == []
            reads = (commands["kind"] == COMMANDS.index("READ")).sum()
            assert reads == 480 * 64 // dram.access_bytes
        bound = replay(dram, model.reads(0), bus_bytes=64)
        cycles = int(result.outputs[0].row_cycles[-1] - model.reads(0)["cycle"][0])
        assert 0.5 * cycles < bound <= cycles


def write(address: int, value: int = 0) -> Access:
    return Access(kind=AccessKind.WRITE, address=address, value=value)


def test_a_list_of_accesses_starts_units_while_others_run(model, table):
    programs = Program(rows=100), Program(rows=30)
    starts = [write(*access) for n in (0, 1) for access in programs[n].writes(model, n)]
    model.set_accesses([*starts, Access(kind=AccessKind.WAIT, address=UNUSED, value=0)])
    first, second = model.run().outputs
    assert model.accesses_left == 0
    np.testing.assert_array_equal(first.row_beats, table[:100])
    np.testing.assert_array_equal(second.row_beats, table[:30])
    assert second.row_cycles[0] < first.row_cycles[-1]


def test_a_refused_write_abandons_the_list(model):
    model.set_accesses([write(toy.ROWS, 1), write(0xFF8), write(toy.CONTROL, 1)])
    assert model.run(max_idle_cycles=100).state is RunState.PROGRAM_ENDED
    assert model.accesses_left == 2
    assert model.counters().read_requests == 0


@pytest.mark.parametrize(("value", "left"), [(0, 2), (1, 0)])
def test_a_stop_abandons_the_list_at_its_value(model, value, left):
    stop = Access(kind=AccessKind.STOP_IF, address=UNUSED, value=value)
    model.set_accesses([stop, write(toy.ROWS, 1)])
    model.run()
    assert model.accesses_left == left


def test_a_wait_that_never_ends_is_idle_and_registers_still_answer(model):
    Program(rows=2, base=0x9_0000).start(model)  # DECERR, twice
    model.run(awaited=[0])
    model.set_accesses([Access(kind=AccessKind.WAIT, address=toy.ERRORS, value=1)])
    assert model.run(max_idle_cycles=300).state is RunState.IDLE_TIMEOUT
    assert model.accesses_left == 1
    assert model.read_register(toy.ERRORS) == 2
    model.set_accesses([Access(kind=AccessKind.WAIT, address=toy.ERRORS, value=1, mask=1)])
    assert model.run(max_idle_cycles=300).state is RunState.PROGRAM_ENDED


def lines(count: int) -> tuple[np.ndarray, np.ndarray]:
    content = np.zeros((count, 64), np.uint8)
    content[:, ::16] = np.arange(4 * count).reshape(count, 4)
    return np.arange(count, dtype=np.uint32), content


def test_lines_cross_the_index_stream_in_order(model):
    """The toy asserts number and destination of each beat."""
    for unit, count in ((0, 5), (1, 8)):
        model.set_input(*lines(count), unit=unit)
    assert model.run(max_idle_cycles=20).state is RunState.IDLE_TIMEOUT
    assert [model.input_lines_left(unit) for unit in (0, 1)] == [0, 0]


def test_a_line_out_of_order_is_noticed_by_the_toy(model):
    destinations, content = lines(5)
    model.set_input(destinations[::-1], content)
    with pytest.raises(SimulationError, match="an assertion failed"):
        model.run(max_idle_cycles=20)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.set_memory(IdealMemory(), channel=2), "channel must be 0 to 1, not 2"),
        (lambda model: model.reads(-1), "channel must be 0 to 1, not -1"),
        (lambda model: model.input_lines_left(2), "unit must be 0 to 1, not 2"),
        (
            lambda model: model.set_input(np.zeros(2, np.uint32), np.zeros((3, 64), np.uint8)),
            "lines must be 64 bytes for each of the 2 destinations, not (3, 64)",
        ),
    ],
)
def test_what_is_not_there_is_refused(model, call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call(model)


def test_a_model_without_an_index_stream_takes_no_lines(open_model):
    message = "an input must go to a model with an index stream, and this has none"
    with pytest.raises(ValueError, match=f"^{message}$"):
        open_model().set_input(*lines(1))


def test_one_unit_has_one_output(open_model, table):
    assert len(run_program(open_model(), Program(rows=2)).row_beats) == 2
