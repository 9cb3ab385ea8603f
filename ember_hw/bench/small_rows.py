"""Bags of small numbers and of codes on units with lanes for whole beats of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

import ember_hw
from ember_hw.bench.bags import port_limit
from ember_hw.bench.pooled import Operation, Run, Unit
from ember_hw.bench.presets import unit
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host.reference import bit_equal
from ember_hw.sim.options import IdealMemory

__all__ = ["POINTS", "SmallBags", "reducing_units", "small_rows"]

#: Least share of the port's limit.
NO_LOST_BEAT = 0.98
_WIDTH_BITS = 128
_TABLE_ROWS = 4096
_LOOKUPS = 4000
_LATENCY_CYCLES = 100
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class SmallBags:
    """Bags of one length over one table.

    Attributes
    ----------
    format : str
        bf16, fp16 or int8, the last with a scale and a bias of fp32.
    columns : int
        Numbers of a row.
    bag : int
        Lookups of each bag.
    has_bar : bool
        Whether rows are long enough for the adders.
    """

    format: str
    columns: int
    bag: int
    has_bar: bool = True

    @property
    def name(self) -> str:
        """What results call it."""
        return f"small rows/{self.columns} of {self.format}/bag {self.bag}"

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, scale and bias included."""
        return 8 + self.columns if self.format == "int8" else 2 * self.columns

    def operation(self, seed: int) -> Operation:
        """Return the bags as an operation; no number is a denormal."""
        rng = np.random.default_rng([seed, self.columns, self.bag])
        numbers = rng.standard_normal((_TABLE_ROWS, self.columns), np.float32)
        table = torch.from_numpy(numbers).to(_DTYPES.get(self.format, torch.float32))
        module = torch.nn.EmbeddingBag.from_pretrained(table, mode="sum")
        bags = -(-_LOOKUPS // self.bag)
        indices = rng.integers(0, _TABLE_ROWS, bags * self.bag, np.int32)
        offsets = np.arange(0, bags * self.bag, self.bag, dtype=np.int32)
        inputs = (torch.from_numpy(indices), torch.from_numpy(offsets))
        tables: Any = {"weight": "int8"} if self.format == "int8" else None

        def compiled(config: AcceleratorConfig) -> Any:
            return ember_hw.compile(
                module,
                inputs,
                config=config,
                tables=tables,
                output_dtype="float32",
                execute="fabric",
            )

        params = {"format": self.format, "columns": self.columns, "bag": self.bag}
        return Operation(self.name, compiled, inputs, params, len(indices), bags)


#: Rows of 4 beats and more, but for the last: 40 bytes of codes are 3 beats, which are 2 groups.
POINTS = (
    *(
        SmallBags(format, columns, bag)
        for format in _DTYPES
        for columns in (32, 64, 256)
        for bag in (8, 80)
    ),
    *(SmallBags("int8", columns, bag) for columns in (64, 120, 256) for bag in (8, 80)),
    SmallBags("int8", 32, 8, has_bar=False),
)


def reducing_units() -> dict[str, AcceleratorConfig]:
    """Return the unit that takes a beat of each format a cycle."""
    base = unit(_WIDTH_BITS, 128)
    small = base.with_changes(
        name=f"{base.name}, reduce, 8 lanes", execute="reduce", reduce_lanes=8
    )
    codes = base.with_changes(
        **{"name": f"{base.name}, reduce, 16 lanes", "execute": "reduce"},
        **{"reduce_lanes": 16, "int8_rows": 1},
    )
    return {"bf16": small, "fp16": small, "int8": codes}


def small_rows(job: Job) -> Iterator[Row]:
    """Measure the bags that the job wants; a quick one measures one shape of bf16."""
    points = [point for point in (POINTS[:1] if job.quick else POINTS) if job.wants(point.name)]
    configs = reducing_units()
    for config in dict.fromkeys(configs.values()):
        mine = [point for point in points if configs[point.format] is config]
        if not mine:
            continue
        job.watcher(f"execute: {len(mine)} shapes of bags, {config.name}")
        memory = IdealMemory(latency_cycles=_LATENCY_CYCLES)
        progress = job.watcher.detail
        with Unit(config, memory=memory, optimise=not job.quick, progress=progress) as simulated:
            for done, point in enumerate(mine):
                operation = point.operation(job.seed)
                yield row_of(point, config, checked(simulated, operation))
                job.watcher.reached(done + 1, len(mine), None)


class Simulated(Protocol):
    """What runs an operation."""

    config: AcceleratorConfig

    def run(self, operation: Operation) -> Run:
        """Compile and run it."""
        ...


def checked(simulated: Simulated, operation: Operation) -> Run:
    """Run an operation; its results must be those of the interpreter.

    Raises
    ------
    DeviceError
        They aren't.
    """
    run = simulated.run(operation)
    with ember_hw.open_device("interpreter", config=simulated.config) as device:
        expected = device.run(operation.compiled(simulated.config), operation.inputs)
    if not bit_equal(run.outputs[0], np.asarray(expected)):
        raise DeviceError(
            f"results of {operation.name!r} must be the interpreter's bit for bit, and aren't"
        )
    return run


def row_of(point: SmallBags, config: AcceleratorConfig, run: Run) -> Row:
    """Return the share of the port that the rows of a run had."""
    sizes = {"row_bytes": point.row_bytes, "index_bytes": 4, "weight_bytes": 0, "offset_bytes": 4}
    return Row(
        workload=point.name,
        metric="no lost beat" if point.has_bar else "short rows",
        value=run.utilisation(point.bag),
        unit="1",
        params={
            **sizes,
            **{"columns": point.columns, "format": point.format, "bag": point.bag},
            **{"bus_bytes": config.bus_bytes, "cycles": run.report.cycles, "lanes": config.lanes},
        },
        reference_name="port",
        reference=port_limit(bus_bytes=config.bus_bytes, bag=point.bag, **sizes),
        bar=NO_LOST_BEAT if point.has_bar else None,
    )
