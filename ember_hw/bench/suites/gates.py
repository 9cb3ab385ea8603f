"""The netlist of the access unit against its RTL: EmbeddingBags, every beat of both queues.

Synthesis for an ECP5 maps the unit to cells; their models make Verilog of it again, which the same
simulation runs. Bundles, rows, the cycle of each row and the number of cycles must be the RTL's,
and the pooled rows those of the exact reference. Registers and memories of the netlist begin with
random values, other ones for each seed, so that nothing may depend on what they hold before the
reset.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import ember_hw
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.bench.simulated import copied, joined
from ember_hw.boards.gate_level import gate_level_verilog
from ember_hw.compiler.program import Program
from ember_hw.config import AcceleratorConfig
from ember_hw.host.backends.verilator import Backend
from ember_hw.host.backends.verilog import cached_verilog
from ember_hw.host.bindings import binding_of
from ember_hw.host.device import Device
from ember_hw.host.launch import LoadedProgram
from ember_hw.host.reference import bit_equal
from ember_hw.sim.options import IdealMemory

CONFIG = AcceleratorConfig.preset("tiny")
OPT_LEVELS = (0, 1, 2, 3)
#: Of the values that registers have before the reset.
SEEDS = (1, 2, 3)
MODES = ("sum", "mean", "max", "weighted")
_ROWS, _COLUMNS = 40, 5
_BAGS, _MOST_LOOKUPS = 40, 9
_MEMORY = IdealMemory(latency_cycles=13)


class Beats(NamedTuple):
    """What left the queues, in order, and the cycles that it took."""

    events: NDArray[np.uint32]
    scalars: NDArray[np.uint32]
    row_beats: NDArray[np.uint8]
    row_last: NDArray[np.bool_]
    row_cycles: NDArray[np.uint64]  # from the first row's on
    cycles: int

    def differing(self, other: Beats) -> list[str]:
        """Return the names of what isn't the same in both."""
        return [
            name
            for name, mine, its in zip(self._fields, self, other, strict=True)
            if not np.array_equal(mine, its)
        ]


def run(job: Job) -> Iterator[Row]:
    """Compare every opt level, mode and seed; a quick job takes one of each."""
    levels, modes, seeds = OPT_LEVELS, MODES, SEEDS
    if job.quick:
        levels, modes, seeds = (3,), ("weighted",), (1,)
    names = [name for name in modes if job.wants(name)]
    if not names:
        return
    job.watcher("gates: synthesis")
    rtl = cached_verilog(CONFIG, job.watcher.detail)
    netlist = gate_level_verilog(rtl, progress=job.watcher.detail)
    job.watcher("gates: building the simulation of the netlist")
    with ExitStack() as stack:
        backends = {
            (what, seed): stack.enter_context(
                closing(
                    Backend(
                        CONFIG,
                        memory=_MEMORY,
                        seed=seed,
                        optimise=False,
                        verilog=text,
                        progress=job.watcher.detail,
                    )
                )
            )
            for what, text in (("RTL", rtl), ("netlist", netlist))
            for seed in (seeds if what == "netlist" else seeds[:1])
        }
        job.watcher(f"gates: {len(names)} modes")
        for mode in names:
            yield _row(job, mode, levels, seeds, backends)


def _row(
    job: Job,
    mode: str,
    levels: tuple[int, ...],
    seeds: tuple[int, ...],
    backends: dict[tuple[str, int], Backend],
) -> Row:
    runs, same = 0, 0
    failures: list[str] = []
    cycles = 0
    for level in levels:
        program, inputs = _program(mode, level, job.seed)
        expected = np.asarray(binding_of(program).reference(program, inputs))
        wanted = beats_of(backends["RTL", seeds[0]], program, inputs)
        cycles += wanted.cycles
        for seed in seeds:
            backend = backends["netlist", seed]
            differing = wanted.differing(beats_of(backend, program, inputs))
            pooled = Device("verilator", backend).run(program, inputs)
            if not bit_equal(np.asarray(pooled), expected):
                differing.append("pooled rows")
            runs, same = runs + 1, same + (not differing)
            if differing:
                failures.append(f"opt_level {level}, seed {seed}: {', '.join(differing)}")
    return Row(
        workload=mode,
        metric="runs of the netlist with every beat of the RTL",
        value=same,
        unit="runs",
        params={
            "config": CONFIG.name,
            "opt_levels": list(levels),
            "seeds": list(seeds),
            "cycles": cycles,
            "memory": _MEMORY.describe(),
            "failures": failures,
        },
        reference_name="runs",
        reference=runs,
        bar=1.0,
    )


def beats_of(backend: Backend, program: Program, inputs: tuple[NDArray[np.generic], ...]) -> Beats:
    """Return what leaves the queues while a program of one nest runs."""
    request = binding_of(program).request(program, inputs)
    (launch,) = LoadedProgram(program).launches(request)
    chunks = [copied(chunk) for chunk in backend.execute(launch)]
    cycles = backend.cycles
    assert cycles is not None, "simulated"
    at = joined(chunks, "row_cycles")
    return Beats(
        joined(chunks, "events"),
        joined(chunks, "scalars"),
        joined(chunks, "row_beats"),
        joined(chunks, "row_last"),
        at - at[:1],
        cycles,
    )


def _program(mode: str, level: int, seed: int) -> tuple[Program, tuple[NDArray[np.generic], ...]]:
    """Return an EmbeddingBag and lookups, a quarter of the bags empty."""
    import torch  # slow to import, and not needed to list suites

    random = np.random.default_rng([seed, level])
    lengths = random.integers(1, _MOST_LOOKUPS + 1, _BAGS) * (random.random(_BAGS) > 0.25)
    offsets = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    indices = random.integers(0, _ROWS, int(lengths.sum()))
    table = random.standard_normal((_ROWS, _COLUMNS), np.float32)
    bag = torch.nn.EmbeddingBag.from_pretrained(
        torch.from_numpy(table), mode="sum" if mode == "weighted" else mode
    )
    inputs: tuple[NDArray[np.generic], ...] = indices, offsets
    if mode == "weighted":
        inputs = (*inputs, random.standard_normal(indices.size).astype(np.float32))
    return ember_hw.compile(bag, inputs, config=CONFIG, opt_level=level), inputs
