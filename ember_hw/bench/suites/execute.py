"""The reduce unit against the host: cycles, and the bytes that leave, for the same programs.

Each operation is compiled twice from the same text, for a unit with a reduce unit and for its twin
without; the answers are the same bits. Cycles of the first stand beside those of the twin whose
queues are drained by a sink that never waits, and by a `core-like` one. What can't run in the
fabric runs on the host, its rows pass the reduce unit, and a row of results says why.

`no lost beat`: bags long enough that results don't count, and rows long enough that the adders
don't (`docs/reduce_unit.md`). The value is the useful bytes of rows over cycles x bus bytes between
the results at 10 % and at 90 % of a run, the reference the limit of the port that carries rows and
indices, as in the suite `gather`. Where results go into memory the same bags are measured by the
beats that are written there, and so are copies of rows, from memory to memory: `beats copied`.

`.., sums`: scores of triples, products of the rows at both ends of an edge, and of the queries and
keys of attention, on a unit that sums across rows; the least bytes are those of a number for each.

`small rows` are bf16, fp16 and int8 rows, on units with lanes for whole beats of them; their
results are held against the interpreter's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

import ember_hw
from ember_hw.bench.bags import port_limit
from ember_hw.bench.pooled import Operation, Pair, Run, bags_of, limit_of, of_case
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.bench.small_rows import small_rows
from ember_hw.bench.workloads import attention, graphs, triples
from ember_hw.bench.workloads.cases import LATENCY_CYCLES, Makers, cases, unit_of
from ember_hw.config import AcceleratorConfig
from ember_hw.demo import movielens
from ember_hw.demo.run import EMBEDDING_DIM, make_table
from ember_hw.isa.reduce import NUMBER_BYTES
from ember_hw.rtl.write_port import write_beats
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
#: Of a copy of rows: bytes of a row, and rows of the table.
_COPIED_BYTES = (64, 256, 512)
_COPIED_ROWS = 512
#: Of rows that are summed across: numbers of one, nodes of a graph, triples of a quick run.
_SUMMED, _NODES, _QUICK_TRIPLES = 64, 128, 100
#: Of attention: queries in all, and blocks of keys that a block of them attends to.
_QUERIES, _ATTENDED = 256, 5
#: Where results go, and what a name of a row says of it.
_RESULTS = {"stream": "", "memory": ", to memory"}


def run(job: Job) -> Iterator[Row]:
    """Measure the bags, copies, then the operations, then sums across rows."""
    for results in _RESULTS:
        yield from no_lost_beat(job, results)
    yield from copies(job)
    yield from operations(job)
    yield from sums(job)
    yield from small_rows(job)


def no_lost_beat(job: Job, results: str) -> Iterator[Row]:
    """Measure bags of every length and width that has the bar.

    Parameters
    ----------
    job : Job
        What is wanted.
    results : "stream" or "memory"
        Where they go.
    """
    suffix = _RESULTS[results]
    widths = _WIDTHS if results == "stream" else (_QUICK_WIDTH,)
    for width in (_QUICK_WIDTH,) if job.quick else widths:
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
        wanted = [case for case in made if job.wants(f"{width}-bit/{case.name}{suffix}")]
        if not wanted:
            continue
        job.watcher(f"execute: {len(wanted)} shapes of bags, {width} bits{suffix}")
        with _pair(job, unit_of(width), (), results) as pair:
            for done, case in enumerate(wanted):
                operation = of_case(case)
                fabric, _ = pair.run(operation)
                together = _together(case.params["row_bytes"], pair)
                yield Row(
                    workload=f"{width}-bit/{case.name}{suffix}",
                    metric="no lost beat",
                    value=fabric.utilisation(case.params["bag"], together=together),
                    unit="1",
                    params={**case.params, **_facts(pair, fabric)},
                    reference_name="port",
                    reference=limit_of(case.params, pair.fabric.config),
                    bar=NO_LOST_BEAT,
                )
                job.watcher.reached(done + 1, len(wanted), None)


def copies(job: Job) -> Iterator[Row]:
    """Measure lookups of an Embedding whose rows are copied from memory to memory."""
    width = _QUICK_WIDTH
    sizes = _COPIED_BYTES[1:2] if job.quick else _COPIED_BYTES
    wanted = {f"{width}-bit/Embedding, {size} B": size for size in sizes}
    wanted = {name: size for name, size in wanted.items() if job.wants(name)}
    if not wanted:
        return
    job.watcher(f"execute: {len(wanted)} copies of rows, {width} bits")
    with _pair(job, unit_of(width), (), "memory") as pair:
        for done, (name, row_bytes) in enumerate(wanted.items()):
            fabric, _ = pair.run(embedding(name, row_bytes, job.seed))
            bus_bytes = pair.fabric.config.bus_bytes
            yield Row(
                workload=name,
                metric="beats copied",
                value=fabric.utilisation(1, together=_together(row_bytes, pair)),
                unit="1",
                params={
                    **{"row_bytes": row_bytes, "lookups": _LOOKUPS},
                    **{"written_bytes": fabric.report.written_bytes, **_facts(pair, fabric)},
                },
                reference_name="port",
                reference=port_limit(
                    row_bytes=row_bytes,
                    bus_bytes=bus_bytes,
                    **{"index_bytes": 4, "weight_bytes": 0, "offset_bytes": 0, "bag": 1},
                ),
                bar=NO_LOST_BEAT,
            )
            job.watcher.reached(done + 1, len(wanted), None)


def embedding(name: str, row_bytes: int, seed: int) -> Operation:
    """Return lookups of an Embedding in random order."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(_COPIED_ROWS, row_bytes // 4, generator=generator)
    module = torch.nn.Embedding.from_pretrained(table)
    indices = torch.randint(0, _COPIED_ROWS, (_LOOKUPS,), generator=generator, dtype=torch.int32)

    def compiled(config: AcceleratorConfig) -> Any:
        return ember_hw.compile(module, (indices,), config=config, execute="fabric")

    return Operation(name, compiled, (indices,), {}, _LOOKUPS, _LOOKUPS)


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


