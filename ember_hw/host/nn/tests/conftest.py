from __future__ import annotations

from collections.abc import Iterator

import pytest

from ember_hw.config import AcceleratorConfig
from ember_hw.host.backends.interpreter import Backend
from ember_hw.host.device import Device
from ember_hw.host.nn.devices import set_default_device
from ember_hw.host.tests.counting import CountingBackend


@pytest.fixture(scope="session")
def counting() -> CountingBackend:
    return CountingBackend(Backend(AcceleratorConfig.preset("tables")))


@pytest.fixture
def device(counting: CountingBackend) -> Iterator[Device]:
    """An interpreter that is the default device, too; its launches are counted from 0."""
    counting.launches = 0
    opened = Device("counting", counting)
    set_default_device(opened)
    yield opened
    set_default_device(None)
