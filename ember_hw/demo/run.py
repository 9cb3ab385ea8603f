"""The demo: compiles an `EmbeddingBag`, runs MovieLens-100K through it in Verilator, checks it.

Each user's films are one bag, summed from a seeded table. Every pooled row must equal the exact
reference bit for bit, and torch's within the rounding of both. With `execute="fabric"` the bags run
twice, on a unit whose rows go to the host and on its twin with a reduce unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

import ember_hw
from ember_hw.compiler.program import Program
from ember_hw.config import AcceleratorConfig
from ember_hw.demo import movielens
from ember_hw.host.reference import count_mismatches, error_bound, exact
from ember_hw.host.report import Report
from ember_hw.host.request import LookupRequest, normalise_request

EMBEDDING_DIM = 64
ROW_BYTES = 4 * EMBEDDING_DIM


class Watcher(Protocol):
    """Who is told how far the demo is."""

    def __call__(self, text: str) -> None:
        """Take note that a step begins."""

    def detail(self, text: str) -> None:
        """Take note of what the step does next."""

    def reached(self, done: int, total: int | None, cycles: int | None) -> None:
        """Take note of the lookups done, those in all, and the cycles that they took."""


@dataclass(frozen=True)
class DemoResult:
    """What the demo found.

    Attributes
    ----------
    bags : int
        Users.
    mismatches : int
        Pooled rows that differ from the exact reference in any bit.
    torch_mismatches : int
        Pooled rows that differ from torch's by more than rounding explains.
    torch_max_error : float
        Largest difference from torch.
    opt_level : int
        Of the compiler.
    microcode_words : int
        32-bit words of the program.
    ir_lines : mapping of str to int
        Lines of IR text of each level.
    capacities : mapping of str to int
        Entries of the queues whose high-water marks the report gives, by the same names.
    report : Report
        The device's report of the run; it holds the seed of the table.
    host_report : Report, optional
        With `execute="fabric"`: that of the same bags whose rows the host pooled.
    """

    bags: int
    mismatches: int
    torch_mismatches: int
    torch_max_error: float
    opt_level: int
    microcode_words: int
    ir_lines: Mapping[str, int]
    capacities: Mapping[str, int]
    report: Report
    host_report: Report | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the access unit sent one row for each lookup, no more and no less."""
        return self.report.useful_bytes == movielens.RATINGS * ROW_BYTES

    @property
    def is_right(self) -> bool:
        """Whether every lookup was made and every pooled row is right."""
        return self.is_complete and self.mismatches == 0 and self.torch_mismatches == 0

    def to_dict(self) -> dict[str, Any]:
        """Return the report's values and the demo's own, JSON-ready."""
        own = {"workload": "movielens-100k", "simulated": True, "is_right": self.is_right}
        reports = ("report", "host_report")
        own |= {
            one.name: getattr(self, one.name) for one in fields(self) if one.name not in reports
        }
        host = self.host_report
        return self.report.to_dict() | own | ({} if host is None else {"host": host.to_dict()})


def run(
    watcher: Watcher,
    *,
    seed: int = 0,
    opt_level: int = 3,
    memory: Any = "ideal",
    sink: Any = "ideal",
    execute: str = "host",
) -> DemoResult:
    """Run the demo.

    Parameters
    ----------
    watcher : Watcher
        Told how far it is.
    seed : int
        Seed of the table's values.
    opt_level : int
        Of the compiler, 0 to 3.
    memory, sink
        As `open_device` takes them.
    execute : "host" or "fabric"
        What pools the rows. With "fabric" the host does so first, for comparison.

    Returns
    -------
    DemoResult
        Wrong results are counted in it, not raised.

    Raises
    ------
    ValueError
        There is no memory or sink of that name, or nothing that executes.
    ToolError
        The data can't be downloaded, or the model can't be built.
    DeviceError
        The access unit stopped on a fault, or lost a lookup.
    """
    if execute not in ("host", "fabric"):
        raise ValueError(f"execute must be 'host' or 'fabric', not {execute!r}")
    config = AcceleratorConfig.preset("default")
    passes: list[_Pass] = []
    for reduces in (False, True) if execute == "fabric" else (False,):
        if reduces:
            config = config.with_changes(name="default with a reduce unit", execute="reduce")
        passes.append(_run_once(watcher, config, seed, opt_level, memory, sink))
    host, last = passes[0], passes[-1]
    bags, table, bag, inputs, program, pooled, report = last

    watcher("checking every pooled row")
    request = normalise_request(bags.indices, bags.offsets, num_embeddings=movielens.NUM_EMBEDDINGS)
    expected = exact(table, request)
    mismatches = sum(count_mismatches(one.pooled, expected) for one in passes)
    with torch.no_grad():
        second_opinion = bag(*inputs).numpy()
    torch_mismatches, torch_max_error = compare_with_torch(pooled, second_opinion, table, request)
    return DemoResult(
        bags=request.num_bags,
        mismatches=mismatches,
        torch_mismatches=torch_mismatches,
        torch_max_error=torch_max_error,
        opt_level=program.opt_level,
        microcode_words=program.microcode_words,
        ir_lines={level: len(text.splitlines()) for level, text in program.ir.items()},
        capacities={
            "bundles": config.bundle_entries,
            "row_beats": config.reorder_buffer_beats,
            "outstanding": config.outstanding_reads,
            "tokens": config.token_entries,
        },
        report=report,
        host_report=host.report if execute == "fabric" else None,
    )


