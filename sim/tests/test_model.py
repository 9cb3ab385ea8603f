"""The harness against a stand-in whose every cycle is known."""

import math
import re

import numpy as np
import pytest

from ember_hw.sim.dram import DRAM_PRESETS
from ember_hw.sim.model import RunState, SimulationError, VerilatorModel
from ember_hw.sim.options import (
    CoreLikeSink,
    IdealMemory,
    IdealSink,
    LinkMemory,
    Pushes,
    RandomMemory,
    StallingSink,
    TestMemory,
)

from . import toy
from .toy import BASE, Program, run_program, toy_library

pytestmark = pytest.mark.verilator


@pytest.mark.parametrize("latency", [1, 2, 30, 200])
def test_ideal_memory_answers_after_exactly_its_latency(open_model, latency):
    model = open_model(memory=IdealMemory(latency_cycles=latency))
    run_program(model, Program(rows=1))
    requested, answered = map(model.read_register, (toy.FIRST_REQUEST, toy.FIRST_BEAT))
    assert answered - requested == latency


def test_ideal_memory_gives_a_beat_a_cycle(open_model):
    model = open_model(memory=IdealMemory(latency_cycles=30))
    output = run_program(model, Program(rows=15, beats=4, stride=256))
    first, latest = map(model.read_register, (toy.FIRST_BEAT, toy.LATEST_BEAT))
    assert latest - first == 15 * 4 - 1
    assert (np.diff(output.row_cycles) == 1).all()
    assert model.counters().peak_outstanding_reads == 15, "a request is taken every cycle"


@pytest.mark.parametrize("id_per_slot", [0, 1])
@pytest.mark.parametrize(
    "sink",
    [
        IdealSink(),
        StallingSink(seed=3),
        StallingSink(seed=4, freeze_probability=0.01, freeze_cycles=100),
        StallingSink(seed=5, joint=Pushes(row_event_masks=(0b001000,))),
        CoreLikeSink(pushes=Pushes(row_event_masks=(0b001000,))),
    ],
)
@pytest.mark.parametrize(
    "memory",
    [
        IdealMemory(latency_cycles=7),
        TestMemory(seed=6),
        TestMemory(seed=7, reorder=False),
        TestMemory(seed=8, interleave=False),
        RandomMemory(seed=9),
        LinkMemory(latency_cycles=40),
        *DRAM_PRESETS.values(),
    ],
)
def test_every_byte_arrives_in_order(open_model, table, memory, sink, id_per_slot):
    model = open_model(memory=memory, sink=sink)
    program = Program(rows=120, beats=4, stride=256, events=0b101000, id_per_slot=id_per_slot)
    output = run_program(model, program)
    assert output.state is RunState.PROGRAM_ENDED
    np.testing.assert_array_equal(output.row_beats, table[:480])
    np.testing.assert_array_equal(output.row_last, np.tile([False, False, False, True], 120))
    assert (output.bundles[:, 0] & 0b111111 == 0b101000).all()
    packed = np.array([int.from_bytes(bundle.tobytes(), "little") for bundle in output.bundles])
    np.testing.assert_array_equal(packed >> 6 & 0xFFFFFFFF, np.arange(120))
    counters = model.counters()
    assert counters.read_requests == 120
    assert counters.read_beats == counters.row_beats == counters.read_beats_by_id.sum() == 480
    assert counters.read_bytes == counters.row_bytes == 480 * 64
    assert counters.bundles == 120
    assert np.count_nonzero(counters.read_beats_by_id) == (16 if id_per_slot else 1)
    assert counters.start_to_done_cycles <= output.cycles + 10


@pytest.mark.slow
@pytest.mark.parametrize("bus_bytes", [8, 32])
def test_narrow_buses_carry_the_same_bytes(open_model, table, bus_bytes):
    model = open_model(toy_library(bus_bytes, optimise=False))
    output = run_program(model, Program(rows=40, beats=2, stride=64))
    rows = table[:40, : 2 * bus_bytes]
    np.testing.assert_array_equal(output.row_beats.reshape(40, -1), rows)


