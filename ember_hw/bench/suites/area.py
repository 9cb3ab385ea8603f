"""Cells and clock frequency of the access unit on an ECP5, by yosys and nextpnr.

The unit has two streams a traversal unit, two row entries, 4 exports, 2 scalars a bundle and 32-bit
addresses; some have a reduce unit, whose LUT4 are those that they take beyond the same unit without
one. Cells are counted without the wrapper of shift registers that stands in for pins; for place and
route both are there. Fmax is the best of up to three seeds, each of which is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ember_hw.bench.area import ecp5
from ember_hw.bench.area.blocks import Modules, count_by_block, owners
from ember_hw.bench.area.wrapper import TOP_NAME
from ember_hw.bench.presets import unit
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.config import AcceleratorConfig
from ember_hw.host.backends.verilog import cached_verilog
from ember_hw.rtl.emit_verilog import TOP_NAME as UNIT_NAME

#: Cells of the ECP5 by the name that results give them.
CELLS = {
    "LUT4": "LUT4",
    "FF": "TRELLIS_FF",
    "EBR": "DP16KD",
    "DSP": "MULT18X18D",
    "DPR16X4": "TRELLIS_DPR16X4",
    "CCU2C": "CCU2C",
}
LEAST_MHZ = 100.0
SEEDS = 3
#: Most cells that one more traversal unit may take.
STEP_BARS = {"LUT4": 3_000, "FF": 4_500}
#: Most LUT4 that the reduce unit may take, by the bits of the memory port.
REDUCE_BARS = {128: 5_000, 512: 16_000}
#: Choices of a reduce unit that has nothing that it need not have.
PLAIN: dict[str, int | str] = {
    "results": "stream",
    "reduce_lanes": 0,
    "int8_rows": 0,
    "reduce_dot": 0,
}


@dataclass(frozen=True)
class Point:
    """A unit to measure.

    Attributes
    ----------
    config : AcceleratorConfig
        The unit.
    most_lut4 : int or None
        Bar of its LUT4.
    is_routed : bool
        Whether it is placed and routed too.
    is_step : bool
        Whether it is told what it takes beyond the point before it.
    """

    config: AcceleratorConfig
    most_lut4: int | None = None
    is_routed: bool = False
    is_step: bool = False


#: What a name says of a parameter in place of its value.
_KINDS = {"reduce_dot": "sums across", "reduce_lanes": "{} lanes", "int8_rows": "int8 rows"}


def reducing(config: AcceleratorConfig, **changes: int | str) -> AcceleratorConfig:
    """Return a unit with a reduce unit, and what is different in that."""
    kinds = [_KINDS.get(key, str(value)).format(value) for key, value in changes.items()]
    name = ", ".join([config.name, "reduce", *kinds])
    return config.with_changes(name=name, execute="reduce", **changes)


POINTS = (
    Point(unit(128, 64), most_lut4=7_500, is_routed=True),
    Point(reducing(unit(128, 64)), is_routed=True),
    Point(reducing(unit(128, 64), results="memory")),
    Point(reducing(unit(128, 64), reduce_lanes=8)),
    Point(reducing(unit(128, 64), int8_rows=1)),
    Point(reducing(unit(128, 64), reduce_lanes=16, int8_rows=1)),
    Point(reducing(unit(128, 64), reduce_dot=1)),
    Point(unit(128, 64, 3), is_step=True),
    Point(unit(128, 64, 4), is_step=True),
    Point(unit(512, 128), most_lut4=11_000, is_routed=True),
    Point(reducing(unit(512, 128))),
    Point(unit(512, 128, 3), is_step=True),
    Point(unit(512, 128, 4), is_step=True, is_routed=True),
    Point(unit(128, 128, 4)),
)


def run(job: Job) -> Iterator[Row]:
    """Measure every unit that the job wants; a quick one ends with the first one's synthesis."""
    before: Counter[str] | None = None
    # Of units without a reduce unit.
    plain: dict[AcceleratorConfig, Counter[str]] = {}
    for point in POINTS[:1] if job.quick else POINTS:
        name = point.config.name
        # A step needs the cells of the point before it.
        if not job.wants(name):
            before = None
            continue
        job.watcher(f"area: {name}: synthesis")
        verilog = cached_verilog(point.config, job.watcher.detail)
        synthesis = ecp5.synthesise(verilog, UNIT_NAME, job.watcher.detail)
        cells = count(synthesis.netlist(UNIT_NAME))
        facts = _facts(point.config)
        yield from cell_rows(point, cells, count(synthesis.netlist(TOP_NAME)), facts)
        yield from block_rows(name, synthesis)
        if point.config.execute == "reduce":
            without = plain.get(_without_name(point.config))
            if without is not None:
                yield reduce_row(point, cells["LUT4"] - without["LUT4"], facts)
        else:
            plain[_without_name(point.config)] = cells
            if point.is_step and before is not None:
                yield from step_rows(name, cells - before, facts)
            before = cells
        if point.is_routed and not job.quick:
            yield route_row(job, name, synthesis, facts)


