"""DDR3 SDRAM behind a LiteDRAM controller, which is generated when a board is built."""

from __future__ import annotations

#: Kinds of memory in a board's description: who initialises the chip.
HOST_KIND = "DDR3 SDRAM"
CPU_KIND = "DDR3 SDRAM, initialised by a CPU"