def test_bursts_overtake_and_mix_only_where_asked(open_model):
    program = Program(rows=120, beats=4, stride=256, id_per_slot=1)
    seen = {}
    for reorder in (False, True):
        for interleave in (False, True):
            memory = TestMemory(seed=9, reorder=reorder, interleave=interleave)
            model = open_model(memory=memory)
            run_program(model, program)
            counts = map(model.read_register, (toy.OVERTAKES, toy.SPLITS))
            seen[reorder, interleave] = tuple(count > 0 for count in counts)
    assert seen == {
        (False, False): (False, False),
        (False, True): (False, False),
        (True, False): (True, False),
        (True, True): (True, True),
    }


def test_random_memory_reorders_and_interleaves_at_a_beat_a_cycle(open_model):
    model = open_model(memory=RandomMemory(seed=2, latency_cycles=(20, 60)))
    run_program(model, Program(rows=120, beats=16, stride=0, id_per_slot=1))
    assert model.read_register(toy.OVERTAKES) > 0
    assert model.read_register(toy.SPLITS) > 0
    first, latest = map(model.read_register, (toy.FIRST_BEAT, toy.LATEST_BEAT))
    assert latest - first < 120 * 16 * 1.2


@pytest.mark.parametrize("memory", [TestMemory(seed=10), RandomMemory(seed=10)])
def test_bursts_of_one_id_never_overtake(open_model, memory):
    model = open_model(memory=memory)
    run_program(model, Program(rows=120, beats=4, stride=256, id_per_slot=0))
    assert model.read_register(toy.OVERTAKES) == 0


def test_a_seed_repeats_a_run_to_the_cycle(open_model):
    def cycles(seed: int) -> list[int]:
        model = open_model(memory=TestMemory(seed=seed), sink=StallingSink(seed=seed))
        return run_program(model, Program(rows=50, id_per_slot=1)).row_cycles.tolist()

    assert cycles(1) == cycles(1)
    assert cycles(1) != cycles(2)


def test_registers_without_an_initial_value_start_at_random(open_model):
    words = {open_model(seed=seed).read_register(toy.FIRST_WORD) for seed in (1, 2, 3)}
    assert len(words) == 3


def test_reads_that_leave_a_region_are_decode_errors(open_model):
    with_tail = np.arange(100, dtype=np.uint8)
    model = open_model()
    model.unmap_regions()
    model.map_region(with_tail, BASE)
    model.map_region(with_tail[:64], BASE + 256)
    # Beats at 0 (held), 64 (crosses the end), 128, 192 (outside), 256 (held), 320 (outside).
    run_program(model, Program(base=BASE, rows=3, beats=2, stride=128))
    assert model.read_register(toy.ERRORS) == model.counters().read_errors == 4
    run_program(model, Program(base=BASE - 64, rows=1))
    assert model.read_register(toy.ERRORS) == 1
    assert model.read_register(toy.FIRST_WORD) == 0xA5A5A5A5, "an error's beat isn't data"


def test_beats_in_the_error_range_answer_slave_error(open_model):
    memory = TestMemory(seed=11, error_range=(BASE + 130, 64))  # touches beats 2 and 3
    model = open_model(memory=memory)
    run_program(model, Program(rows=2, beats=4, stride=256))
    assert model.read_register(toy.ERRORS) == 2


def test_narrow_reads_fill_their_own_lanes_only(open_model, table):
    model = open_model()
    output = run_program(model, Program(base=BASE + 20, rows=1, size=2))
    expected = np.full(64, 0xA5, np.uint8)
    expected[20:24] = table[0, 20:24]
    np.testing.assert_array_equal(output.row_beats[0], expected)
    assert model.counters().read_bytes == 4


@pytest.mark.parametrize(
    ("events", "scalars", "beats", "tail_bytes"),
    [(0b001000, 0, 1, 64), (0b001000, 1, 1, 64), (0b101010, 3, 4, 20), (0b011000, 5, 2, 1)],
)
def test_core_like_sink_takes_its_formula(open_model, events, scalars, beats, tail_bytes):
    pushes = Pushes(scalars_per_event=(9, 0, 9, scalars), row_event_masks=(0b001000, 0b000001))
    model = open_model(memory=IdealMemory(latency_cycles=5), sink=CoreLikeSink(pushes=pushes))
    program = Program(rows=60, beats=beats, stride=256, events=events, tail_bytes=tail_bytes)
    output = run_program(model, program)
    row_bytes = 64 * (beats - 1) + tail_bytes
    bundle_cycles = 4 * events.bit_count() + math.ceil((4 * scalars + row_bytes) / 16)
    first_beats = output.row_cycles[::beats][5:]  # once the memory is ahead
    assert set(np.diff(first_beats)) == {bundle_cycles}
    assert model.counters().row_bytes == 60 * row_bytes


