"""The chip's model (sdram_chip.hpp), compiled once and called by ctypes."""

from __future__ import annotations

import ctypes
import subprocess
from ctypes import POINTER, Structure, byref, c_int, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from dataclasses import astuple, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ember_hw.boards.sdram.chip import SdramChip, SdramClocks
from ember_hw.boards.sdram.pins import Command
from ember_hw.errors import ToolError
from ember_hw.sim.cache import build_once, cache_folder

#: Folder of `sdram_chip.hpp`, for harnesses that include it.
SOURCES = Path(__file__).resolve().parent
_FLAGS = ("-std=c++20", "-O2", "-fPIC", "-shared")
_TEXT_ROOM = 200

#: A command that the chip has seen.
COMMAND_DTYPE = np.dtype(
    [("clock", np.uint64), ("command", np.uint8), ("bank", np.uint8), ("address", np.uint16)],
    align=True,
)


class Limits(Structure):
    """`SdramLimits` of the model."""

    _fields_ = [
        (name, c_uint32)
        for name in (
            "row_bits bank_bits column_bits cl trcd trp tras trc trrd twr trfc trefi tmrd power_up "
            "tras_most"
        ).split()
    ]

    @staticmethod
    def of(chip: SdramChip, clocks: SdramClocks) -> Limits:
        """Return the limits of a chip at a clock."""
        return Limits(chip.row_bits, chip.bank_bits, chip.column_bits, *astuple(clocks))


class _Edge(Structure):
    _fields_ = [
        ("command", c_uint8),
        ("bank", c_uint8),
        ("address", c_uint16),
        ("mask", c_uint8),
        ("driven", c_uint8),
        ("data", c_uint16),
    ]


@dataclass(frozen=True)
class Violation:
    """A limit that the controller broke.

    Attributes
    ----------
    rule : str
        The limit's name: a field of `SdramClocks`, or what else the chip demands.
    text : str
        What must hold, and what was found.
    """

    rule: str
    text: str


class ChipModel:
    """A chip that answers edge by edge and notes every violation.

    Parameters
    ----------
    chip : SdramChip
    clocks : SdramClocks
    keep_trace : bool
        Keep every command for `trace`.

    Raises
    ------
    ToolError
        There is no C++ compiler, or it fails.
    """

    def __init__(self, chip: SdramChip, clocks: SdramClocks, *, keep_trace: bool = False):
        self._library = _library()
        self._chip = c_void_p(
            self._library.ember_sdram_create(byref(Limits.of(chip, clocks)), keep_trace)
        )
        address = self._library.ember_sdram_words(self._chip)
        words = chip.size_bytes // 2
        #: uint16 (words,): the chip's content, which may be written.
        self.words: NDArray[np.uint16] = np.ctypeslib.as_array(
            ctypes.cast(address, POINTER(c_uint16)), (words,)
        )

    def __del__(self) -> None:
        """Give the memory back."""
        if hasattr(self, "_chip"):
            self._library.ember_sdram_destroy(self._chip)

    def edge(
        self,
        command: Command = Command.NO_OPERATION,
        *,
        bank: int = 0,
        address: int = 0,
        mask: int = 0,
        data: int | None = None,
    ) -> int:
        """Let the chip see its pins at one edge of its clock.

        Parameters
        ----------
        command : Command
        bank, address, mask : int
        data : int or None
            What the controller drives; None: it doesn't.

        Returns
        -------
        int
            The data pins as the controller samples them; noise where the chip doesn't drive.
        """
        pins = _Edge(command.value, bank, address, mask, data is not None, data or 0)
        return self._library.ember_sdram_edge(self._chip, byref(pins))

    def violations(self) -> list[Violation]:
        """Return what was broken so far, of many the first hundred."""
        found: list[Violation] = []
        rule, text = (ctypes.create_string_buffer(_TEXT_ROOM) for _ in range(2))
        while self._library.ember_sdram_violation(self._chip, len(found), rule, text, _TEXT_ROOM):
            found.append(Violation(rule.value.decode(), text.value.decode()))
        return found

    def trace(self) -> NDArray[np.void]:
        """Return the commands so far, COMMAND_DTYPE (N,)."""
        count = self._library.ember_sdram_trace(self._chip, None, c_uint64(0))
        commands = np.zeros(count, COMMAND_DTYPE)
        self._library.ember_sdram_trace(self._chip, commands.ctypes.data_as(c_void_p), count)
        return commands


@cache
def _library() -> ctypes.CDLL:
    texts = [(SOURCES / name).read_text() for name in ("sdram_chip.hpp", "sdram_chip.cpp")]
    key = sha256("\0".join([*texts, *_FLAGS]).encode()).hexdigest()[:24]

    def build(draft: Path) -> None:
        command = ["c++", *_FLAGS, str(SOURCES / "sdram_chip.cpp"), "-o", "sdram_chip.so"]
        try:
            done = subprocess.run(command, cwd=draft, capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise ToolError(
                "'c++' must be on PATH to compile the SDRAM's model, and isn't; "
                "on Debian and Ubuntu: apt install g++"
            ) from error
        if done.returncode != 0:
            raise ToolError(f"c++ must compile the SDRAM's model, and doesn't:\n{done.stderr}")

    library = ctypes.CDLL(
        str(build_once(cache_folder() / "sdram_chip" / key, build) / "sdram_chip.so")
    )
    library.ember_sdram_create.restype = c_void_p
    library.ember_sdram_create.argtypes = [c_void_p, c_int]
    library.ember_sdram_edge.restype = c_uint16
    library.ember_sdram_trace.restype = c_uint64
    library.ember_sdram_trace.argtypes = [c_void_p, c_void_p, c_uint64]
    library.ember_sdram_words.restype = c_void_p
    library.ember_sdram_violation.argtypes = [c_void_p, c_uint64, c_void_p, c_void_p, c_int]
    return library