def sums(job: Job) -> Iterator[Row]:
    """Measure what a reduce unit that sums across rows does of triples, edges and attention.

    That is at 128 bits. The host's rows leave as they are; of a sum one number does.
    """
    makers: dict[str, Callable[[int], Operation]] = {
        **{f"KG/{name}": _triples(name, job.quick) for name in triples.DIGESTS},
        **{f"MP edges/{name}": _edges(name) for name in graphs.GRAPHS},
        **{f"SpAttn scores/{rows} a block": _scores(rows) for rows in attention.BLOCK_ROWS},
    }
    names = [name for name in (list(makers)[:1] if job.quick else makers)]
    wanted = [name for name in names if job.wants(f"{name}, sums")]
    if not wanted:
        return
    with _pair(job, unit_of(_QUICK_WIDTH), _SINKS, reduce_dot=1) as pair:
        job.watcher(f"execute: {len(wanted)} operations that sum across rows")
        for done, name in enumerate(wanted):
            operation = replace(makers[name](job.seed), name=f"{name}, sums")
            yield from measure(operation, pair, result_bytes=NUMBER_BYTES)
            job.watcher.reached(done + 1, len(wanted), None)


def _triples(name: str, is_quick: bool) -> Callable[[int], Operation]:
    most = _QUICK_TRIPLES if is_quick else None
    return lambda seed: of_case(triples.transe(name, seed=seed, dim=_SUMMED, most=most))


def _edges(name: str) -> Callable[[int], Operation]:
    return lambda seed: of_case(graphs.edge_products(name, seed=seed, nodes=_NODES, dim=_SUMMED))


def _scores(block_rows: int) -> Callable[[int], Operation]:
    sizes = {"blocks": _QUERIES // block_rows, "attended": _ATTENDED, "dim": _SUMMED}

    def make(seed: int) -> Operation:
        operation = of_case(attention.scores(block_rows, seed=seed, **sizes))
        # A number for each query of the block that attends to a key.
        return replace(operation, groups=operation.lookups * block_rows)

    return make


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


def measure(operation: Operation, pair: Pair, *, result_bytes: int | None = None) -> Iterator[Row]:
    """Run an operation everywhere; yield its cycles and bytes.

    Parameters
    ----------
    operation : Operation
        What is run.
    pair : Pair
        Where.
    result_bytes : int, optional
        Of each result; those of a row, if not given.

    Raises
    ------
    DeviceError
        Two answers differ, or a unit stopped on a fault.
    """
    fabric, host = pair.run(operation)
    params = {**operation.params, **_facts(pair, fabric)}
    params["host_rows_bytes"] = next(iter(host.values())).report.useful_bytes
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
    least = ("rows / pooling factor", rows_bytes * operation.groups / operation.lookups)
    if result_bytes is not None:
        least = ("a number for each sum", float(result_bytes * operation.groups))
    reference_name, reference = least if is_pooled else ("rows", rows_bytes)
    yield Row(
        workload=operation.name,
        metric="bytes that leave" if is_pooled else "bytes that leave, host",
        value=fabric.report.leaving_bytes,
        unit="B",
        params={**params, "rows_bytes": rows_bytes, "pooling_factor": factor},
        reference_name=reference_name,
        reference=reference,
        is_smaller_better=True,
        bar=1.0 if is_pooled else None,
    )


def _pair(
    job: Job,
    base: AcceleratorConfig,
    sinks: tuple[str, ...],
    results: str = "stream",
    reduce_dot: int = 0,
) -> Pair:
    return Pair(
        base,
        sinks,
        results=results,
        reduce_dot=reduce_dot,
        memory=IdealMemory(latency_cycles=LATENCY_CYCLES),
        optimise=not job.quick,
        progress=job.watcher.detail,
    )


def _together(result_bytes: int, pair: Pair) -> int:
    """Return how many results leave at once: those of a burst of writes, or one."""
    config = pair.fabric.config
    if config.results == "stream":
        return 1
    beats = -(-result_bytes // config.bus_bytes)
    burst = write_beats(config)
    return burst // math.gcd(burst, beats)


def _facts(pair: Pair, fabric: Run) -> dict[str, Any]:
    (nest,) = fabric.report.nests
    return {
        "bus_bytes": pair.fabric.config.bus_bytes,
        "memory": pair.fabric.memory,
        "cycles": fabric.report.cycles,
        "execute": nest.execute,
        "reason": nest.reason,
        "results": nest.results,
        "results_go_to": pair.fabric.config.results,
    }