class _Pass(NamedTuple):
    """One run of the bags."""

    bags: movielens.Bags
    table: NDArray[np.float32]
    module: torch.nn.EmbeddingBag
    inputs: tuple[torch.Tensor, torch.Tensor]
    program: Program
    pooled: NDArray[np.float32]
    report: Report


def _run_once(
    watcher: Watcher, config: AcceleratorConfig, seed: int, opt_level: int, memory: Any, sink: Any
) -> _Pass:
    """Compile the bags for a unit and run them on it."""
    unit = "access unit" if config.execute == "queues" else "access unit with a reduce unit"
    watcher(f"opening the simulated {unit} (its model is built once on a machine)")
    with ember_hw.open_device(
        "verilator", config=config, memory=memory, sink=sink, progress=watcher.detail
    ) as device:
        watcher("reading MovieLens-100K")
        bags = movielens.load()
        table = make_table(seed)
        bag = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(table), mode="sum")
        inputs = (torch.from_numpy(bags.indices), torch.from_numpy(bags.offsets))

        watcher("compiling the EmbeddingBag")
        chosen: dict[str, Any] = {"execute": "fabric"} if config.execute == "reduce" else {}
        program = ember_hw.compile(bag, inputs, opt_level=opt_level, config=config, **chosen)
        program = replace(program, seed=seed)

        watcher(f"running {len(bags.indices):,} lookups")
        pooled = np.asarray(device.run(program, inputs, progress=watcher.reached))
        report = device.report
    assert (pooled.shape, pooled.dtype) == ((movielens.USERS, EMBEDDING_DIM), np.float32)
    return _Pass(bags, table, bag, inputs, program, pooled, report)


def make_table(seed: int) -> NDArray[np.float32]:
    """Return the seeded table, float32 (1683, 64), normally distributed."""
    shape = (movielens.NUM_EMBEDDINGS, EMBEDDING_DIM)
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def compare_with_torch(
    pooled: NDArray[np.float32],
    second_opinion: NDArray[np.float32],
    table: NDArray[np.float32],
    request: LookupRequest,
) -> tuple[int, float]:
    """Count the rows that differ from torch's by more than rounding; find the largest difference.

    torch sums in an order of its own. Each sum is within `error_bound` of the true one whatever its
    order, so two of them are within twice that of each other.

    Returns
    -------
    tuple of int and float
        Rows beyond the bound; largest absolute difference of any element.
    """
    difference = np.abs(pooled.astype(np.float64) - second_opinion)
    beyond = ~(difference <= 2 * error_bound(table, request))  # a NaN is beyond
    return int(beyond.any(axis=1).sum()), float(difference.max())


def describe(result: DemoResult) -> str:
    """Return the result as text: the program, the device's report, the verdict."""
    lost = "" if result.is_complete else "; ROWS LOST OR REPEATED"
    lines = {
        "bags": f"{result.bags:,} users of MovieLens-100K, one row of {ROW_BYTES} bytes a film",
        "levels (lines of text)": ", ".join(f"{k} {v}" for k, v in result.ir_lines.items()),
        "opt level": f"{result.opt_level}",
        "microcode": f"{result.microcode_words} words of 32 bits",
    }
    checks = {
        "exact reference": f"{result.mismatches} of {result.bags} bags differ in any bit{lost}",
        "torch": f"{result.torch_mismatches} of {result.bags} bags differ by more than rounding; "
        f"largest difference {result.torch_max_error:.2e}",
        "verdict": "right (simulated)" if result.is_right else "WRONG",
    }
    if result.host_report is not None:
        checks |= _both_ways(result.host_report, result.report)
    before, after = (
        "\n".join(f"{name:<24}{value}" for name, value in part.items()) for part in (lines, checks)
    )
    return f"{before}\n{result.report}\n{after}"


def _both_ways(host: Report, fabric: Report) -> dict[str, str]:
    """Return what left the chip, and how long it took, with the host and with the reduce unit."""
    lines = {
        f"{name} pools": f"{report.leaving_bytes:,} bytes leave in {report.cycles:,} cycles"
        for name, report in (("host", host), ("fabric", fabric))
    }
    fewer = (host.leaving_bytes or 0) / max(fabric.leaving_bytes or 0, 1)
    return {**lines, "bytes that leave": f"{fewer:.1f} times fewer with the fabric"}
