"""Devices that tests of several dtypes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ember_hw.bench.fuzzing.every_level import UNIT
from ember_hw.host.device import Device, open_device


@pytest.fixture(scope="module", params=["c", "numpy"])
def interpreter(request: pytest.FixtureRequest) -> Iterator[Device]:
    with open_device("interpreter", config=UNIT, engine=request.param) as opened:
        yield opened


@pytest.fixture(scope="module")
def unit() -> Iterator[Device]:
    with open_device("verilator", config=UNIT, optimise=False) as opened:
        yield opened
