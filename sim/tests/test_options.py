import re
from pathlib import Path
from typing import Any

import pytest

from ember_hw.sim.options import (
    CoreLikeSink,
    IdealMemory,
    LinkMemory,
    Pushes,
    RandomMemory,
    StallingSink,
    TestMemory,
    Trace,
)

_ROWS: Any = "rows"  # of no legal value


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IdealMemory(latency_cycles=0), "latency_cycles must be at least 1, not 0"),
        (lambda: LinkMemory(bytes_per_cycle=0), "bytes_per_cycle must be at least 1, not 0"),
        (
            lambda: RandomMemory(latency_cycles=(0, 3)),
            "latency_cycles must be (least, greatest), from 1 on, not (0, 3)",
        ),
        (
            lambda: TestMemory(seed=1, latency_cycles=(9, 3)),
            "latency_cycles must be (least, greatest), from 1 on, not (9, 3)",
        ),
        (
            lambda: TestMemory(seed=1, write_latency_cycles=(0, 0)),
            "write_latency_cycles must be (least, greatest), from 1 on, not (0, 0)",
        ),
        (
            lambda: TestMemory(seed=1, request_stall_probability=1),
            "request_stall_probability must be at least 0 and below 1, not 1",
        ),
        (
            lambda: TestMemory(seed=1, beat_stall_probability=-0.5),
            "beat_stall_probability must be at least 0 and below 1, not -0.5",
        ),
        (
            lambda: CoreLikeSink(pushes=Pushes(), token_cycles=-1),
            "token_cycles must be at least 0, not -1",
        ),
        (
            lambda: CoreLikeSink(pushes=Pushes(), bytes_per_cycle=0),
            "bytes_per_cycle must be at least 1, not 0",
        ),
        (
            lambda: StallingSink(seed=1, stall_probability=1.5),
            "stall_probability must be at least 0 and below 1, not 1.5",
        ),
        (
            lambda: StallingSink(seed=1, freeze_probability=1.5),
            "freeze_probability must be at least 0 and below 1, not 1.5",
        ),
        (
            lambda: StallingSink(seed=1, freeze_cycles=-1),
            "freeze_cycles must be at least 0, not -1",
        ),
        (
            lambda: Trace(path=Path("t.vcd"), first=-1),
            "first must be at least 0, not -1",
        ),
        (
            lambda: Trace(path=Path("t.vcd"), first=5, end=5),
            "end must be at least 6, not 5",
        ),
        (lambda: Trace(path=Path("t.txt")), "path must end in .vcd or .fst, not 't.txt'"),
        (
            lambda: Trace(path=Path("t.vcd"), by=_ROWS),
            "by must be cycles or lookups, not 'rows'",
        ),
    ],
)
def test_values_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()


@pytest.mark.parametrize(
    ("memory", "text"),
    [
        (IdealMemory(), "ideal (latency 100 cycles)"),
        (RandomMemory(), "random (latency 50 to 300 cycles, out of order, seed 1)"),
        (TestMemory(seed=3), "test (latency 1 to 200 cycles, stalls, seed 3)"),
        (
            LinkMemory(),
            "slow-link (latency 300 cycles, 8 bytes a cycle; 1 us and 2.4 GB/s at 300 MHz)",
        ),
    ],
)
def test_a_description_names_every_parameter(memory, text):
    assert memory.describe() == text
