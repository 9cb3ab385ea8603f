"""Memories of the simulated board; `bench link` looks MovieLens up in both."""

from __future__ import annotations

import pytest

from ember_hw.boards.simulated.board import MEMORY_BASE, simulated_description


def test_memories_of_the_simulated_board() -> None:
    block, sdram = (simulated_description(memory=name) for name in ("block RAM", "SDRAM"))
    assert (block.memory_base, block.memory) == (MEMORY_BASE, "block RAM")
    assert (sdram.memory_base, sdram.memory_bytes) == (0, 32 << 20)
    assert block.gateware_id != sdram.gateware_id
    with pytest.raises(ValueError, match=r"^memory must be one of block RAM, SDRAM, not 'DDR3'$"):
        simulated_description(memory="DDR3")
