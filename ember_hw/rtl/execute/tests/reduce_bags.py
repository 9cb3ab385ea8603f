"""Bags that an access unit with a reduce unit sums, and what must come of them."""

from __future__ import annotations

import numpy as np

from ember_hw.compiler.interpreters.reduce import reduce_rows
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import Event, ReduceOperation, event_mask
from ember_hw.rtl.tests.machine import Bags

ROW_BYTES = 20


def summed_bags(config: AcceleratorConfig, bags, cuts=(), **changes) -> Bags:
    """Return bags that are summed; changes are of ``record__field``."""
    microcode = {
        "reduce__length": ROW_BYTES,
        "reduce0__operation": ReduceOperation.SUM,
        "reduce0__emit_events": event_mask([(Event.END, 1)], config),
        **changes,
    }
    fields = tuple((*name.split("__"), int(value)) for name, value in microcode.items())
    return Bags(tuple(bags), ROW_BYTES, cuts=cuts, changes=fields)


def expected_results(config: AcceleratorConfig, bags: Bags) -> list[np.ndarray]:
    """Return the results of some bags."""
    bundles, rows = bags.expected(config)
    scalars = [0] * config.bundle_scalars
    records = bags.microcode(config).records
    return reduce_rows(records, config, [(events, scalars) for events, _ in bundles], rows)


def bits_of(rows) -> list[list[int]]:
    """Return rows of numbers, or of bytes, as bits, which compare where NaN don't."""
    return [np.frombuffer(bytes(row), np.uint32).tolist() for row in rows]
