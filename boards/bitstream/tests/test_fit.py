"""Cells become resources, and a design that is too large is told what to lower."""

from __future__ import annotations

import re

import pytest

from ember_hw.boards.bitstream.fit import Usage, check_fit, count_resources
from ember_hw.boards.bitstream.tests.blinker import TARGET
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import ToolError

DEVICE = TARGET.device
CONFIG = AcceleratorConfig(name="big", data_width_bits=128, execute="reduce", row_entries=4)


def test_cells_are_counted_as_nextpnr_does() -> None:
    types = ["LUT4", "LUT4", "CCU2C", "TRELLIS_DPR16X4", "TRELLIS_FF", "DP16KD", "MULT18X18D"]
    types += ["PDPW16KD", "PFUMX", "$scopeinfo"]
    cells = {str(number): {"type": kind} for number, kind in enumerate(types)}
    usage = count_resources({"modules": {"top": {"cells": cells}}}, "top", DEVICE)
    assert {name: one.used for name, one in usage.items()} == {
        "LUT": 2 + 2 + 6, "FF": 1, "EBR": 2, "DSP": 1
    }  # fmt: skip
    assert usage["EBR"].share == 2 / 56


def _check(config: AcceleratorConfig, memory: str = "SDRAM", **used: int) -> None:
    usage = {name: Usage(used.get(name, 0), have) for name, have in DEVICE.capacity.items()}
    check_fit(usage, config, DEVICE, memory=memory)


def test_design_at_the_limit_fits() -> None:
    _check(CONFIG, LUT=14_572, FF=14_572, EBR=53, DSP=26)


@pytest.mark.parametrize(
    ("config", "memory", "used", "message"),
    [
        (
            CONFIG,
            "SDRAM",
            {"LUT": 14_573},
            "LUT must be at most 14,572 of 24,288 (60 %), not 14,573 (60 %); set execute to queues "
            "(now reduce) or lower traversal_units (now 3) or lower row_entries (now 4)",
        ),
        (
            CONFIG,
            "SDRAM",
            {"EBR": 54, "DSP": 28},
            "EBR must be at most 53 of 56 (95 %), not 54 (96 %); lower lines_per_stream (now 16) "
            "or lower traversal_units (now 3) or lower reorder_buffer_beats (now 512)\n"
            "DSP must be at most 26 of 28 (95 %), not 28 (100 %); set execute to queues "
            "(now reduce) or lower row_entries (now 4)",
        ),
        (
            CONFIG,
            "block RAM",
            {"EBR": 56},
            "EBR must be at most 53 of 56 (95 %), not 56 (100 %); use the board's other memory",
        ),
        (
            AcceleratorConfig.preset("tiny").with_changes(traversal_units=2),
            "SDRAM",
            {"FF": 20_000},
            "FF must be at most 14,572 of 24,288 (60 %), not 20,000 (82 %); no parameter takes "
            "much of it: use a larger device",
        ),
    ],
)
def test_what_to_lower_is_said(config, memory, used, message) -> None:
    message = f"config {config.name!r} doesn't fit LFE5U-25F-6BG381C: {message}"
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        _check(config, memory, **used)
