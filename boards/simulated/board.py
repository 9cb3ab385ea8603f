"""Opens simulated boards as the host opens real ones: through a serial port."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from ember_hw.boards.description import BoardDescription
from ember_hw.boards.sdram.chip import CHIPS
from ember_hw.boards.simulated.model import BoardModel
from ember_hw.boards.simulated.terminal import SimulatedTerminal
from ember_hw.config import AcceleratorConfig

#: Name of the board.
BOARD = "sim"
CLOCK_HZ = 50_000_000
#: A quarter of the clock: faster than the UART of a real board, so that simulations end sooner.
BAUD = 12_500_000
#: Where the host places tables from, and as much as a MovieLens table with its requests takes.
MEMORY_BASE = 1 << 20
MEMORY_BYTES = 1 << 20
_MEMORIES = {"block RAM": (MEMORY_BASE, MEMORY_BYTES), "SDRAM": (0, CHIPS["ulx3s"].size_bytes)}
#: Its access unit: every block, on the bus of a board, but little of each, as its model takes a
#: minute to compile.
CONFIG = AcceleratorConfig(
    name=BOARD,
    data_width_bits=128,
    address_width_bits=32,
    traversal_units=2,
    exports=3,
    bundle_scalars=2,
    outstanding_reads=16,
    max_burst_beats=16,
    reorder_buffer_beats=64,
    token_entries=32,
    lines_per_stream=4,
    bundle_entries=32,
    descriptor_entries=8,
)
#: Times of a link whose board runs some hundred times slower than the real one would.
TIMEOUT_SECONDS = 10.0
PATIENCE_SECONDS = 120.0


def simulated_description(
    config: AcceleratorConfig | None = None, *, memory: str = "block RAM"
) -> BoardDescription:
    """Return the description of the simulated board.

    Parameters
    ----------
    config : AcceleratorConfig, optional
        Of its access unit, if that is to be another.
    memory : str
        "block RAM", or "SDRAM": the controller and chip of a ULX3S.

    Raises
    ------
    ValueError
        There is no such memory.
    """
    if memory not in _MEMORIES:
        raise ValueError(f"memory must be one of {', '.join(_MEMORIES)}, not {memory!r}")
    chosen = CONFIG if config is None else config
    base, num_bytes = _MEMORIES[memory]
    return BoardDescription(
        board=BOARD,
        config=chosen,
        gateware_id=zlib.crc32(f"{BOARD} {memory} {chosen.hash():#x}".encode()),
        clock_hz=CLOCK_HZ,
        memory_base=base,
        memory_bytes=num_bytes,
        memory=memory,
        proof="simulated",
    )


def start_simulated_board(
    config: AcceleratorConfig | None = None,
    *,
    memory: str = "block RAM",
    baud: int = BAUD,
    progress: Callable[[str], None] | None = None,
) -> SimulatedTerminal:
    """Return a simulated board that waits at its port; it is compiled once on a machine."""
    description = simulated_description(config, memory=memory)
    model = BoardModel(description, baud=baud, progress=progress)
    return SimulatedTerminal(model)
