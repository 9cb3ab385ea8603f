from __future__ import annotations

import re

import pytest

from ember_hw.rtl.fifos import ReservedFifo
from ember_hw.rtl.formal.bench import Opened


def test_a_block_shows_what_it_drives_and_what_is_in_it():
    block = Opened(ReservedFifo(shape=3, credits=4))
    assert len(block.signal("level")) == 3
    queue = block.inner("queue")
    assert len(queue.signal("o__payload")) == 3
    memory = queue.inner("memory")
    assert len(memory.read()) == 3
    assert len(memory.look(queue.signal("read_pointer"))) == 3


def test_what_is_not_there_is_an_error():
    block = Opened(ReservedFifo(shape=3, credits=4))
    message = "the block must drive one signal named 'stored', not 0"
    with pytest.raises(KeyError, match=re.escape(message)):
        block.signal("stored")
    message = "the block must have a submodule named 'memory'"
    with pytest.raises(KeyError, match=re.escape(message)):
        block.inner("memory")
    with pytest.raises(TypeError, match=r"^the block must be a memory, not a Fragment$"):
        block.read()
