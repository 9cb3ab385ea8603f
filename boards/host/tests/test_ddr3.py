"""The host finds what each byte lane needs, and says what went wrong where nothing does."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec

import pytest

from ember_hw.boards.ddr3 import CPU_KIND, HOST_KIND
from ember_hw.boards.ddr3.chip import CHIPS
from ember_hw.boards.ddr3.generate import Order, generate
from ember_hw.boards.host import ddr3
from ember_hw.boards.host.board import Board
from ember_hw.boards.host.client import LinkClient
from ember_hw.boards.host.ddr3 import STEPS, LaneLevel, prepare_memory
from ember_hw.boards.host.tests.ddr3_model import Lane, board_with
from ember_hw.boards.host.tests.fakes import DESCRIPTION, FakeBoard
from ember_hw.boards.links.frame import BOARD_REGISTERS
from ember_hw.errors import DeviceError, LinkError


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []
    monkeypatch.setattr(ddr3, "sleep", waited.append)
    return waited


def test_each_lane_gets_the_middle_of_its_longest_run() -> None:
    board, _, registers = board_with(HOST_KIND, Lane(2, (1, 2, 3, 4, 7)), Lane(0, (0, 5, 6, 7)))
    told: list[str] = []
    assert prepare_memory(board, told.append) == [
        LaneLevel(0, 2, 3, (1, 2, 3, 4)),
        LaneLevel(1, 0, 6, (5, 6, 7)),
    ]
    assert [lane.now for lane in registers.lanes] == [[2, 3], [0, 6]]
    assert registers.of("sdram_dfii_control") == 1
    assert (registers.of("ddrctrl_init_done"), registers.of("ddrctrl_init_error")) == (1, 0)
    assert registers.row is None
    assert told[0] == "DDR3: mode registers"
    assert "DDR3: byte lane 0, bitslip 2: 5 of 8 delays right" in told
    assert "DDR3: byte lane 1: bitslip 0, delay 6" in told
    assert told[-1] == "DDR3: initialised"


def test_chip_is_brought_up_in_the_order_of_the_standard(waits: list[float]) -> None:
    board, _, registers = board_with(HOST_KIND, Lane(0, (1,)), Lane(0, (1,)))
    prepare_memory(board, lambda text: None)
    commands = [entry for entry in registers.log if entry[1]]
    modes = [(bank, address) for _, command, address, bank in commands if command == 0b1111]
    assert modes == [(2, 0x200), (3, 0), (1, 6), (0, 0x320)]
    assert commands[-1] == (0b1110, 0b0011, 0x400, 0)  # calibration of all banks, CKE high
    controls = [control for control, command, _, _ in registers.log if not command]
    assert controls[:2] == [0b1100, 0b1110]
    assert waits[:2] == [2e-3, 1e-3]


def test_host_goes_on_where_one_broke_off() -> None:
    board, fake, registers = board_with(HOST_KIND, Lane(1, (1, 2)), Lane(0, (1,)))
    write, count = fake.write, [0]

    def breaks(content: bytes) -> None:
        count[0] += 1
        if count[0] > 400:
            raise LinkError("port fake must be open")
        write(content)

    fake.write = breaks
    with pytest.raises(LinkError, match=r"^port fake must be open$"):
        prepare_memory(board, lambda text: None)
    assert registers.row is not None
    fake.write = write
    again = Board(LinkClient(fake, seed=2))
    assert [level.bitslip for level in prepare_memory(again, lambda text: None)] == [1, 0]


@pytest.mark.skipif(find_spec("litedram") is None, reason="the extra `ddr3` isn't installed")
def test_steps_are_those_of_litedram_for_this_chip_and_clock() -> None:
    order = Order(kind="controller", chip=CHIPS["ecpix5"], ports=2, clock_mhz=75.0)
    phy = json.loads(generate(order, needed_for="a test")["phy.json"])
    bits = {"CS": 1, "WE": 2, "CAS": 4, "RAS": 8}
    pins = {"CKE": 2, "ODT": 4, "RESET_N": 8}
    control = 0
    for step, (_, address, bank, flags, delay) in zip(STEPS, phy["steps"], strict=True):
        names = re.findall(r"DFII_(CONTROL|COMMAND)_(\w+)", flags)
        if names[0][0] == "CONTROL":
            control = sum(pins[name] for _, name in names)
        command = sum(bits[name] for kind, name in names if kind == "COMMAND")
        assert (step.address, step.bank, step.command) == (address, bank, command)
        assert step.control == control
        assert step.seconds >= delay / 75e6
    assert (phy["rdphase"], phy["wrphase"]) == (0, 1)


def test_what_is_initialised_is_left_alone() -> None:
    board, fake, registers = board_with(HOST_KIND, Lane(0, ()), Lane(0, ()))
    registers[BOARD_REGISTERS] = 1
    fake.log.clear()
    assert prepare_memory(board, lambda text: None) == []
    assert len(fake.log) == 2


def test_memory_of_another_kind_is_left_alone() -> None:
    fake = FakeBoard()
    board = Board(LinkClient(fake, seed=1))
    fake.log.clear()
    assert prepare_memory(board, lambda text: None) == []
    assert fake.log == []


@pytest.mark.parametrize("lane", [Lane(0, ()), Lane(1, (2, 3), sees_bursts=False)])
def test_lane_that_never_reads_right_is_named(lane: Lane) -> None:
    board, _, registers = board_with(HOST_KIND, Lane(0, (1, 2)), lane)
    with pytest.raises(DeviceError) as caught:
        prepare_memory(board, lambda text: None)
    assert str(caught.value) == (
        "byte lane 1 of the DDR3 must read right with one of 4 bitslips and 8 delays, and does "
        "with none; reset the board, and check its supply"
    )
    assert registers.of("ddrctrl_init_done") == 0


def test_lane_that_reads_right_only_at_first_is_named() -> None:
    board, _, _ = board_with(HOST_KIND, Lane(0, (3, 4), good_reads=6), Lane(0, (1,)))
    with pytest.raises(DeviceError) as caught:
        prepare_memory(board, lambda text: None)
    assert str(caught.value) == (
        "byte lane 0 of the DDR3 must read right with bitslip 0 and delay 4, as it did before, "
        "and doesn't"
    )


def test_memory_that_keeps_nothing_is_an_error_that_the_board_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board, fake, registers = board_with(HOST_KIND, Lane(0, (1,)), Lane(0, (1,)))
    monkeypatch.setattr(board, "write_memory", lambda address, content: None)
    base = DESCRIPTION.memory_base
    with pytest.raises(DeviceError) as caught:
        prepare_memory(board, lambda text: None)
    assert re.fullmatch(
        rf"memory at {base:#x} must be [0-9a-f]{{16}} after the DDR3 was initialised, not 0{{16}}",
        str(caught.value),
    )
    assert (registers.of("ddrctrl_init_done"), registers.of("ddrctrl_init_error")) == (1, 1)
    assert not any(fake.memory)


def test_board_with_a_cpu_is_asked_how_it_ended() -> None:
    board, _, registers = board_with(CPU_KIND)
    for done, failed, end in ((0, 0, "is not yet"), (1, 1, "that failed")):
        registers[BOARD_REGISTERS], registers[BOARD_REGISTERS + 4] = done, failed
        with pytest.raises(DeviceError) as caught:
            prepare_memory(board, lambda text: None)
        assert str(caught.value) == (
            f"memory of board 'fake' must be initialised by its own CPU, and {end}; reset the board"
        )
    registers[BOARD_REGISTERS + 4] = 0
    assert prepare_memory(board, lambda text: None) == []
