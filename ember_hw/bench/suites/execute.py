"""The reduce unit against the host: cycles, and the bytes that leave, for the same programs.

Each operation is compiled twice from the same text, for a unit with a reduce unit and for its twin
without; the answers are the same bits. Cycles of the first stand beside those of the twin whose
queues are drained by a sink that never waits, and by a `core-like` one. What can't run in the
fabric runs on the host, its rows pass the reduce unit, and a row of results says why.

`no lost beat`: bags long enough that results don't count, and rows long enough that the adders
don't (`docs/reduce_unit.md`). The value is the useful bytes of rows over cycles x bus bytes between
the results at 10 % and at 90 % of a run, the reference the limit of the port that carries rows and
indices, as in the suite `gather`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

import ember_hw
from ember_hw.bench.pooled import Operation, Pair, Run, bags_of, limit_of, of_case
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.bench.workloads.cases import LATENCY_CYCLES, Makers, cases, unit_of
from ember_hw.config import AcceleratorConfig
from ember_hw.demo import movielens
from ember_hw.demo.run import EMBEDDING_DIM, make_table
from ember_hw.sim.options import IdealMemory

#: Least share of the port's limit.
NO_LOST_BEAT = 0.98
_SINKS = ("ideal", "core-like")
#: Bits of the port; operations are measured on the first. Models of the last are built sooner.
_WIDTHS = (512, 128)
_QUICK_WIDTH = 128
_PREFIXES = ("RM1", "RM2", "RM3", "dlrmv2", "SpMM", "KG", "MP")
_MOVIELENS = "MovieLens-100K"
#: Row bytes whose beats are as many as the adders need, or 32 numbers at 128 bits.
_ROW_BYTES = {512: (256, 512), 128: (128, 256, 512)}
_BAGS = (8, 32, 80)
_LOOKUPS = 4000


def run(job: Job) -> Iterator[Row]:
    """Measure the bags, then the operations."""
    yield from no_lost_beat(job)
    yield from operations(job)


def no_lost_beat(job: Job) -> Iterator[Row]:
    """Measure bags of every length and width that has the bar."""
    for width in (_QUICK_WIDTH,) if job.quick else _WIDTHS:
        points = [
            (row_bytes, bag, is_weighted)
            for row_bytes in (_ROW_BYTES[width][:1] if job.quick else _ROW_BYTES[width])
            for bag in ((8,) if job.quick else _BAGS)
            for is_weighted in (False, True)
        ]
        made = [
            bags_of(row_bytes, bag, is_weighted=weighted, lookups=_LOOKUPS, seed=job.seed)
            for row_bytes, bag, weighted in points
        ]
        wanted = [case for case in made if job.wants(f"{width}-bit/{case.name}")]
        if not wanted:
            continue
        job.watcher(f"execute: {len(wanted)} shapes of bags, {width} bits")
        with _pair(job, unit_of(width), ()) as pair:
            for done, case in enumerate(wanted):
                operation = of_case(case)
                fabric, _ = pair.run(operation)
                yield Row(
                    workload=f"{width}-bit/{case.name}",
                    metric="no lost beat",
                    value=fabric.utilisation(case.params["bag"]),
                    unit="1",
                    params={**case.params, **_facts(pair, fabric)},
                    reference_name="port",
                    reference=limit_of(case.params, pair.fabric.config),
                    bar=NO_LOST_BEAT,
                )
                job.watcher.reached(done + 1, len(wanted), None)


def operations(job: Job) -> Iterator[Row]:
    """Measure the operations of the suite `hand`, and MovieLens."""
    makers: Makers = cases(job.quick)
    names = [name for name in makers if name.split("/")[0] in _PREFIXES and job.wants(name)]
    with_films = job.wants(_MOVIELENS) and not job.quick
    if not names and not with_films:
        return
    width = _QUICK_WIDTH if job.quick else _WIDTHS[0]
    with _pair(job, unit_of(width), _SINKS) as pair:
        job.watcher(f"execute: {len(names) + with_films} operations")
        for done, name in enumerate(names):
            job.watcher.detail(name)
            yield from measure(of_case(makers[name](job.seed)), pair)
            job.watcher.reached(done + 1, len(names), None)
        if with_films:
            yield from measure(films(job.seed), pair)


def films(seed: int) -> Operation:
    """Return the demo's EmbeddingBag: the films of each user of MovieLens-100K are summed."""
    bags = movielens.load()
    table = torch.from_numpy(make_table(seed))
    module = torch.nn.EmbeddingBag.from_pretrained(table, mode="sum")
    inputs = (torch.from_numpy(bags.indices), torch.from_numpy(bags.offsets))

    def compiled(config: AcceleratorConfig) -> Any:
        return ember_hw.compile(module, inputs, config=config)

    params = {"row_bytes": 4 * EMBEDDING_DIM, "lookups": len(bags.indices)}
    return Operation(_MOVIELENS, compiled, inputs, params, len(bags.indices), len(bags.offsets))


def measure(operation: Operation, pair: Pair) -> Iterator[Row]:
    """Run an operation everywhere; yield its cycles and bytes.

    Raises
    ------
    DeviceError
        Two answers differ, or a unit stopped on a fault.
    """
    fabric, host = pair.run(operation)
    params = {**operation.params, **_facts(pair, fabric)}
    is_pooled = params["execute"] == "fabric"
    for sink, run in host.items():
        if sink != _SINKS[0] and not is_pooled:
            continue  # the same rows would wait for the same core behind the reduce unit
        assert fabric.report.cycles is not None
        assert run.report.cycles is not None
        yield Row(
            workload=operation.name,
            metric=f"cycles, reduce beside {sink}",
            value=fabric.report.cycles,
            unit="cycles",
            params=params,
            reference_name=f"host, {sink} sink",
            reference=run.report.cycles,
            is_smaller_better=True,
        )
    rows_bytes = fabric.report.useful_bytes or 0
    assert fabric.report.leaving_bytes is not None
    factor = operation.lookups / operation.groups
    yield Row(
        workload=operation.name,
        metric="bytes that leave" if is_pooled else "bytes that leave, host",
        value=fabric.report.leaving_bytes,
        unit="B",
        params={**params, "rows_bytes": rows_bytes, "pooling_factor": factor},
        reference_name="rows / pooling factor" if is_pooled else "rows",
        reference=rows_bytes * operation.groups / operation.lookups if is_pooled else rows_bytes,
        is_smaller_better=True,
        bar=1.0 if is_pooled else None,
    )


def _pair(job: Job, base: AcceleratorConfig, sinks: tuple[str, ...]) -> Pair:
    return Pair(
        base,
        sinks,
        memory=IdealMemory(latency_cycles=LATENCY_CYCLES),
        optimise=not job.quick,
        progress=job.watcher.detail,
    )


def _facts(pair: Pair, fabric: Run) -> dict[str, Any]:
    (nest,) = fabric.report.nests
    return {
        "bus_bytes": pair.fabric.config.bus_bytes,
        "memory": pair.fabric.memory,
        "cycles": fabric.report.cycles,
        "execute": nest.execute,
        "reason": nest.reason,
        "results": nest.results,
    }
