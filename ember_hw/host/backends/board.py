"""The backend `board:<name>`: an access unit on a board, over its host link."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from numpy.typing import NDArray

from ember_hw.boards.host.board import Board
from ember_hw.boards.host.client import Request
from ember_hw.boards.host.ddr3 import prepare_memory
from ember_hw.boards.host.finder import Candidate, choose, find_boards, open_board
from ember_hw.boards.links.frame import MAX_DATA_BYTES, Operation
from ember_hw.boards.simulated.board import (
    BAUD,
    BOARD,
    PATIENCE_SECONDS,
    TIMEOUT_SECONDS,
    start_simulated_board,
)
from ember_hw.boards.simulated.terminal import SimulatedTerminal
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError, LinkError, ProgramError
from ember_hw.host.backends.beats import BeatParser
from ember_hw.host.backends.requests import (
    HeldProgram,
    check_ended,
    check_leaves,
    read_completed,
)
from ember_hw.host.execution import Chunk
from ember_hw.host.launch import Launch
from ember_hw.host.likely_rows import LikelyRows
from ember_hw.host.memory_layout import Region
from ember_hw.host.report import counted
from ember_hw.isa import ISA_VERSION
from ember_hw.registers import (
    CONFIG_HASH,
    CONTROL,
    CONTROL_ABORT,
    CONTROL_START,
    COUNTERS_ADDRESS,
    MAGIC,
    MAGIC_VALUE,
    STATUS,
    WATCHDOG,
    Counter,
    State,
)
from ember_hw.registers import ISA_VERSION as ISA_VERSION_REGISTER

#: A host may leave the queues alone for so long, for example to compute; the unit's own watchdog
#: would stop a program after a few milliseconds.
_WATCHDOG_SECONDS = 60.0
#: Reads of STATUS that an abort may take; each takes longer than the unit needs.
_ABORT_POLLS = 256
#: A look at STATUS after so many requests for the queues' bytes.
_DRAINS_A_LOOK = 3
_AT_REST = (State.IDLE, State.DONE, State.FAULTED)


class Backend:
    """Runs launches on a board.

    Memory keeps what was uploaded: the next launch writes only blocks that differ, also after the
    link broke and the next launch opened it anew; of these the rows that were expected to differ,
    if that turns out to be all.

    Parameters
    ----------
    config : AcceleratorConfig or None
        What the board's access unit must be; None for whatever it is.
    board : str
        Name of the board; "sim" for one that is simulated; empty for any that is connected.
    serial : str, optional
        Serial number of its USB chip, where there are several.
    port : str, optional
        Device file at which it is, instead of looking for it.
    baud : int
        Rate of the simulated board's UART.
    memory : optional
        Of the simulated board: "block RAM", which it is if nothing is said, or "SDRAM". To be left
        out with another board, which has its own.
    sink : optional
        To be left out: the host is it.
    progress : callable, optional
        Told what a long preparation does next.

    Raises
    ------
    LinkError
        There is no such board, or it doesn't answer.
    DeviceError
        Its access unit is of another config or ISA, its memory can't be initialised, or there are
        several boards.
    ValueError
        A sink was given, or a memory that the board can't have.
    """

    sink = "host, over the link"
    cycles: int | None = None

    def __init__(
        self,
        config: AcceleratorConfig | None,
        *,
        board: str,
        serial: str | None = None,
        port: str | None = None,
        baud: int = BAUD,
        memory: Any = "ideal",
        sink: Any = "ideal",
        progress: Callable[[str], None] | None = None,
    ) -> None:
        is_simulated = board == BOARD and port is None
        for name, value in (("memory", memory), ("sink", sink)):
            if value != "ideal" and not (name == "memory" and is_simulated):
                raise ValueError(f"{name} must be left out with a board, not {value!r}")
        self._name = board
        self._serial = serial
        self._port = port
        self._progress: Callable[[str], None] = progress or _ignore
        self._terminal: SimulatedTerminal | None = None
        if is_simulated:
            self._terminal = start_simulated_board(
                config,
                memory="block RAM" if memory == "ideal" else memory,
                baud=baud,
                progress=progress,
            )
        self._board: Board | None = None
        self._held = HeldProgram(self._write_registers)
        self._likely = LikelyRows()
        self._uploaded_bytes = 0
        try:
            opened = self._open()
            self._check_config(opened, config)
        except Exception:
            self.close()
            raise
        description = opened.description
        self.config = description.config
        self.memory = f"{description.memory} of board {description.board} ({description.proof})"
        self.clock_mhz = description.clock_hz / 1e6

    @property
    def board(self) -> Board:
        """The board, connected."""
        return self._open()

    @property
    def terminal(self) -> SimulatedTerminal | None:
        """The simulated board, where it is one."""
        return self._terminal

    def execute(self, launch: Launch) -> Iterator[Chunk]:
        """Run a launch; see `ember_hw.host.device.Backend`.

        Raises
        ------
        LinkError
            The link broke; the next launch opens it anew.
        ProgramError
            A region is beyond the board's memory, or the nest's rows can't leave.
        """
        check_leaves(launch, self.config)
        board = self._open()
        has_ended = False
        try:
            self._upload(board, launch.regions)
            self._held.write_microcode(launch.words)
            completed = read_completed(board.read_register)
            self._held.write_arguments(launch)
            board.write_registers(CONTROL.address, [CONTROL_START])
            yield from self._drain(board)
            check_ended(board.read_register, requests=1, completed_before=completed)
            has_ended = True
        except LinkError:
            self.disconnect()
            raise
        finally:
            if self._board is not None and not has_ended:
                self._come_to_rest(board)

    def facts(self) -> dict[str, Any]:
        """Return the hardware's counters, its clock, and bytes that were written before it ran."""
        words = self._open().read_registers(COUNTERS_ADDRESS, 2 * len(Counter))
        values = {counter: words[2 * counter] | words[2 * counter + 1] << 32 for counter in Counter}
        return {
            **counted(values),
            "clock_mhz": self.clock_mhz,
            "uploaded_bytes": self._uploaded_bytes,
        }

    def expect(self, region: Region, rows: NDArray[Any]) -> None:
        """Look at these rows first when a launch finds the table changed; see `Uploads`."""
        self._likely.expect(region, rows)

    def sample(self) -> None:
        """Return None: a board is not looked into."""

    def close(self) -> None:
        """Close the link, and end a simulated board."""
        self.disconnect()
        if self._terminal is not None:
            self._terminal.close()

    def disconnect(self) -> None:
        """Close the link; the next launch opens it anew."""
        if self._board is not None:
            self._board.close()
        self._board = None

    def _open(self) -> Board:
        """Return the board; find and connect it first if it isn't."""
        if self._board is not None:
            return self._board
        if self._terminal is not None:
            board = open_board(
                Candidate(self._terminal.port, "simulated"),
                timeout_seconds=TIMEOUT_SECONDS,
                patience_seconds=PATIENCE_SECONDS,
            )
        elif self._port is not None:
            board = open_board(Candidate(self._port))
        else:
            self._progress("looking for boards")
            board = open_board(choose(list(find_boards()), self._name, self._serial))
        self._board = board
        check_identity(board)
        self._come_to_rest(board)
        prepare_memory(board, self._progress)
        ticks = int(_WATCHDOG_SECONDS * board.description.clock_hz)
        board.write_registers(WATCHDOG.address, [min(ticks, (1 << 32) - 1)])
        return board

    def _check_config(self, board: Board, config: AcceleratorConfig | None) -> None:
        found = board.description.config
        if config is not None and config.hash() != found.hash():
            raise DeviceError(
                f"config of board {board.description.board!r} must be {config.name!r} (hash "
                f"{config.hash():#010x}), not {found.name!r} (hash {found.hash():#010x}); compile "
                "for `device.config`, or build the board's gateware for this config"
            )

    def _come_to_rest(self, board: Board) -> None:
        """Abort what may still run, and empty the queues; microcode and arguments are unknown."""
        self._held.forget()
        try:
            state = State(board.read_register(STATUS.address))
            if state not in _AT_REST:
                board.write_registers(CONTROL.address, [CONTROL_ABORT])
            for _ in range(_ABORT_POLLS):
                state = State(board.read_register(STATUS.address))
                if state in _AT_REST:
                    while any(board.drain(_times(1))):  # what left the unit before
                        pass
                    return
        except LinkError:
            self.disconnect()
            raise
        raise DeviceError(
            f"state of board {board.description.board!r} must be at rest after an abort, not "
            f"{state.name}; reset the board"
        )

    def _upload(self, board: Board, regions: tuple[Region, ...]) -> None:
        description = board.description
        first, end = description.memory_base, description.memory_base + description.memory_bytes
        for region in regions:
            if not first <= region.base <= region.base + region.data.size <= end:
                raise ProgramError(
                    f"{region.symbol!r} must lie within the memory of board {description.board!r}, "
                    f"{first:#x} to {end:#x}, not at {region.base:#x} to "
                    f"{region.base + region.data.size:#x}"
                )
        self._uploaded_bytes = 0
        for region in regions:
            likely = self._likely.ranges(region)
            upload = board.upload(region.base, region.data, likely=likely)
            self._uploaded_bytes += upload.written_bytes
            if upload.written_bytes:
                self._likely.forget(region)
                self._progress(
                    f"{region.symbol}: {upload.written_bytes:,} bytes uploaded, "
                    f"{upload.megabytes_per_second:.3f} MB/s, check sums right"
                )

    def _write_registers(self, address: int, values: list[int]) -> None:
        self._open().write_registers(address, values)

    def _drain(self, board: Board) -> Iterator[Chunk]:
        """Yield what the queues bring until the unit rests and nothing is left."""
        parser = BeatParser(self.config)
        kinds: deque[Operation] = deque()
        has_ended = False

        def requests() -> Iterator[Request]:
            while not has_ended:
                for _ in range(_DRAINS_A_LOOK):
                    kinds.append(Operation.DRAIN)
                    yield Request(Operation.DRAIN, 0, MAX_DATA_BYTES)
                kinds.append(Operation.READ_REGISTERS)
                yield Request(Operation.READ_REGISTERS, STATUS.address, 4)

        rests = False
        for answer in board.client.transact(requests()):
            content = board.checked(answer, "queues")
            if kinds.popleft() is Operation.READ_REGISTERS:
                rests = State(content[0]) in _AT_REST
            elif content:
                yield parser.feed(content)
            elif rests:
                has_ended = True
        if not parser.is_between_beats:
            raise LinkError("queues must end with a whole beat, and ended within one")


def check_identity(board: Board) -> None:
    """Refuse a board of another ISA, or whose registers aren't those that its description names.

    Raises
    ------
    DeviceError
        See above.
    """
    description = board.description
    if description.isa_version != ISA_VERSION:
        raise DeviceError(
            f"ISA version of board {description.board!r} must be {ISA_VERSION}, "
            f"not {description.isa_version}; build its gateware with this ember_hw"
        )
    expected = [MAGIC_VALUE, ISA_VERSION, description.config.hash()]
    registers = (MAGIC, ISA_VERSION_REGISTER, CONFIG_HASH)
    found = board.read_registers(MAGIC.address, len(registers))
    for register, wanted, value in zip(registers, expected, found, strict=True):
        if value != wanted:
            raise DeviceError(
                f"register {register.name} of board {description.board!r} must be "
                f"{wanted:#x}, as its description says, not {value:#x}"
            )


def _ignore(text: str) -> None:
    """Take note of nothing."""


def _times(count: int) -> Callable[[], bool]:
    """Return a function that is true so many times."""
    left = iter([True] * count)
    return lambda: next(left, False)
