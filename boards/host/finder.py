"""Finds boards at the serial ports of this machine, and chooses one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from serial.tools import list_ports

from ember_hw.boards.description import PROOFS, BoardDescription
from ember_hw.boards.host.board import Board
from ember_hw.boards.host.channel import SerialChannel
from ember_hw.boards.host.client import LinkClient
from ember_hw.boards.links.frame import MAX_FRAME_BYTES, WINDOW_FRAMES
from ember_hw.boards.links.uart import BAUD
from ember_hw.errors import DeviceError, EmberError, LinkError
from ember_hw.registers import STATUS, State

#: USB numbers (vendor, product) of chips behind which boards may be; other ports are left alone.
USB_CHIPS = {(0x0403, 0x6015): "FT231X (ULX3S)", (0x0403, 0x6010): "FT2232H (ECPIX-5)"}

#: Bits of a byte on the wire.
_BITS_A_BYTE = 10
#: What an operating system and USB add to a round trip, at the worst.
_USB_SECONDS = 0.05
_SILENT_SECONDS = 0.5
_PATIENCE_SECONDS = 3.0


@dataclass(frozen=True)
class Candidate:
    """A port at which a board may be.

    Attributes
    ----------
    port : str
        Its device file.
    serial : str
        Serial number of the USB chip; empty where there is none.
    """

    port: str
    serial: str = ""


@dataclass(frozen=True)
class FoundBoard:
    """A port, and what answers there.

    Attributes
    ----------
    candidate : Candidate
        The port.
    description : BoardDescription or None
        What the board says of itself; None where none answers.
    state : str
        State of the access unit in small letters, or why there is no board.
    """

    candidate: Candidate
    description: BoardDescription | None
    state: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        facts: dict[str, Any] = {
            "port": self.candidate.port,
            "serial": self.candidate.serial,
            "link": "UART",
            "state": self.state,
        }
        board = self.description
        if board is not None:
            facts |= {
                "board": board.board,
                "gateware_id": f"{board.gateware_id:#010x}",
                "config": board.config.name,
                "config_hash": f"{board.config.hash():#010x}",
                "isa_version": board.isa_version,
                "clock_mhz": board.clock_hz / 1e6,
                "memory": board.memory,
                "memory_bytes": board.memory_bytes,
                "proof": board.proof,
                "proof_text": PROOFS[board.proof],
            }
        return facts


def candidates() -> list[Candidate]:
    """Return the serial ports whose USB chip is one of a known board."""
    return [
        Candidate(port.device, port.serial_number or "")
        for port in sorted(list_ports.comports(), key=lambda port: port.device)
        if (port.vid, port.pid) in USB_CHIPS
    ]


def open_board(
    candidate: Candidate,
    *,
    baud: int = BAUD,
    timeout_seconds: float | None = None,
    patience_seconds: float = _PATIENCE_SECONDS,
) -> Board:
    """Open the board at a port, and begin a session.

    Parameters
    ----------
    candidate : Candidate
        The port.
    baud : int
        Its rate.
    timeout_seconds : float, optional
        Time after which requests are repeated; else what all open requests and their answers take
        on the wire, and what USB adds.
    patience_seconds : float
        Time after which a silent board counts as gone.

    Raises
    ------
    LinkError
        The port can't be opened, or no board answers there.
    """
    on_the_wire = 2 * WINDOW_FRAMES * MAX_FRAME_BYTES * _BITS_A_BYTE / baud
    client = LinkClient(
        SerialChannel(candidate.port, baud),
        timeout_seconds=timeout_seconds or on_the_wire + _USB_SECONDS,
        patience_seconds=patience_seconds,
    )
    return Board(client)


def look(candidate: Candidate, **options: Any) -> FoundBoard:
    """Return what is at a port; `options` are those of `open_board`."""
    try:
        with open_board(candidate, **{"patience_seconds": _SILENT_SECONDS, **options}) as board:
            state = State(board.read_register(STATUS.address)).name.lower()
            return FoundBoard(candidate, board.description, state)
    except (EmberError, ValueError) as error:
        return FoundBoard(candidate, None, str(error))


def find_boards() -> Iterator[FoundBoard]:
    """Look at each candidate and yield what is there."""
    for candidate in candidates():
        yield look(candidate)


def choose(found: Sequence[FoundBoard], board: str, serial: str | None = None) -> Candidate:
    """Return the one board of a name, or the one of a serial number among them.

    Parameters
    ----------
    found : sequence of FoundBoard
        What there is.
    board : str
        Name of the board; empty for any.
    serial : str, optional
        Serial number.

    Raises
    ------
    LinkError
        There is none.
    DeviceError
        There are several.
    """
    fit = [
        one
        for one in found
        if one.description is not None
        and board in ("", one.description.board)
        and serial in (None, one.candidate.serial)
    ]
    wanted = " ".join(part for part in (board, serial and f"with serial {serial}") if part)
    if not fit:
        seen = "; ".join(f"{one.candidate.port}: {one.state}" for one in found) or "none"
        raise LinkError(
            f"a board {wanted or 'of any name'} must be connected, and isn't; ports with a known "
            f"USB chip: {seen}"
        )
    if len(fit) > 1:
        serials = ", ".join(one.candidate.serial for one in fit)
        raise DeviceError(
            f"serial must choose one of {len(fit)} boards {wanted}".rstrip()
            + f", which have {serials}"
        )
    return fit[0].candidate
