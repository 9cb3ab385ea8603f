"""A backend in front of another one that counts what reaches the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ember_hw.host.device import Backend
from ember_hw.host.execution import Chunk
from ember_hw.host.launch import Launch


class CountingBackend:
    """Counts launches and everything else that a device is asked."""

    def __init__(self, device: Backend) -> None:
        self._device = device
        self.config, self.memory, self.sink = device.config, device.memory, device.sink
        self.cycles: int | None = None
        self.calls = 0
        self.launches = 0

    def execute(self, launch: Launch) -> Iterator[Chunk]:
        self.calls += 1
        self.launches += 1
        return self._device.execute(launch)

    def facts(self) -> dict[str, Any]:
        self.calls += 1
        return self._device.facts()

    def sample(self) -> Any:
        return self._device.sample()

    def close(self) -> None:
        self._device.close()
