"""Generated programs against hand-written ones: cycles on the same unit, memory and sink.

The hand-written programs are those of `ember_hw.bench.programs`. The generated ones are made of scf
text at opt level 3, `ember_hw.bench.workloads`. Both deliver the same rows in the same order, which
is checked byte by byte; what else they tell the execute side may differ. The value is the cycles of
the generated program from start to end, the reference those of the hand-written one. Recommender
models run on a modelled DRAM as well, whose open rows tell one locality from another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.bench.simulated import Delivery, Simulator
from ember_hw.bench.workloads.case import Case
from ember_hw.bench.workloads.cases import LATENCY_CYCLES, SINKS, cases, unit_of
from ember_hw.bench.workloads.generated import generate
from ember_hw.sim.options import IdealMemory

#: Least ratio of each workload, and of the geometric mean of all.
BAR, GEOMEAN_BAR = 0.98, 1.0
#: The paper's worst and mean. Ref: Ember, CGO 2026.
PUBLISHED = {"published_worst": 0.952, "published_geomean": 0.981}
#: A run is bound by memory where its port carries something in so many of the cycles.
BUSY = 0.9
NOT_MEMORY_BOUND = 5
_OPT_LEVEL = 3
_WIDTH_BITS = 512
_DRAM = "hbm2-pc"


class Place(NamedTuple):
    """Where both programs of a case run: end of its results' names, sink, memory."""

    suffix: str
    sink: str
    memory: Any

    def takes(self, case: Case) -> bool:
        """Whether the case is measured here."""
        return self.memory != _DRAM or case.family == "DLRM"


#: The places with a bar for the mean, then those without.
_IDEAL = tuple(Place(sink, sink, IdealMemory(latency_cycles=LATENCY_CYCLES)) for sink in SINKS)
_MODELLED = (Place(f"{SINKS[0]}/{_DRAM}", SINKS[0], _DRAM),)


def run(job: Job) -> Iterator[Row]:
    """Measure every case in every place, then the means."""
    makers = cases(job.quick)
    places = _IDEAL if job.quick else (*_IDEAL, *_MODELLED)
    wanted = {
        name: [place for place in places if job.wants(f"{name}/{place.suffix}")] for name in makers
    }
    names = [name for name, chosen in wanted.items() if chosen]
    if not names:
        return
    ratios: dict[Place, dict[str, float]] = {place: {} for place in places}
    busy: dict[Place, dict[str, float]] = {place: {} for place in places}
    job.watcher("hand: opening the simulated unit")
    with ExitStack() as stack:
        simulators = {
            place: stack.enter_context(
                Simulator(
                    unit_of(_WIDTH_BITS),
                    memory=place.memory,
                    sink=place.sink,
                    optimise=not job.quick,
                    progress=job.watcher.detail,
                )
            )
            for place in places
        }
        job.watcher(f"hand: {len(names)} workloads")
        for done, name in enumerate(names):
            job.watcher.detail(name)
            case = makers[name](job.seed)
            for place in wanted[name]:
                if not place.takes(case):
                    continue
                row, share = measure(case, place, simulators[place])
                assert row.ratio is not None
                ratios[place][name], busy[place][name] = row.ratio, share
                yield row
            job.watcher.reached(done + 1, len(names), None)
    for place in places:
        if ratios[place]:
            yield mean_row(place, ratios[place])
    slow = _IDEAL[-1]
    if len(busy[slow]) == len(makers):
        yield bound_row(slow.sink, busy[slow])


def measure(case: Case, place: Place, simulator: Simulator) -> tuple[Row, float]:
    """Run both programs of a case; return the row, and how busy the generated one's port was.

    Raises
    ------
    DeviceError
        What came isn't right.
    """
    assert case.task is not None, "every case of the suite has one"
    hand = simulator.run(case.task)
    (workload,) = generate(case, _OPT_LEVEL, simulator.config).workloads()
    generated = simulator.run(workload)
    share = port_share(generated)
    row = Row(
        workload=f"{case.name}/{place.suffix}",
        metric="cycles, generated",
        value=generated.cycles,
        unit="cycles",
        params={
            **case.params,
            "family": case.family,
            "memory": simulator.memory,
            "sink": simulator.sink,
            "bus_bytes": simulator.config.bus_bytes,
            "memory_port_busy": share,
            "bundles": generated.facts["bundles"],
            "hand_bundles": hand.facts["bundles"],
            "row_beats": generated.facts["row_beats"],
        },
        reference_name="hand-written",
        reference=hand.cycles,
        is_smaller_better=True,
        bar=BAR,
    )
    return row, share


def port_share(delivery: Delivery) -> float:
    """Return the share of a run's cycles in which the memory port carried a beat."""
    facts = delivery.facts
    return (facts["row_beats"] + facts["index_beats"]) / delivery.cycles


def mean_row(place: Place, ratios: Mapping[str, float]) -> Row:
    """Return the geometric mean of the ratios in one place."""
    mean = math.exp(math.fsum(map(math.log, ratios.values())) / len(ratios))
    params: dict[str, Any] = {"workloads": len(ratios), "worst": min(ratios.values()), **PUBLISHED}
    return Row(
        workload=f"geomean/{place.suffix}",
        metric="hand-written over generated cycles",
        value=mean,
        unit="1",
        params=params,
        reference_name="hand-written",
        reference=1.0,
        bar=GEOMEAN_BAR if place in _IDEAL else None,
    )


def bound_row(sink: str, busy: Mapping[str, float]) -> Row:
    """Return how many workloads something else than memory bounds on a sink."""
    free = [name for name, share in busy.items() if share < BUSY]
    return Row(
        workload="all",
        metric="workloads not bound by memory",
        value=len(free),
        unit="1",
        params={"busy": BUSY, "sink": sink, "workloads": len(busy)},
        reference_name="at least",
        reference=NOT_MEMORY_BOUND,
        bar=1.0,
    )
