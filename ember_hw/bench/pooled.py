"""Compiled programs on simulated units with and without a reduce unit, answers compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ember_hw.bench.bags import port_limit
from ember_hw.bench.programs import draw
from ember_hw.bench.simulated import STEADY
from ember_hw.bench.workloads.case import Case, Sizes
from ember_hw.compiler import compile_function
from ember_hw.compiler.program import Program
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host.backends.verilator import Backend
from ember_hw.host.device import Device
from ember_hw.host.execution import Chunk
from ember_hw.host.launch import Launch
from ember_hw.host.reference import bit_equal
from ember_hw.host.report import Report

__all__ = ["Operation", "Pair", "Run", "bags_of", "limit_of", "of_case"]

_OPT_LEVEL = 3
_TABLE_BYTES = 1 << 20


@dataclass(frozen=True)
class Operation:
    """What both units run.

    Attributes
    ----------
    name : str
        What results call it.
    compiled : callable of config
        Its program for a unit.
    inputs : mapping or tuple
        Of a run, as `Device.run` takes them.
    params : mapping of str to JSON values
        What a row of results says of it.
    lookups, groups : int
        Rows that are looked up, and results that they are pooled to.
    """

    name: str
    compiled: Callable[[AcceleratorConfig], Program]
    inputs: Any
    params: Mapping[str, Any]
    lookups: int
    groups: int


def of_case(case: Case) -> Operation:
    """Return a case of the suites `hand` and `ablation` as a function with its tables."""
    is_table = {symbol: array.ndim == 2 for symbol, array in case.arrays.items()}
    tables = {symbol: array for symbol, array in case.arrays.items() if is_table[symbol]}
    vectors = {symbol: array for symbol, array in case.arrays.items() if not is_table[symbol]}
    outputs = {symbol: np.zeros(shape, np.float32) for symbol, shape in case.outputs.items()}

    def compiled(config: AcceleratorConfig) -> Program:
        return compile_function(
            case.text, opt_level=_OPT_LEVEL, config=config, tables=tables, name=case.name
        )

    inputs = {**vectors, **outputs, **case.values}
    return Operation(
        case.name, compiled, inputs, case.params, case.sizes.lookups, case.sizes.groups
    )


def bags_of(row_bytes: int, bag: int, *, is_weighted: bool, lookups: int, seed: int) -> Case:
    """Return bags of one table, of one length, with weights or without.

    Parameters
    ----------
    row_bytes : int
        Bytes of a row.
    bag : int
        Lookups of each bag.
    is_weighted : bool
        Whether each lookup has a weight.
    lookups : int
        About how many.
    seed : int
        Of rows and indices. No number is a denormal.
    """
    rng = np.random.default_rng([seed, row_bytes, bag])
    dim, bags = row_bytes // 4, -(-lookups // bag)
    table = rng.standard_normal((_TABLE_BYTES // row_bytes, dim), np.float32)
    offsets = draw.offsets(np.full(bags, bag))
    indices = draw.indices(rng, len(table), bags * bag)
    sizes = Sizes(lookups=bags * bag, groups=bags, dim=dim)
    weights = ", weights" if is_weighted else ""
    limit = {"row_bytes": row_bytes, "index_bytes": 4, "offset_bytes": 4, "bag": bag}
    limit["weight_bytes"] = 4 * is_weighted
    shared: dict[str, Any] = {
        "name": f"{row_bytes} B/bag {bag}{weights}",
        "family": "bags",
        "rows": table[indices].view(np.uint8),
        "outputs": {"out": (bags, dim)},
        "sizes": sizes,
        "params": {**limit, "lookups": bags * bag},
    }
    if is_weighted:
        values = rng.standard_normal(len(indices), np.float32)
        arrays = {"ptr": offsets, "col": indices, "val": values, "x": table}
        return Case(kernel="spmm", arrays=arrays, values={"N": bags}, **shared)
    arrays = {"base": np.zeros(1, np.int32), "off": offsets, "idx": indices, "tab": table}
    return Case(kernel="tables", arrays=arrays, values={"T": 1, "B": bags}, **shared)


@dataclass(frozen=True)
class Run:
    """A run of one unit.

    Attributes
    ----------
    report : Report
        Of the device.
    outputs : tuple of array
        What it gave.
    ends : uint64 (R,)
        Cycle in which each row or result had left.
    """

    report: Report
    outputs: tuple[NDArray[Any], ...]
    ends: NDArray[np.uint64]

    def utilisation(self, pooled: int, *, together: int = 1) -> float:
        """Return the useful bytes of rows over cycles x bus bytes in the steady state.

        Parameters
        ----------
        pooled : int
            Rows of each result.
        together : int
            Results that leave at once, as those do that share a burst of writes: the steady state
            begins and ends with the last of so many.
        """
        first, last = (
            (int(share * len(self.ends)) // together + 1) * together - 1 for share in STEADY
        )
        cycles = int(self.ends[last]) - int(self.ends[first])
        row_bytes = (self.report.useful_bytes or 0) / (self.report.rows or 1)
        return (last - first) * pooled * row_bytes / (cycles * self.report.bus_bytes)


class _Recorder:
    """A backend that keeps the cycle of each row's last beat."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.config, self.memory, self.sink = backend.config, backend.memory, backend.sink
        self.cycles: int | None = None
        self.ends: list[NDArray[np.uint64]] = []

    def execute(self, launch: Launch) -> Iterator[Chunk]:
        """Run a launch."""
        for chunk in self._backend.execute(launch):
            assert chunk.row_cycles is not None, "the simulation stamps every beat"
            self.ends.append(chunk.row_cycles[chunk.row_last.astype(np.bool_)])
            self.cycles = self._backend.cycles
            yield chunk

    def facts(self) -> dict[str, Any]:
        """Return what the unit counted."""
        return self._backend.facts()

    def sample(self) -> None:
        """Return None: no profile is wanted."""

    def close(self) -> None:
        """Free the model."""
        self._backend.close()


