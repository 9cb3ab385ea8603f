"""A result of the demo, for tests that need none in particular."""

from __future__ import annotations

from typing import Any

from ember_hw.demo.run import DemoResult
from ember_hw.host.report import Report


def a_report(**changes: Any) -> Report:
    values: dict[str, Any] = {
        "program": "EmbeddingBag",
        "backend": "verilator",
        "memory": "ideal (latency 100 cycles)",
        "sink": "ideal",
        "config": "default",
        "config_hash": 0x1234,
        "bus_bytes": 64,
        "lookups": 100_000,
        "bundles": 100_000,
        "row_beats": 400_000,
        "rows": 100_000,
        "useful_bytes": 25_600_000,
        "cycles": 413_000,
        "index_beats": 12_500,
        "stalls": {"execute": 0, "outstanding": 210, "memory": 130, "front": 160},
        "high_water": {"bundles": 31, "row_beats": 256, "outstanding": 64, "tokens": 40},
        "seed": 0,
    }
    return Report(**(values | changes))


def a_result(**changes: Any) -> DemoResult:
    values: dict[str, Any] = {
        "bags": 943,
        "mismatches": 0,
        "torch_mismatches": 0,
        "torch_max_error": 1.9e-5,
        "opt_level": 3,
        "microcode_words": 96,
        "ir_lines": {"scf": 30, "slc": 34, "slcvec": 36, "dlc": 28, "au": 12},
        "capacities": {"bundles": 64, "row_beats": 256, "outstanding": 64, "tokens": 128},
        "report": a_report(),
    }
    return DemoResult(**(values | changes))
