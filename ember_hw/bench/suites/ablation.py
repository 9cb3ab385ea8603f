"""What each opt level brings: traffic at dlc, and bundles, beats and cycles on the unit.

Tokens and entries a lookup are those of the interpreted dlc, before hardware packs them; beside
them stand the closed forms of `ember_hw.bench.workloads.formulas`, which they must equal. Cycles of
a level stand beside those of the level before. The results of all levels must be the same, bit by
bit. The gains of the paper were measured on other hardware; they are shown for comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.bench.simulated import Simulator
from ember_hw.bench.workloads.case import Case
from ember_hw.bench.workloads.cases import LATENCY_CYCLES, SINKS, Makers, small_cases, unit_of
from ember_hw.bench.workloads.formulas import Traffic as ClosedForm
from ember_hw.bench.workloads.formulas import traffic as traffic_of
from ember_hw.bench.workloads.generated import Generated, Traffic, generate, lower_alone
from ember_hw.errors import CheckError
from ember_hw.sim.options import IdealMemory

#: No level may be slower than the one before; where each step must gain, it gains a hundredth.
BAR, GAIN_BAR = 1.0, 1.01
#: Where each step must gain.
GAINING = {"family": "DLRM", "width_bits": 512, "sink": "core-like"}
#: Gains of the steps to levels 1, 2 and 3, geometric means. Ref: Ember, CGO 2026, figure 13.
PUBLISHED: Mapping[str, tuple[float, float, float]] = {
    "RM1": (4.20, 1.38, 1.14),
    "RM2": (5.29, 1.67, 1.37),
    "RM3": (6.08, 2.21, 1.56),
    "DLRM": (5.13, 1.72, 1.35),
    "MP": (5.00, 1.54, 1.17),
}
_WIDTHS_BITS = (512, 128)


@dataclass
class Gains:
    """What each step gained, in every case on one unit and sink: by family or model, a list each.

    Attributes
    ----------
    by_group : dict
        By group, width, sink and level: old cycles over new ones.
    """

    by_group: dict[tuple[str, int, str, int], list[float]] = field(
        default_factory=dict[tuple[str, int, str, int], list[float]]
    )

    def add(self, case: Case, width_bits: int, sink: str, opt_level: int, gain: float) -> None:
        """Take down one step of a case."""
        groups = {case.family, case.name.partition("/")[0]}
        for group in sorted(groups & PUBLISHED.keys()):
            self.by_group.setdefault((group, width_bits, sink, opt_level), []).append(gain)

    def rows(self) -> Iterator[Row]:
        """Return the means beside those of the paper."""
        for (group, width_bits, sink, opt_level), gains in self.by_group.items():
            yield Row(
                workload=f"{group}/{width_bits}-bit/{sink}",
                metric=f"gain of level {opt_level}, geomean",
                value=math.exp(math.fsum(map(math.log, gains)) / len(gains)),
                unit="1",
                params={"workloads": len(gains), "sink": sink, "width_bits": width_bits},
                reference_name="published, of other hardware",
                reference=PUBLISHED[group][opt_level - 1],
            )


def run(job: Job) -> Iterator[Row]:
    """Measure every case at every level, on each unit and sink, then the means."""
    makers = small_cases(job.quick)
    gains = Gains()
    for width_bits in _WIDTHS_BITS[:1] if job.quick else _WIDTHS_BITS:
        yield from _unit(job, makers, width_bits, gains)
    yield from gains.rows()


def _unit(job: Job, makers: Makers, width_bits: int, gains: Gains) -> Iterator[Row]:
    """Measure the cases on one unit."""
    wanted = {
        name: [sink for sink in SINKS if job.wants(f"{name}/{width_bits}-bit/{sink}")]
        for name in makers
    }
    names = [name for name, sinks in wanted.items() if sinks]
    if not names:
        return
    job.watcher(f"ablation: opening the {width_bits}-bit unit")
    config = unit_of(width_bits)
    with ExitStack() as stack:
        simulators = {
            sink: stack.enter_context(
                Simulator(
                    config,
                    memory=IdealMemory(latency_cycles=LATENCY_CYCLES),
                    sink=sink,
                    optimise=not job.quick,
                    progress=job.watcher.detail,
                )
            )
            for sink in SINKS
        }
        job.watcher(f"ablation: {len(names)} workloads, {width_bits}-bit unit")
        for done, name in enumerate(names):
            job.watcher.detail(name)
            case = makers[name](job.seed)
            levels = [generate(case, opt_level, config) for opt_level in case.opt_levels]
            yield from traffic_rows(case, levels, width_bits)
            for sink in wanted[name]:
                yield from cycle_rows(case, levels, simulators[sink], gains)
            job.watcher.reached(done + 1, len(names), None)


def traffic_rows(case: Case, levels: Sequence[Generated], width_bits: int) -> Iterator[Row]:
    """Interpret every level; return what its queues carry a lookup beside the closed forms.

    Where the passes alone give another program than for hardware, that is counted as well.

    Raises
    ------
    CheckError
        A level gives another result than the lowest.
    """
    first: Mapping[str, NDArray[np.float32]] | None = None
    for generated in levels:
        found = generated.traffic()
        first = first or found.outputs
        check_outputs(case.name, generated.opt_level, found.outputs, first)
        opt_level, lanes = generated.opt_level, generated.lanes
        wanted = traffic_of(case, opt_level, lanes, hardware=True)
        yield from traffic_of_level(generated, found, wanted, width_bits)
        alone = traffic_of(case, opt_level, lanes, hardware=False)
        if alone != wanted:
            generated = lower_alone(case, opt_level, lanes)
            found = generated.traffic()
            check_outputs(case.name, opt_level, found.outputs, first)
            yield from traffic_of_level(generated, found, alone, width_bits, ", passes alone")


def check_outputs(
    name: str,
    opt_level: int,
    found: Mapping[str, NDArray[np.float32]],
    wanted: Mapping[str, NDArray[np.float32]],
) -> None:
    """Refuse results that differ in a bit.

    Raises
    ------
    CheckError
        An array differs; it is named.
    """
    for symbol, array in found.items():
        if not np.array_equal(array.view(np.uint32), wanted[symbol].view(np.uint32)):
            raise CheckError(
                f"result {symbol!r} of {name!r} at level {opt_level} must be that of the lowest, "
                "and isn't"
            )


def traffic_of_level(
    generated: Generated,
    found: Traffic,
    wanted: ClosedForm,
    width_bits: int,
    remark: str = "",
) -> Iterator[Row]:
    """Return what the queues of one level carry a lookup beside the closed forms."""
    case = generated.case
    for what, count, formula in (
        ("tokens", found.tokens, wanted.tokens),
        ("entries", found.entries, wanted.entries),
    ):
        value = Fraction(count, case.sizes.lookups)
        yield Row(
            workload=f"{case.name}/{width_bits}-bit",
            metric=f"{what} a lookup, level {generated.opt_level}{remark}",
            value=float(value),
            unit="1",
            params={
                **case.params,
                "vector_length": generated.lanes,
                "programs": len(generated.programs),
            },
            reference_name="closed form",
            reference=float(formula),
            is_smaller_better=value > formula,  # whichever way it differs, the bar is missed
            bar=BAR,
        )


def cycle_rows(
    case: Case, levels: Sequence[Generated], simulator: Simulator, gains: Gains
) -> Iterator[Row]:
    """Run every level on a unit; return its bundles, beats and cycles.

    Raises
    ------
    DeviceError
        What came isn't right.
    """
    width_bits = simulator.config.data_width_bits
    before: int | None = None
    for generated in levels:
        came = [simulator.run(workload) for workload in generated.workloads()]
        totals = {
            name: sum(delivery.facts[name] for delivery in came)
            for name in ("cycles", "bundles", "row_beats", "index_beats")
        }
        opt_level, cycles = generated.opt_level, totals["cycles"]
        place: dict[str, Any] = {
            "family": case.family,
            "width_bits": width_bits,
            "sink": simulator.sink,
        }
        must_gain = all(place[name] == value for name, value in GAINING.items())
        if before is not None:
            gains.add(case, width_bits, simulator.sink, opt_level, before / cycles)
        workload = f"{case.name}/{width_bits}-bit/{simulator.sink}"
        yield Row(
            workload=workload,
            metric=f"cycles, level {opt_level}",
            value=cycles,
            unit="cycles",
            params={
                **case.params,
                **place,
                "memory": simulator.memory,
                "programs": len(came),
                "index_beats": totals["index_beats"],
            },
            reference_name=None if before is None else f"level {opt_level - 1}",
            reference=before,
            is_smaller_better=True,
            bar=None if before is None else GAIN_BAR if must_gain else BAR,
        )
        for name, title in (("bundles", "bundles"), ("row_beats", "row beats")):
            yield Row(
                workload=workload,
                metric=f"{title}, level {opt_level}",
                value=totals[name],
                unit="1",
                params=place,
            )
        before = cycles
