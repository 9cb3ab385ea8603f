"""Stand-ins for what benchmarks talk to."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_hw.bench.simulated import Delivery
from ember_hw.config import AcceleratorConfig


class Silent:
    """A watcher that forgets."""

    def __call__(self, text: str) -> None: ...

    def detail(self, text: str) -> None: ...

    def reached(self, done: int, total: int | None, cycles: int | None) -> None: ...


class ASimulator:
    """Takes 400 cycles, and 4 more a lookup; delivers a full beat every second cycle."""

    memory = sink = "fake"

    def __init__(self, config: AcceleratorConfig, **_: Any) -> None:
        self.config = config

    def __enter__(self) -> ASimulator:
        return self

    def __exit__(self, *_: object) -> None: ...

    def run(self, workload: Any, **_: Any) -> Delivery:
        row_cycles = np.arange(0, 200, 2).astype(np.uint64)
        useful = np.full(100, self.config.bus_bytes, np.uint8)
        cycles = 400 + 4 * workload.params["lookups"]
        return Delivery(cycles, row_cycles, useful, self.config.bus_bytes, {})
