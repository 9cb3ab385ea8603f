"""The whole board with SDRAM: link, controller, chip and access unit; the host is the real one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ember_hw
from ember_hw.boards.simulated.board import (
    CONFIG,
    MEMORY_BASE,
    simulated_description,
    start_simulated_board,
)
from ember_hw.host.backends.board import Backend
from ember_hw.host.device import Device, open_device

pytestmark = [pytest.mark.verilator, pytest.mark.timeout(1800)]  # builds the model


@pytest.mark.slow
def test_lookups_from_sdram_are_those_of_the_interpreter() -> None:
    rng = np.random.default_rng(4)
    table = torch.tensor(rng.standard_normal((300, 24), np.float32))
    indices, offsets = rng.integers(0, 300, 200), np.array([0, 3, 3, 90, 199])
    bag = torch.nn.EmbeddingBag.from_pretrained(table, mode="sum")
    program = ember_hw.compile(bag, (indices, offsets), config=CONFIG)
    with open_device("interpreter", config=CONFIG) as device:
        wanted = device.run(program, (indices, offsets))
    with start_simulated_board(memory="SDRAM") as terminal:
        backend = Backend(None, board="sim", port=terminal.port)
        pooled = Device("board:sim", backend).run(program, (indices, offsets))
        assert np.array_equal(pooled, wanted)
        assert backend.memory == "SDRAM of board sim (simulated)"
        last = np.frombuffer(rng.bytes(4096), np.uint8)
        place = backend.board.description.memory_bytes - len(last)
        backend.board.write_memory(place, last.tobytes())
        assert backend.board.read_memory(place, len(last)) == last.tobytes()
        backend.close()
        assert terminal.memory_violations == 0


def test_memories_of_the_simulated_board() -> None:
    block, sdram = (simulated_description(memory=name) for name in ("block RAM", "SDRAM"))
    assert (block.memory_base, block.memory) == (MEMORY_BASE, "block RAM")
    assert (sdram.memory_base, sdram.memory_bytes) == (0, 32 << 20)
    assert block.gateware_id != sdram.gateware_id
    with pytest.raises(ValueError, match=r"^memory must be one of block RAM, SDRAM, not 'DDR3'$"):
        simulated_description(memory="DDR3")
