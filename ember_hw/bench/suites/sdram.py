"""The ULX3S's SDRAM controller: legal commands in a million accesses, random rows against the peak.

The controller's RTL runs in Verilator with a model of the chip on its pins, which checks data and
every limit between commands. *accesses*: beats of 16 bytes anywhere in the chip, three in ten
written, that came back right before anything was wrong. *rows*: reads of aligned rows at random,
words over what the data pins could have carried, refreshes included.
"""

from __future__ import annotations

from collections.abc import Iterator

from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.boards.sdram.chip import CHIPS
from ember_hw.boards.sdram.exercise import Outcome, Plan, exercise
from ember_hw.errors import DeviceError

ACCESSES, QUICK_ACCESSES = 1_000_000, 100_000
WRITES = 0.3
ROW_BYTES = (16, 64, 128, 256, 512, 1024)
#: Bytes of rows that are read at each size.
_READ_BYTES, _QUICK_READ_BYTES = 8 << 20, 1 << 20
#: Least share of the peak that random rows must reach, by their bytes.
BARS = {256: 0.80}
CLOCK_MHZ = 100.0
_CHIP = CHIPS["ulx3s"]


def run(job: Job) -> Iterator[Row]:
    """Measure both parts.

    Raises
    ------
    DeviceError
        Rows came back wrong, or against a limit of the chip: their speed says nothing.
    """
    yield from _accesses(job)
    yield from _rows(job)


def _accesses(job: Job) -> Iterator[Row]:
    count = QUICK_ACCESSES if job.quick else ACCESSES
    name = f"{count:,} random accesses"
    if not job.wants(name):
        return
    job.watcher(f"sdram: {name}")
    plan = Plan(requests=count, writes=WRITES, seed=job.seed)
    outcome = exercise(_CHIP, CLOCK_MHZ, plan)
    legal = outcome.beats + outcome.beats_written if outcome.is_right else 0
    yield Row(
        workload=name,
        metric="accesses, all of them legal and right",
        value=legal,
        unit="1",
        params={**_params(outcome, job.seed), "writes": WRITES, "first_fault": outcome.first},
        reference_name="accesses asked for",
        reference=count,
        bar=1.0,
    )


def _rows(job: Job) -> Iterator[Row]:
    for row_bytes in ROW_BYTES:
        name = f"random rows of {row_bytes} B"
        if not job.wants(name):
            continue
        job.watcher(f"sdram: {name}")
        beats = row_bytes // _CHIP.beat_bytes
        count = (_QUICK_READ_BYTES if job.quick else _READ_BYTES) // row_bytes
        plan = Plan(requests=count, most_beats=beats, aligned=True, seed=job.seed)
        outcome = exercise(_CHIP, CLOCK_MHZ, plan)
        if not outcome.is_right:
            raise DeviceError(f"{name} must come right from the SDRAM, and don't: {outcome.first}")
        yield Row(
            workload=name,
            metric="share of peak",
            value=outcome.read_share_of_peak,
            unit="1",
            params={**_params(outcome, job.seed), "row_bytes": row_bytes},
            reference_name=f"one word a clock, {2 * CLOCK_MHZ:g} MB/s",
            reference=1.0,
            bar=BARS.get(row_bytes),
        )


def _params(outcome: Outcome, seed: int) -> dict[str, object]:
    return {
        "chip": _CHIP.name,
        "clock_mhz": CLOCK_MHZ,
        "clocks": outcome.clocks,
        "commands": {command.name: count for command, count in outcome.commands.items() if count},
        "seed": seed,
    }