def test_joint_sink_takes_a_row_only_after_its_bundle(open_model):
    joint = StallingSink(seed=12, joint=Pushes(row_event_masks=(0b001000,)))
    for sink, early in ((joint, False), (StallingSink(seed=12, stall_probability=0.9), True)):
        model = open_model(sink=sink)
        run_program(model, Program(rows=100))
        assert (model.read_register(toy.EARLY_BEATS) > 0) == early


def test_full_buffers_stop_time_and_change_no_timing(open_model):
    program = Program(rows=100, beats=4, stride=256)
    roomy, tight = (
        run_program(open_model(sink=StallingSink(seed=13), **capacities), program)
        for capacities in ({}, {"bundle_capacity": 7, "row_capacity": 5})
    )
    assert tight.runs > 60
    for name in ("bundles", "row_beats", "row_last", "row_cycles", "cycles"):
        np.testing.assert_array_equal(getattr(tight, name), getattr(roomy, name))


def test_a_program_that_hangs_ends_with_idle_timeout(open_model):
    model = open_model()
    output = run_program(model, Program(rows=1, misdeed=toy.HANG), max_idle_cycles=500)
    assert output.state is RunState.IDLE_TIMEOUT
    again = model.run(max_idle_cycles=500)
    assert (again.state, again.cycles) == (RunState.IDLE_TIMEOUT, 500)
    short = model.run(max_cycles=300)
    assert (short.state, short.cycles) == (RunState.CYCLE_LIMIT, 300)


def test_a_reset_of_the_queues_takes_back_what_was_shown_and_what_is_due(open_model):
    # The sink awaits two rows a bundle: the second lacks one, so the third is never taken.
    pushes = Pushes(row_event_masks=(0b001000, 0b001000))
    model = open_model(sink=CoreLikeSink(pushes=pushes))
    stuck = run_program(model, Program(rows=3, misdeed=toy.HANG), max_idle_cycles=500)
    assert (stuck.state, len(stuck.bundles)) == (RunState.IDLE_TIMEOUT, 2)
    model.write_register(toy.QUEUE_RESET, 1)
    for register, value in ((toy.MISDEED, 0), (toy.ROWS, 0), (toy.CONTROL, 1), (toy.CONTROL, 2)):
        model.write_register(register, value)  # a program of no rows: nothing is left to show
    model.write_register(toy.QUEUE_RESET, 0)
    assert len(run_program(model, Program(rows=1), max_idle_cycles=500).bundles) == 1


def test_a_long_run_with_traffic_is_never_idle(open_model):
    output = run_program(open_model(), Program(rows=5_000, stride=0), max_idle_cycles=200)
    assert output.state is RunState.PROGRAM_ENDED
    assert output.cycles > 20_000


def test_start_to_done_counts_from_the_start_command(open_model):
    model = open_model(memory=IdealMemory(latency_cycles=50))
    output = run_program(model, Program(rows=1))
    assert model.counters().start_to_done_cycles == 50 + 4
    model.clear_counters()
    assert model.counters().cycles == model.counters().row_beats == 0
    assert len(output.row_beats) == 1


def test_reset_in_the_middle_leaves_a_clean_unit(open_model, table):
    for wait in range(0, 60, 7):
        model = open_model(memory=IdealMemory(latency_cycles=20), row_capacity=40)
        Program(rows=30, beats=2, stride=128).start(model)
        model.run(max_idle_cycles=wait + 1)
        model.reset()
        output = run_program(model, Program(rows=10))
        assert output.state is RunState.PROGRAM_ENDED
        np.testing.assert_array_equal(output.row_beats, table[:10])