def _without_name(config: AcceleratorConfig) -> AcceleratorConfig:
    """Return the same unit without a name and without a reduce unit."""
    return config.with_changes(name="", execute="queues", **PLAIN)


def _facts(config: AcceleratorConfig) -> dict[str, Any]:
    parameters = {key: value for key, value in config.to_dict().items() if key != "name"}
    return {"device": ecp5.DEVICE, **ecp5.tool_versions(), **parameters}


def count(netlist: dict[str, Any]) -> Counter[str]:
    """Count the cells of a netlist by the names in `CELLS`."""
    types = Counter(cell["type"] for cell in netlist["cells"].values())
    return Counter({name: types[cell] for name, cell in CELLS.items()})


def cell_rows(
    point: Point, cells: Counter[str], wrapper: Counter[str], facts: dict[str, Any]
) -> Iterator[Row]:
    """Return a row for each kind of cell; what the wrapper takes besides is in its `params`."""
    for metric in CELLS:
        bar = point.most_lut4 if metric == "LUT4" else None
        yield Row(
            workload=point.config.name,
            metric=metric,
            value=cells[metric],
            unit="cells",
            params={**facts, "wrapper_cells": wrapper[metric]},
            reference_name=None if bar is None else "most allowed",
            reference=bar,
            is_smaller_better=True,
            bar=None if bar is None else 1.0,
        )


def step_rows(name: str, step: Counter[str], facts: dict[str, Any]) -> Iterator[Row]:
    """Return what the last traversal unit of a config takes."""
    for metric, most in STEP_BARS.items():
        yield Row(
            workload=name,
            metric=f"{metric} of the last level",
            value=step[metric],
            unit="cells",
            params=facts,
            reference_name="most allowed",
            reference=most,
            is_smaller_better=True,
            # The bars are stated for a port of 128 bits.
            bar=1.0 if facts["data_width_bits"] == 128 else None,
        )


def reduce_row(point: Point, lut4: int, facts: dict[str, Any]) -> Row:
    """Return the LUT4 that a reduce unit takes; the bar is that of one with nothing to choose."""
    most = REDUCE_BARS[point.config.data_width_bits]
    is_plain = point.config == point.config.with_changes(**PLAIN)
    return Row(
        workload=point.config.name,
        metric="LUT4 of the reduce unit",
        value=lut4,
        unit="cells",
        params=facts,
        reference_name="most allowed",
        reference=most,
        is_smaller_better=True,
        bar=1.0 if is_plain else None,
    )


def block_rows(name: str, synthesis: ecp5.Synthesis, depth: int = 4) -> Iterator[Row]:
    """Return LUT4 and FF of each block.

    A look-up table belongs to the block of what it feeds; where blocks share one, that is a choice.

    Parameters
    ----------
    name : str
        Of the unit.
    synthesis : Synthesis
        The unit's cells.
    depth : int
        Parts of a block's path that are told apart, from the Verilog's top on.
    """
    netlist = synthesis.netlist(UNIT_NAME)
    modules = Modules(synthesis.verilog, ecp5.VERILOG_NAME)
    counts = count_by_block(netlist, owners(netlist, modules, UNIT_NAME), depth)
    for block, types in sorted(counts.items()):
        for metric in ("LUT4", "FF"):
            yield Row(
                workload=f"{name}: {block.removeprefix(f'{UNIT_NAME}.unit.')}",
                metric=f"{metric} of block",
                value=types[CELLS[metric]],
                unit="cells",
                params={key: types[cell] for key, cell in CELLS.items()},
            )


def route_row(job: Job, name: str, synthesis: ecp5.Synthesis, facts: dict[str, Any]) -> Row:
    """Place and route with one seed after the other, until one is fast enough or all are used."""
    routes: dict[int, ecp5.Route] = {}
    for seed in range(job.seed + 1, job.seed + 1 + SEEDS):
        job.watcher(f"area: {name}: place and route, seed {seed}")
        routes[seed] = ecp5.route(synthesis, seed, job.watcher.detail)
        if routes[seed].fmax_mhz >= LEAST_MHZ:
            break
    best = max(routes, key=lambda seed: routes[seed].fmax_mhz)
    return Row(
        workload=name,
        metric="Fmax",
        value=routes[best].fmax_mhz,
        unit="MHz",
        params={
            **facts,
            "seed": best,
            "fmax_by_seed": {str(seed): one.fmax_mhz for seed, one in routes.items()},
            "critical_path": list(routes[best].critical_path),
        },
        reference_name="least allowed",
        reference=LEAST_MHZ,
        bar=1.0,
    )
