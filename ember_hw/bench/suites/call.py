"""What one call costs: an EmbeddingBag of one lookup on the interpreter, and torch's beside it.

The program is compiled before. The median counts, of calls one after the other on one thread.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import ember_hw
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.bench.suites.sim import one_core
from ember_hw.config import AcceleratorConfig

#: Config by what the call is: a bag alone, and one on the config for many tables.
CONFIGS = ("default", "tables")
#: Bar of one call, in microseconds.
MOST_MICROSECONDS = 300.0
CALLS, QUICK_CALLS = 3_000, 300
ROWS, COLUMNS = 1_000, 64


def run(job: Job) -> Iterator[Row]:
    """Measure a call on each config."""
    for preset in CONFIGS:
        name = f"1 lookup, config {preset}"
        if not job.wants(name):
            continue
        job.watcher(f"call: {name}")
        calls = QUICK_CALLS if job.quick else CALLS
        own, torchs, busy = measure(AcceleratorConfig.preset(preset), calls)
        yield Row(
            workload=name,
            metric="call",
            value=own,
            unit="us",
            params={
                "calls": calls,
                "torch_us": torchs,
                "processor_us": busy,
                "columns": COLUMNS,
                "config": preset,
            },
            reference_name="most allowed",
            reference=MOST_MICROSECONDS,
            is_smaller_better=True,
            bar=1.0,
        )


def measure(config: AcceleratorConfig, calls: int) -> tuple[float, float, float]:
    """Return the microseconds of a call: ours and torch's in the median, our processor time."""
    import torch  # slow to import, and not needed to list suites

    theirs = torch.nn.EmbeddingBag(ROWS, COLUMNS, mode="sum")
    indices, offsets = torch.tensor([5]), torch.tensor([0])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ember_hw.open_device("interpreter", config=config) as device, torch.no_grad():
            ours = ember_hw.nn.EmbeddingBag.from_torch(theirs, device=device)
            ours(indices, offsets)
            with one_core():
                began = time.thread_time()  # others' use of the processor doesn't count
                own = median_microseconds(lambda: ours(indices, offsets), calls)
                busy = 1e6 * (time.thread_time() - began) / calls
                return own, median_microseconds(lambda: theirs(indices, offsets), calls), busy
    finally:
        torch.set_num_threads(threads)


def median_microseconds(call: Callable[[], object], calls: int) -> float:
    """Return the median time of some calls."""
    seconds: list[float] = []
    for _ in range(calls):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return 1e6 * statistics.median(seconds)
