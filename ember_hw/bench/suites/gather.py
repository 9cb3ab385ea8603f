"""Share of the memory port that carries useful bytes, for EmbeddingBags of every shape.

The value is useful bytes of rows over cycles x bus bytes in the steady state: between the row beats
at 10 % and at 90 % of a run. The port carries rows and indices; its limit is `bags.port_limit`. A
point has the bar where enough reads are in flight to hide the memory's latency: outstanding x beats
of a row >= latency + 12. Elsewhere the limit is what so many reads in flight can bring. Every
bundle and every byte of every point is compared with the microcode interpreter and with NumPy.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ember_hw.bench import op_classes
from ember_hw.bench.bags import MIXED, Bags, port_limit
from ember_hw.bench.presets import unit
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.bench.simulated import Simulator
from ember_hw.config import AcceleratorConfig
from ember_hw.sim.options import IdealMemory, RandomMemory, StallingSink

BAR = 0.99
#: With random latency, with a stalling sink, for other op classes.
LENIENT_BAR = 0.98
#: Cycles that a read takes beside the memory's latency, at most.
OVERHEAD_CYCLES = 12
SINK_STALL = 0.1

#: Width of the index lines' own port, where there is one.
INDEX_PORT_BITS = 128

_ROW_BYTES = (64, 128, 256, 512)
_BAGS: tuple[int | str, ...] = (1, 4, 8, 32, 80, MIXED)
_LATENCIES = (30, 100, 200)
_OUTSTANDING = (128, 64, 32)
_RANDOM_LATENCY = (50, 300)
#: Reads that the unit may have in flight, and beats that the microcode lets it have. These hide the
#: random latency; with more, delivery in order is burstier, as a late row holds up more others.
_RANDOM_OUTSTANDING = 512
_RANDOM_BEATS = 384
#: Long enough that the bursts, of up to a reorder buffer of 2,048 beats, don't count at the ends.
_RANDOM_RUN_BEATS = 96_000


@dataclass(frozen=True)
class Setting:
    """Points that share a simulated unit and what surrounds it.

    Attributes
    ----------
    title : str
        Begin of its workloads' names.
    config : AcceleratorConfig
        The unit.
    points : sequence of (Bags, int)
        Lookups, and the reads in flight that the microcode allows.
    memory, sink : optional
        As `open_device` takes them.
    latency_cycles : int
        Of the memory, at most.
    bar : float
        Of the points with enough reads in flight.
    sink_share : float
        Cycles in which the sink takes a beat, over all.
    """

    title: str
    config: AcceleratorConfig
    points: Sequence[tuple[Bags, int]]
    memory: Any = "ideal"
    sink: Any = "ideal"
    latency_cycles: int = 100
    bar: float = BAR
    sink_share: float = 1.0

    def name(self, bags: Bags, outstanding: int) -> str:
        """Return what the result calls a point."""
        return f"{self.title}/{bags.name}/{outstanding} reads"


def run(job: Job) -> Iterator[Row]:
    """Measure every point that the job wants."""
    wanted = [
        (setting, [point for point in setting.points if job.wants(setting.name(*point))])
        for setting in settings(job.quick, job.seed)
    ]
    total, done = sum(len(points) for _, points in wanted), 0
    for setting, points in wanted:
        if not points:
            continue
        job.watcher(f"gather: {len(points)} points, {setting.title}")
        simulator = Simulator(
            setting.config,
            memory=setting.memory,
            sink=setting.sink,
            optimise=not job.quick,
            progress=job.watcher.detail,
        )
        with simulator:
            for bags, outstanding in points:
                yield measure(setting, simulator, bags, outstanding, job.seed)
                done += 1
                job.watcher.reached(done, total, None)
    yield from op_classes.run(job, LENIENT_BAR)


def settings(quick: bool, seed: int) -> Iterator[Setting]:
    """Return the points of the suite; the quick ones are a selection of one unit and one memory."""
    if quick:
        shapes = [Bags(row_bytes=r, bag=bag) for r in _ROW_BYTES for bag in (1, 8, 80, MIXED)]
        shapes += [
            Bags(row_bytes=r, bag=bag, index_bytes=8, has_weights=True)
            for r in (64, 512)
            for bag in (1, MIXED)
        ]
        yield _ideal(512, 100, [(shape, 128) for shape in shapes])
        return
    combinations = list(itertools.product(_ROW_BYTES, _BAGS, (4, 8), (False, True)))
    shapes = [
        Bags(row_bytes=row, bag=bag, index_bytes=size, has_weights=weights, lookups=_lookups(row))
        for row, bag, size, weights in combinations
    ]
    for width in (512, 128):
        for latency in _LATENCIES:
            yield _ideal(width, latency, list(itertools.product(shapes, _OUTSTANDING)))
        few = [shape for shape in shapes if shape.bag in (1, 8, MIXED) and not shape.has_weights]
        yield Setting(
            title=f"{width}-bit/sink stalls {SINK_STALL:.0%}",
            config=unit(width, 128),
            points=[(shape, 128) for shape in few],
            memory=IdealMemory(latency_cycles=100),
            sink=StallingSink(seed=seed, stall_probability=SINK_STALL),
            bar=LENIENT_BAR,
            sink_share=1 - SINK_STALL,
        )
    own_port = unit(512, 128)
    yield Setting(
        title=f"512-bit/index port of {INDEX_PORT_BITS} bits",
        config=own_port.with_changes(
            name=f"{own_port.name}, {INDEX_PORT_BITS}-bit index port",
            index_port_bits=INDEX_PORT_BITS,
        ),
        points=[(shape, 128) for shape in shapes if shape.row_bytes <= 128],
        memory=IdealMemory(latency_cycles=100),
    )
    low, high = _RANDOM_LATENCY
    random_points: list[tuple[Bags, int]] = []
    for shape in shapes:
        if shape.bag in (1, 8, MIXED) and not shape.has_weights:
            beats = shape.row_bytes // 64
            longer = replace(shape, lookups=_RANDOM_RUN_BEATS // beats)
            random_points.append((longer, _RANDOM_BEATS // beats))
    yield Setting(
        title=f"512-bit/latency {low} to {high} out of order",
        config=unit(512, _RANDOM_OUTSTANDING),
        points=random_points,
        memory=RandomMemory(seed=seed + 1, latency_cycles=_RANDOM_LATENCY),
        latency_cycles=high,
        bar=LENIENT_BAR,
    )


def _ideal(width: int, latency: int, points: Sequence[tuple[Bags, int]]) -> Setting:
    return Setting(
        title=f"{width}-bit/latency {latency}",
        config=unit(width, 128),
        points=points,
        memory=IdealMemory(latency_cycles=latency),
        latency_cycles=latency,
    )


def _lookups(row_bytes: int) -> int:
    """Return enough that the 16 indices of a line are a small part of the steady state."""
    return 8000 if row_bytes <= 128 else 4000


def measure(setting: Setting, simulator: Simulator, bags: Bags, outstanding: int, seed: int) -> Row:
    """Run one point.

    Raises
    ------
    DeviceError
        What came isn't right.
    """
    workload = bags.workload(seed)
    delivery = simulator.run(workload, outstanding_reads=outstanding)
    params = workload.params
    names = ("row_bytes", "index_bytes", "weight_bytes", "offset_bytes", "bag")
    bus_bytes, index_port_bytes = setting.config.bus_bytes, setting.config.index_port_bits // 8
    port = port_limit(
        bus_bytes=bus_bytes,
        index_port_bytes=index_port_bytes,
        **{name: params[name] for name in names},
    )
    limit, reason, has_bar = limit_of(
        port=port,
        bundles=params["lookups"] * bags.row_bytes / (bus_bytes * delivery.facts["bundles"]),
        beats=-(-bags.row_bytes // bus_bytes),
        row_share=bags.row_bytes / (bus_bytes * -(-bags.row_bytes // bus_bytes)),
        outstanding=outstanding,
        latency_cycles=setting.latency_cycles,
        sink_share=setting.sink_share,
    )
    return Row(
        workload=setting.name(bags, outstanding),
        metric="utilisation",
        value=delivery.utilisation,
        unit="1",
        params={
            **params,
            "bus_bytes": bus_bytes,
            "index_port_bytes": index_port_bytes,
            "latency_cycles": setting.latency_cycles,
            "outstanding": outstanding,
            "memory": simulator.memory,
            "sink": simulator.sink,
            "cycles": delivery.cycles,
            "port_limit": port,
        },
        reference_name=reason,
        reference=limit,
        bar=setting.bar if has_bar else None,
    )


def limit_of(
    *,
    port: float,
    bundles: float,
    beats: int,
    row_share: float,
    outstanding: int,
    latency_cycles: int,
    sink_share: float = 1.0,
) -> tuple[float, str, bool]:
    """Return what bounds a point, the name of that bound, and whether the point has a bar.

    Parameters
    ----------
    port : float
        Limit of the port.
    bundles : float
        Limit of the control queue, which takes a bundle a cycle: more of them than row beats are
        there where rows have one beat and bags are empty.
    beats : int
        Of a row.
    row_share : float
        Bytes of a row over those of its beats.
    outstanding, latency_cycles : int
        Rows in flight; cycles from a read to its data.
    sink_share : float
        Cycles in which the sink takes a beat, over all.

    Examples
    --------
    >>> bound = {"port": 0.94, "bundles": 1.0, "beats": 1, "row_share": 1.0, "latency_cycles": 100}
    >>> limit_of(outstanding=128, **bound)
    (0.94, 'port', True)
    >>> limit_of(outstanding=56, **bound)
    (0.5, 'reads in flight', False)
    """
    round_trip = latency_cycles + OVERHEAD_CYCLES
    has_bar = outstanding * beats >= round_trip
    bounds = {"port": port, "bundles": bundles, "sink": sink_share * row_share}
    if not has_bar:
        bounds["reads in flight"] = outstanding * beats * row_share / round_trip
    name = min(bounds, key=bounds.__getitem__)
    return bounds[name], name, has_bar
