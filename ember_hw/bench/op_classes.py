"""Programs of the other op classes: SpMM, knowledge graphs, message passing, attention, tables.

They are those of `ember_hw.bench.programs`. Each states its own limit: the useful bytes of its rows
over what the port must move for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from ember_hw.bench.presets import unit
from ember_hw.bench.programs import TASKS as PROGRAMS
from ember_hw.bench.programs import config_for_all
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.bench.simulated import Runnable, Simulator
from ember_hw.config import AcceleratorConfig
from ember_hw.sim.options import IdealMemory


class Task(Runnable, Protocol):
    """A program with its inputs that knows what it needs and what it can reach."""

    def config(self, base: AcceleratorConfig) -> AcceleratorConfig:
        """Return a config with as much as the program needs, else as it is."""
        ...

    def limit(self, config: AcceleratorConfig) -> float:
        """Return the most useful bytes over cycles x bus bytes."""
        ...


#: What makes each task from a seed, by its name.
TASKS: Mapping[str, Callable[[int], Task]] = PROGRAMS

_LATENCY_CYCLES = 100


def run(job: Job, bar: float) -> Iterator[Row]:
    """Measure the tasks that the job wants, on one 512-bit unit; none of them is quick."""
    base = config_for_all(unit(512, 128), input_queue=True)
    for name, make in TASKS.items():
        title = f"512-bit/latency {_LATENCY_CYCLES}/{name}"
        if job.quick or not job.wants(title):
            continue
        job.watcher(f"gather: {title}")
        task = make(job.seed)
        config = task.config(base)
        memory = IdealMemory(latency_cycles=_LATENCY_CYCLES)
        with Simulator(config, memory=memory, progress=job.watcher.detail) as simulator:
            delivery = simulator.run(task)
            yield Row(
                workload=title,
                metric="utilisation",
                value=delivery.utilisation,
                unit="1",
                params={
                    **task.params,
                    "bus_bytes": config.bus_bytes,
                    "latency_cycles": _LATENCY_CYCLES,
                    "outstanding": config.outstanding_reads,
                    "memory": simulator.memory,
                    "sink": simulator.sink,
                    "cycles": delivery.cycles,
                },
                reference_name="port",
                reference=task.limit(config),
                bar=bar,
            )
