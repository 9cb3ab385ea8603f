"""What the build must know of a board."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from amaranth.hdl import Elaboratable

from ember_hw.boards.description import BoardDescription
from ember_hw.config import AcceleratorConfig

_TARGETS = Path(__file__).resolve().parent.parent / "targets"


@dataclass(frozen=True, kw_only=True)
class Device:
    """What the FPGA of a board has.

    Attributes
    ----------
    name : str
        As its maker calls it.
    nextpnr : tuple of str
        Options of nextpnr-ecp5 that choose it.
    capacity : dict of str to int
        Cells of it by resource: LUT, FF, EBR, DSP.
    """

    name: str
    nextpnr: tuple[str, ...]
    capacity: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class BoardMemory:
    """A memory that a board's gateware can have.

    Attributes
    ----------
    kind : str
        What the host is told: "SDRAM", "block RAM".
    base, num_bytes : int
        Its first address and its size.
    """

    kind: str
    base: int
    num_bytes: int


@dataclass(frozen=True, kw_only=True)
class BoardTarget:
    """A board that gateware can be built for.

    Attributes
    ----------
    name : str
        What users call it.
    device : Device
    clock_mhz : dict of str to float
        Its clock domains; `sync` is the access unit's. Timing must be met in each.
    memories : dict of str to BoardMemory
        By the name that users choose; the first is the default.
    config : AcceleratorConfig
        What is built where nothing is said.
    platform : callable
        Returns a fresh Amaranth platform.
    top : callable
        ``top(description, memory)`` returns the design, `memory` a key of `memories`. Files that it
        gives the platform are read by the synthesis if they are Verilog.
    packages : tuple of str
        Python packages beside Amaranth's on whose versions the design depends.
    proof : str
        How far the board was proved: a key of `description.PROOFS`.
    """

    name: str
    device: Device
    clock_mhz: Mapping[str, float]
    memories: Mapping[str, BoardMemory]
    config: AcceleratorConfig
    platform: Callable[[], Any]
    top: Callable[[BoardDescription, str], Elaboratable]
    packages: tuple[str, ...] = ()
    proof: str = "built"

    def describe(
        self, config: AcceleratorConfig, memory: str, gateware_id: int
    ) -> BoardDescription:
        """Return what this board says of itself.

        Raises
        ------
        ValueError
            It has no such memory.
        """
        if memory not in self.memories:
            raise ValueError(
                f"memory of {self.name} must be one of {', '.join(self.memories)}, not {memory!r}"
            )
        chosen = self.memories[memory]
        return BoardDescription(
            board=self.name,
            config=config,
            gateware_id=gateware_id,
            clock_hz=round(self.clock_mhz["sync"] * 1e6),
            memory_base=chosen.base,
            memory_bytes=chosen.num_bytes,
            memory=chosen.kind,
            proof=self.proof,
        )


def board_names() -> tuple[str, ...]:
    """Return the names of all boards, from their files alone."""
    return tuple(sorted(p.stem for p in _TARGETS.glob("*.py") if not p.stem.startswith("_")))


def board(name: str) -> BoardTarget:
    """Return a board.

    Raises
    ------
    ValueError
        There is none of that name.
    """
    if name not in board_names():
        raise ValueError(f"board must be one of {', '.join(board_names())}, not {name!r}")
    return import_module(f"ember_hw.boards.targets.{name}").TARGET