def test_memory_changes_only_between_reads(open_model):
    model = open_model()
    Program(rows=10).start(model)
    model.read_register(toy.ERRORS)
    with pytest.raises(
        ValueError,
        match=r"^the memory must be set while nothing is outstanding; reset the model first$",
    ):
        model.set_memory(IdealMemory())
    model.reset()
    model.set_memory(IdealMemory(latency_cycles=3))
    assert model.memory.latency_cycles == 3


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            Program(rows=50, misdeed=toy.DROP_VALID),
            r"m_axis_row must keep VALID until READY, but dropped it in cycle \d+",
        ),
        (
            Program(rows=50, misdeed=toy.CHANGE_PAYLOAD),
            r"m_axis_row must hold its payload until READY, but changed it in cycle \d+",
        ),
        (
            Program(misdeed=toy.FAIL_ASSERTION),
            r"an assertion failed at access_unit\.v:\d+",
        ),
        (Program(misdeed=toy.FINISH), r"the design called \$finish at access_unit\.v:\d+"),
        (
            Program(misdeed=toy.FIXED_BURST),
            r"m_axi_ar must ask for INCR bursts, not ARBURST 0 \(address 65536, cycle \d+\)",
        ),
        (
            Program(size=7),
            r"m_axi_ar must ask for beats of at most 64 bytes, "
            r"not 128 \(address 65536, cycle \d+\)",
        ),
        (
            Program(base=BASE + 0xFC0, beats=2),
            r"m_axi_ar must not cross a 4 KB boundary \(address 69568, cycle \d+\)",
        ),
    ],
)
def test_broken_rules_end_the_simulation(open_model, program, message):
    model = open_model(sink=StallingSink(seed=14))
    for _ in range(2):  # and it stays ended
        with pytest.raises(SimulationError, match=f"^{message}$"):
            run_program(model, program)


def test_a_burst_may_end_at_a_4_kb_boundary(open_model):
    output = run_program(open_model(), Program(base=BASE + 0xF80, beats=2))
    assert output.state is RunState.PROGRAM_ENDED


@pytest.mark.parametrize(
    ("address", "write_message", "read_message"),
    [
        (
            0xFF8,
            "a write to register 0xff8 must answer OKAY, not SLVERR",
            "a read of register 0xff8 must answer OKAY, not SLVERR",
        ),
        (
            0xFFC,
            "a write to register 4092 must be answered within 10000 cycles, and wasn't",
            "a read of register 4092 must be answered within 10000 cycles, and wasn't",
        ),
    ],
)
def test_register_errors_are_raised(open_model, address, write_message, read_message):
    with pytest.raises(SimulationError, match=f"^{write_message}$"):
        open_model().write_register(address, 0)
    with pytest.raises(SimulationError, match=f"^{read_message}$"):
        open_model().read_register(address)


@pytest.mark.parametrize(
    ("array", "base", "message"),
    [
        (
            np.zeros((4, 4))[:, ::2],
            0,
            "a mapped array must be C-contiguous, not strided; copy it first",
        ),
        (np.zeros(64), 32, "base must be a multiple of the bus's 64 bytes, not 0x20"),
        (
            np.zeros(16),
            (1 << 40) - 64,
            "a region must lie below 2**40, not at 0xffffffffc0 with 128 bytes",
        ),
        (
            np.zeros(16),
            BASE - 64,
            "regions must not overlap, but 0xffc0 + 128 meets 0x10000 + 32768",
        ),
    ],
)
def test_misplaced_regions_are_refused(open_model, array, base, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        open_model().map_region(array, base)


def test_neighbouring_and_empty_regions_are_fine(open_model):
    model = open_model()
    model.map_region(np.zeros(64, np.uint8), BASE - 64)
    model.map_region(np.zeros((0, 64), np.float32), BASE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 0}, r"seed must be 1 to 2\*\*31 - 1, not 0"),
        ({"bundle_capacity": 0}, "bundle_capacity must be at least 1, not 0"),
        ({"row_capacity": 0}, "row_capacity must be at least 1, not 0"),
    ],
)
def test_bad_options_are_refused(library, options, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        VerilatorModel(library, **options)


def test_a_closed_model_says_so(open_model):
    model = open_model()
    model.close()
    model.close()
    with pytest.raises(ValueError, match=r"^the model must be open, and has been closed$"):
        model.run()