class Unit:
    """A simulated unit that runs operations.

    Parameters
    ----------
    config : AcceleratorConfig
        The unit.
    sink, memory, optimise, progress
        As the backend takes them.
    """

    def __init__(self, config: AcceleratorConfig, **options: Any) -> None:
        self._recorder = _Recorder(Backend(config, **options))
        self._device = Device("verilator", self._recorder)
        self.config = config
        self.memory, self.sink = self._recorder.memory, self._recorder.sink

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._device.close()

    def run(self, operation: Operation) -> Run:
        """Compile and run an operation."""
        return self.run_program(operation.compiled(self.config), operation.inputs)

    def run_program(self, program: Program, inputs: Any) -> Run:
        """Run a program."""
        self._recorder.ends.clear()
        found = self._device.run(program, inputs)
        self._device.unload(program)
        outputs = found if isinstance(found, tuple) else (found,)
        arrays = tuple(np.asarray(output) for output in outputs)
        ends = np.concatenate([np.zeros(0, np.uint64), *self._recorder.ends])
        return Run(self._device.report, arrays, ends)


class Pair:
    """A unit with a reduce unit, and its twin whose queues are drained by the host.

    Parameters
    ----------
    base : AcceleratorConfig
        The twin.
    sinks : sequence of str
        What drains the twin's queues, one after the other.
    results : "stream" or "memory"
        Where the reduce unit's results go.
    reduce_dot : int
        Whether it sums across rows.
    options
        As `Unit` takes them.
    """

    def __init__(
        self,
        base: AcceleratorConfig,
        sinks: tuple[str, ...],
        *,
        results: str = "stream",
        reduce_dot: int = 0,
        **options: Any,
    ) -> None:
        name = f"{base.name}, reduce" + ("" if results == "stream" else f", results in {results}")
        name += ", sums across" if reduce_dot else ""
        reduces = base.with_changes(
            name=name, execute="reduce", results=results, reduce_dot=reduce_dot
        )
        self.fabric = Unit(reduces, **options)
        self.host = {sink: Unit(base, sink=sink, **options) for sink in sinks}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for unit in (self.fabric, *self.host.values()):
            unit.__exit__()

    def run(self, operation: Operation) -> tuple[Run, dict[str, Run]]:
        """Run an operation on each; return the run with the reduce unit, and the others by sink.

        Raises
        ------
        DeviceError
            Two answers differ in a bit.
        """
        fabric = self.fabric.run(operation)
        host = {sink: unit.run(operation) for sink, unit in self.host.items()}
        for sink, run in host.items():
            for one, other in zip(fabric.outputs, run.outputs, strict=True):
                if not bit_equal(one, other):
                    raise DeviceError(
                        f"results of {operation.name!r} must be those of the host with the {sink} "
                        "sink bit for bit, and aren't"
                    )
        return fabric, host


def limit_of(params: Mapping[str, Any], config: AcceleratorConfig) -> float:
    """Return the limit of a port that carries the rows and indices of `bags_of`."""
    names = ("row_bytes", "index_bytes", "weight_bytes", "offset_bytes", "bag")
    return port_limit(bus_bytes=config.bus_bytes, **{name: params[name] for name in names})
