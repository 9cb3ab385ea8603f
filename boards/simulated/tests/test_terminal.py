from __future__ import annotations

import re
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from ember_hw.boards.host.channel import SerialChannel
from ember_hw.boards.simulated.model import BoardModel
from ember_hw.boards.simulated.terminal import SimulatedTerminal
from ember_hw.errors import LinkError


class EchoModel:
    """Gives back every byte, one in 100 cycles."""

    def __init__(self) -> None:
        self.cycles = 0
        self.is_closed = False
        self.error: Exception | None = None

    def run(self, cycles: int, content: bytes, *, to_flag: bool) -> tuple[bytes, int]:
        if self.error is not None:
            raise self.error
        taken = min(len(content), cycles // 100)
        self.cycles += cycles
        return content[:taken], taken

    def close(self) -> None:
        self.is_closed = True


def opened() -> tuple[Any, SimulatedTerminal]:
    model: Any = EchoModel()
    return model, SimulatedTerminal(model)


def read(channel: SerialChannel, count: int) -> bytes:
    got = b""
    end = time.monotonic() + 60
    while len(got) < count and time.monotonic() < end:
        got += channel.read(0.1)
    return got


def test_bytes_of_any_value_pass_both_ways() -> None:
    model, terminal = opened()
    with terminal:
        channel = SerialChannel(terminal.port, 3_000_000)
        for _ in range(3):
            channel.write(bytes(range(256)))
            assert read(channel, 256) == bytes(range(256))
        assert channel.name == terminal.port
        channel.close()
    assert model.is_closed
    terminal.close()  # twice is no error


def test_time_stands_still_while_nobody_speaks() -> None:
    _, terminal = opened()
    with terminal:
        channel = SerialChannel(terminal.port, 3_000_000)
        channel.write(b"x")
        assert read(channel, 1) == b"x"
        before = -1
        while before != terminal.cycles:
            before = terminal.cycles
            time.sleep(0.3)
        assert 50_000 <= before
        channel.close()


def test_a_terminal_that_nobody_reads_still_closes() -> None:
    _, terminal = opened()
    channel = SerialChannel(terminal.port, 3_000_000)
    for _ in range(30):
        channel.write(bytes(500))
        time.sleep(0.01)
    closer = threading.Thread(target=terminal.close, daemon=True)
    closer.start()
    closer.join(60)
    assert not closer.is_alive()
    channel.close()


def test_a_board_that_is_pulled_is_told() -> None:
    _, terminal = opened()
    channel = SerialChannel(terminal.port, 3_000_000)
    terminal.close()
    message = rf"^port {terminal.port} must stay connected, and broke: .*; plug the board in and "
    with pytest.raises(LinkError, match=message):
        channel.read(0.1)
    channel.close()


def test_what_ends_the_simulation_is_kept() -> None:
    model, terminal = opened()
    with terminal:
        model.error = RuntimeError("assertion of the gateware failed")
        channel = SerialChannel(terminal.port, 3_000_000)
        channel.write(b"x")
        assert channel.read(0.2) == b""
        channel.close()
    assert terminal.error is model.error


def test_a_model_that_was_closed_says_so() -> None:
    model = object.__new__(BoardModel)
    model._handle, model._library = None, SimpleNamespace(board_cycles=len)
    message = "model of a board must be open, and was closed"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        assert model.cycles
    model.close()
