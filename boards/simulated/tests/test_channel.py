from __future__ import annotations

import re

import pytest

from ember_hw.boards.host.tests.fakes import FakeBoard
from ember_hw.boards.simulated.channel import FAULTS, FaultyChannel
from ember_hw.errors import LinkError


class Echo:
    """A channel that gives back what it got."""

    name = "echo"

    def __init__(self) -> None:
        self.content = b""
        self.is_closed = False

    def write(self, content: bytes) -> None:
        self.content += content

    def read(self, seconds: float) -> bytes:
        got, self.content = self.content, b""
        return got

    def now(self) -> float:
        return 7.0

    def close(self) -> None:
        self.is_closed = True


def test_without_faults_bytes_pass() -> None:
    echo = Echo()
    channel = FaultyChannel(echo, chance=0.0, seed=1)
    channel.write(b"abc")
    assert channel.read(1.0) == b"abc"
    assert (channel.name, channel.now()) == ("echo", 7.0)
    channel.close()
    assert echo.is_closed


@pytest.mark.parametrize("by_frame", [False, True])
def test_every_kind_of_fault_comes_and_is_counted(by_frame: bool) -> None:
    echo = Echo()
    channel = FaultyChannel(echo, chance=0.05, seed=2, by_frame=by_frame)
    lengths = set()
    for _ in range(500):
        channel.write(bytes(40))
        lengths.add(len(echo.read(0.0)))
    assert set(channel.faults) == set(FAULTS)
    assert all(channel.faults.values())
    assert {39, 40, 41} < lengths
    hits = sum(channel.faults.values())
    assert 10 < hits < 50 if by_frame else 600 < hits < 1200


def test_a_channel_that_is_pulled_says_so() -> None:
    channel = FaultyChannel(FakeBoard(), chance=0.0, seed=1)
    channel.calls_left = 1
    channel.write(b"")
    message = "port fake must stay connected, and was pulled"
    for access in (lambda: channel.write(b""), lambda: channel.read(0.0)):
        with pytest.raises(LinkError, match=f"^{re.escape(message)}$"):
            access()
