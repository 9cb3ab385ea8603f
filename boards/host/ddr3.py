"""Initialises a board's DDR3 SDRAM over the link: mode registers, read leveling, a short test.

The registers are those of LiteDRAM's core (`ddr3.registers`). While the host drives the chip
nothing refreshes it: what it held is lost. An access takes as long as its frames on the link, so a
row stays open for milliseconds; what is read back within that time was written within it.

Ref: JESD79-3, power-up initialisation; Lattice FPGA-TN-02035, READ pulse positioning.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import sleep

from ember_hw.boards.ddr3 import CPU_KIND, HOST_KIND
from ember_hw.boards.ddr3.registers import REGISTERS
from ember_hw.boards.host.board import Board
from ember_hw.boards.host.client import Request
from ember_hw.boards.links.frame import BOARD_REGISTERS, Operation
from ember_hw.errors import DeviceError

# Bits of the DFI's control and command registers. Ref: litedram/dfii.py.
_SELECT_CONTROLLER, _CKE, _ODT, _RESET_N = 1, 2, 4, 8
_CS, _WE, _CAS, _RAS, _WRITE_DATA, _READ_DATA = 1, 2, 4, 8, 16, 32
_MODE_REGISTER = _RAS | _CAS | _WE | _CS
_ACTIVATE, _PRECHARGE, _CALIBRATE = _RAS | _CS, _RAS | _WE | _CS, _WE | _CS
_ALL_BANKS = 1 << 10

#: Phases of the PHY of rate 1:2, and those in which it expects READ and WRITE.
_PHASES, _READ_PHASE, _WRITE_PHASE = 2, 0, 1
#: Of the ECP5's PHY: byte lanes, shifts by a bit, delays of the READ pulse.
LANES, BITSLIPS, DELAYS = 2, 4, 8
#: Bits of byte lane 0 in what a phase carries: the low byte of each of its four words.
_LANE_MASK = 0x00FF_00FF_00FF_00FF
_PATTERN_SEEDS = (42, 84, 36)

#: A register by its name and what is written to it; None: it is read.
Access = tuple[str, int | None]


@dataclass(frozen=True)
class Step:
    """A step of the initialisation.

    Attributes
    ----------
    text : str
        What it does.
    address, bank : int
        What the chip sees on these pins.
    command : int
        Command that is issued; 0: none.
    control : int
        What the pins that aren't part of commands are from now on.
    seconds : float
        Wait behind it.
    """

    text: str
    address: int
    bank: int
    command: int
    control: int
    seconds: float


_ON = _CKE | _ODT | _RESET_N
#: CL 6, CWL 5, burst of 8; output 40 ohm, on-die termination 60 ohm, 120 ohm for writes.
STEPS = (
    Step("release reset", 0x000, 0, 0, _ODT | _RESET_N, 2e-3),
    Step("bring CKE high", 0x000, 0, 0, _ON, 1e-3),
    Step("load mode register 2", 0x200, 2, _MODE_REGISTER, _ON, 0.0),
    Step("load mode register 3", 0x000, 3, _MODE_REGISTER, _ON, 0.0),
    Step("load mode register 1", 0x006, 1, _MODE_REGISTER, _ON, 0.0),
    Step("load mode register 0", 0x320, 0, _MODE_REGISTER, _ON, 1e-3),
    Step("calibrate", _ALL_BANKS, 0, _CALIBRATE, _ON, 1e-3),
)


@dataclass(frozen=True)
class LaneLevel:
    """What leveling found for a byte lane.

    Attributes
    ----------
    lane, bitslip, delay : int
        What was chosen.
    working : tuple of int
        Delays that read right with this bitslip.
    """

    lane: int
    bitslip: int
    delay: int
    working: tuple[int, ...]


def prepare_memory(board: Board, progress: Callable[[str], None]) -> list[LaneLevel]:
    """Make a board's memory ready, if it is one that has to be.

    A chip that is initialised already is left as it is, so what it holds stays.

    Parameters
    ----------
    board : Board
    progress : callable
        Told what is done.

    Returns
    -------
    list of LaneLevel
        What was found; empty where nothing was to be done.

    Raises
    ------
    DeviceError
        The chip can't be read, or not reliably; or the board's own CPU says so.
    LinkError
        The link broke.
    """
    kind = board.description.memory
    if kind not in (HOST_KIND, CPU_KIND):
        return []
    registers = _Registers(board)
    done, failed = registers.run([("ddrctrl_init_done", None), ("ddrctrl_init_error", None)])
    if done and not failed:
        return []
    if kind == CPU_KIND:
        raise DeviceError(
            f"memory of board {board.description.board!r} must be initialised by its own CPU, and "
            f"{'that failed' if failed else 'is not yet'}; reset the board"
        )
    progress("DDR3: mode registers")
    registers.run([("ddrctrl_init_done", 0), ("ddrctrl_init_error", 0)])
    (control,) = registers.run([("sdram_dfii_control", None)])
    if not control & _SELECT_CONTROLLER:  # left by a host that broke off, maybe with an open row
        registers.run([*_at(0, _ALL_BANKS), *_command(0, _PRECHARGE)])
    for step in STEPS:
        registers.run(_step(step))
        sleep(step.seconds)
    levels = [_level(registers, lane, progress) for lane in range(LANES)]
    # The controller takes over, and refreshes from now on.
    registers.run([("sdram_dfii_control", _SELECT_CONTROLLER), ("ddrctrl_init_done", 1)])
    try:
        _check_memory(board)
    except DeviceError:
        registers.run([("ddrctrl_init_error", 1)])
        raise
    progress("DDR3: initialised")
    return levels


class _Registers:
    """The core's registers, many accesses on their way at a time."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def run(self, accesses: Sequence[Access]) -> list[int]:
        """Access registers in order, and return what was read."""

        def requests() -> Iterator[Request]:
            for name, value in accesses:
                address = BOARD_REGISTERS + REGISTERS[name.partition("+")[0]]
                address += int(name.partition("+")[2] or 0)
                if value is None:
                    yield Request(Operation.READ_REGISTERS, address, 4)
                else:
                    content = value.to_bytes(4, "little")
                    yield Request(Operation.WRITE_REGISTERS, address, data=content)

        answers = self._board.client.transact(requests())
        contents = [self._board.checked(one, "register of the DDR3 controller") for one in answers]
        return [int.from_bytes(content, "little") for content in contents if content]


def _step(step: Step) -> list[Access]:
    accesses: list[Access] = [
        ("sdram_dfii_pi0_address", step.address),
        ("sdram_dfii_pi0_baddress", step.bank),
        ("sdram_dfii_control", step.control),
    ]
    if step.command:
        accesses += _command(0, step.command)
    return accesses


def _command(phase: int, command: int) -> list[Access]:
    return [
        (f"sdram_dfii_pi{phase}_command", command),
        (f"sdram_dfii_pi{phase}_command_issue", 1),
    ]


def _at(phase: int, address: int) -> list[Access]:
    """Put an address of bank 0 on a phase's pins."""
    return [
        (f"sdram_dfii_pi{phase}_address", address),
        (f"sdram_dfii_pi{phase}_baddress", 0),
    ]


def _level(registers: _Registers, lane: int, progress: Callable[[str], None]) -> LaneLevel:
    """Find and set the bitslip and the delay of a byte lane.

    The bitslip with most delays that read right; of those, the middle of the longest run.
    """
    working: list[tuple[int, ...]] = []
    registers.run(_act(lane, "rdly_dq_bitslip_rst"))
    for bitslip in range(BITSLIPS):
        registers.run(_act(lane, "rdly_dq_rst"))
        good: list[int] = []
        for delay in range(DELAYS):
            if _reads_right(registers, lane):
                good.append(delay)
            registers.run(_act(lane, "rdly_dq_inc"))
        working.append(longest_run(good))
        progress(f"DDR3: byte lane {lane}, bitslip {bitslip}: {len(good)} of {DELAYS} delays right")
        registers.run(_act(lane, "rdly_dq_bitslip"))
    best = max(range(BITSLIPS), key=lambda bitslip: len(working[bitslip]))
    if not working[best]:
        raise DeviceError(
            f"byte lane {lane} of the DDR3 must read right with one of {BITSLIPS} bitslips and "
            f"{DELAYS} delays, and does with none; reset the board, and check its supply"
        )
    run = working[best]
    delay = run[len(run) // 2]
    setting = [_act(lane, "rdly_dq_bitslip_rst"), *[_act(lane, "rdly_dq_bitslip")] * best]
    setting += [_act(lane, "rdly_dq_rst"), *[_act(lane, "rdly_dq_inc")] * delay]
    registers.run([access for part in setting for access in part])
    if not _reads_right(registers, lane):
        raise DeviceError(
            f"byte lane {lane} of the DDR3 must read right with bitslip {best} and delay {delay}, "
            "as it did before, and doesn't"
        )
    progress(f"DDR3: byte lane {lane}: bitslip {best}, delay {delay}")
    return LaneLevel(lane, best, delay, run)


def longest_run(numbers: Sequence[int]) -> tuple[int, ...]:
    """Return the longest run of numbers that follow each other; of equal ones the first.

    Examples
    --------
    >>> longest_run([0, 2, 3, 4, 6, 7])
    (2, 3, 4)
    """
    best: tuple[int, ...] = ()
    run: tuple[int, ...] = ()
    for number in numbers:
        run = (*run, number) if run and number == run[-1] + 1 else (number,)
        best = max(best, run, key=len)
    return best


def _act(lane: int, action: str) -> list[Access]:
    """Do something to a lane: it is selected, which also pauses it, and let go again."""
    return [
        ("ddrphy_dly_sel", 1 << lane),
        (f"ddrphy_{action}", 1),
        ("ddrphy_dly_sel", 0),
    ]


def _reads_right(registers: _Registers, lane: int) -> bool:
    """Write patterns and read them back; the PHY must have seen the burst, too."""
    mask = _LANE_MASK << 8 * lane
    for seed in _PATTERN_SEEDS:
        values = [random.Random(f"{seed} {phase}").getrandbits(64) for phase in range(_PHASES)]
        accesses = [*_at(0, 0), *_command(0, _ACTIVATE)]
        for phase, value in enumerate(values):
            accesses += [
                (f"sdram_dfii_pi{phase}_wrdata", value >> 32),
                (f"sdram_dfii_pi{phase}_wrdata+4", value & 0xFFFF_FFFF),
            ]
        accesses += [
            *_at(_WRITE_PHASE, 0),
            *_command(_WRITE_PHASE, _CAS | _WE | _CS | _WRITE_DATA),
            ("ddrphy_burstdet_clr", 1),
            *_at(_READ_PHASE, 0),
            *_command(_READ_PHASE, _CAS | _CS | _READ_DATA),
            *_at(0, 0),
            *_command(0, _PRECHARGE),
            ("ddrphy_burstdet_seen", None),
        ]
        for phase in range(_PHASES):
            name = f"sdram_dfii_pi{phase}_rddata"
            accesses += [(name, None), (f"{name}+4", None)]
        seen, *halves = registers.run(accesses)
        found = [high << 32 | low for high, low in zip(halves[::2], halves[1::2], strict=True)]
        if not seen >> lane & 1:
            return False
        if any((one ^ value) & mask for one, value in zip(found, values, strict=True)):
            return False
    return True


def _check_memory(board: Board) -> None:
    """Write and read beats of every bank, and at each power of two, through the controller."""
    description = board.description
    beat = description.config.bus_bytes
    offsets = {beat << bit for bit in range((description.memory_bytes // beat - 1).bit_length())}
    addresses = [description.memory_base + offset for offset in sorted({0, *offsets})]
    contents = {at: random.Random(at).randbytes(beat) for at in addresses}
    for at, content in contents.items():
        board.write_memory(at, content)
    for at, content in contents.items():
        found = board.read_memory(at, beat)
        if found != content:
            raise DeviceError(
                f"memory at {at:#x} must be {content.hex()} after the DDR3 was initialised, "
                f"not {found.hex()}"
            )
