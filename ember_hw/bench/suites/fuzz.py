"""Random programs with random faults, on simulated access units: how many end as they must.

10,000 programs on small and odd access units, alone and in clusters on shared channels, one after
another without a reset: legal ones (more than half of them, of a hundred steps or more), programs
that break a rule, memory that errs or stops, sinks that stop, aborts and resets. None may hang,
read outside its regions, or give a wrong answer unreported. A failing program is made small;
`replay` runs one by its seed. All processors take part.

And random loop nests, for ten minutes: those that compile write what their source writes, at least
four of five compile, the others are refused with a reason.

And random calls of every op class, and calls on real data sets: wholly at every level of the
compiler (`classes`), and with the execute side in the fabric in every dtype: `fabric`, and
`fabric to memory`, where the unit writes its results.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

from ember_hw.bench.fuzzing import classes, fabric
from ember_hw.bench.fuzzing.campaign import LONG_TOKENS, Account, Campaign
from ember_hw.bench.fuzzing.configs import CLUSTERS, CONFIGS
from ember_hw.bench.fuzzing.faults import KINDS
from ember_hw.bench.fuzzing.nests import NestAccount, run_nests
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.config import AcceleratorConfig
from ember_hw.registers import REDUCE_FAULTS, FaultCode

P = TypeVar("P")
R = TypeVar("R")

#: What programs run on: the config, and how many units of it.
TARGETS: dict[str, tuple[AcceleratorConfig, int]] = {
    **{name: (config, 1) for name, config in CONFIGS.items()},
    **CLUSTERS,
}
#: Draws on each: of a program for each unit.
DRAWS = {
    "tiny": 2500,
    "odd": 1500,
    "one": 800,
    "ports": 2000,
    "eight": 600,
    "wide": 1600,
    "pair": 350,
    "trio": 100,
}
QUICK_DRAWS = {"tiny": 150, "pair": 50}
#: Draws that one process makes on the same hardware, which is never reset unless a case says so.
DRAWS_A_PART = 100
#: Seeds of two jobs are apart.
SEEDS_A_JOB = 1_000_000
#: Processes that run parts at the same time.
PROCESSES = os.cpu_count() or 1
_LEAST_LONG_SHARE = 0.5
#: Workload of the nests, how long they run, and how many a quick run has.
NESTS = "nests"
NEST_SECONDS = 600
QUICK_NESTS = 60
_LEAST_COMPILED_SHARE = 0.8
#: Workloads of the op classes, at every level and in the fabric, and random calls of each (and each
#: dtype); a quick run simulates no unit.
CLASSES, FABRIC, TO_MEMORY = "classes", "fabric", "fabric to memory"
CLASS_CALLS = 100
QUICK_CLASS_CALLS = 2


@dataclass(frozen=True)
class Part:
    """Draws of one target, of seeds one after the other."""

    target: str
    first_seed: int
    draws: int


def run(job: Job) -> Iterator[Row]:
    """Run all programs of the targets that are wanted, then nests, then op classes thrice."""
    chosen = QUICK_DRAWS if job.quick else DRAWS
    chosen = {name: draws for name, draws in chosen.items() if job.wants(name)}
    if chosen:
        yield from _programs(job, chosen)
    if job.wants(NESTS):
        yield from _nests(job)
    to_memory = SimpleNamespace(
        parts=partial(fabric.parts, results="memory"),
        name_of=fabric.name_of,
        run_part=fabric.run_part,
    )
    for workload, source in ((CLASSES, classes), (FABRIC, fabric), (TO_MEMORY, to_memory)):
        if job.wants(workload):
            yield from _classes(job, workload, source)


def replay(target: str, seed: int) -> str:
    """Run one draw on fresh hardware. Return its programs, made small, and what is wrong.

    Parameters
    ----------
    target : str
        One of `TARGETS`.
    seed : int
        As a failure tells it.
    """
    failures = run_part(Part(target, seed, 1)).failures
    texts = [f"{failure.reason}\n{failure.program}" for failure in failures]
    return "\n".join(texts) or "nothing is wrong"


def build(target: str) -> None:
    """Build the model of a target, if the cache does not have it."""
    _campaign(target).close()


def run_part(part: Part) -> Account:
    """Run the draws of a part; in a process of its own, if there are several."""
    campaign = _campaign(part.target)
    try:
        return campaign.run(range(part.first_seed, part.first_seed + part.draws))
    finally:
        campaign.close()


def _campaign(target: str) -> Campaign:
    config, units = TARGETS[target]
    # The fast model would take longer to build than it gains.
    return Campaign(config, units=units, optimise=False)


def _accounts(parts: Sequence[Part], job: Job) -> Iterator[tuple[Part, Account]]:
    """Build what the parts need, then run them; yield each as it ends."""
    for target, _ in _spread(build, dict.fromkeys(part.target for part in parts)):
        job.watcher.detail(f"{target} is built")
    yield from _spread(run_part, parts)


def _spread(function: Callable[[P], R], items: Iterable[P]) -> Iterator[tuple[P, R]]:
    """Call a function with each item, on all processors; yield item and result as it ends."""
    if PROCESSES == 1:
        yield from ((item, function(item)) for item in items)
        return
    # A fresh interpreter each: none inherits what threads of this one hold.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        try:
            runs = {pool.submit(function, item): item for item in items}
            for ran in as_completed(runs):
                yield runs[ran], ran.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _nests(job: Job) -> Iterator[Row]:
    job.watcher(f"fuzz: {NESTS}, {QUICK_NESTS if job.quick else f'{NEST_SECONDS} s'}")
    first = job.seed * SEEDS_A_JOB
    end = time.monotonic() + NEST_SECONDS

    def seeds() -> Iterator[int]:
        seed = first
        while seed - first < QUICK_NESTS if job.quick else time.monotonic() < end:
            yield seed
            seed += 1

    def on_nest(account: NestAccount) -> None:
        job.watcher.reached(account.nests, QUICK_NESTS if job.quick else None, None)

    account = run_nests(seeds(), on_nest)
    failures = [
        {"seed": f.seed, "opt_level": f.opt_level, "reason": f.reason} for f in account.failures
    ]
    yield Row(
        workload=NESTS,
        metric="nests that agree with their source or are refused",
        value=account.nests - len(failures),
        unit="nests",
        params={"first_seed": first, "refused": dict(account.refused), "failures": failures},
        reference_name="nests",
        reference=account.nests,
        bar=1.0,
    )
    yield Row(
        workload=NESTS,
        metric="nests that compile",
        value=account.compiled,
        unit="nests",
        reference_name="four of five",
        reference=_LEAST_COMPILED_SHARE * account.nests,
        bar=1.0,
    )


def _classes(job: Job, workload: str, source: Any) -> Iterator[Row]:
    """Run the parts of a module, which knows `parts`, `name_of` and `run_part`."""
    calls = QUICK_CLASS_CALLS if job.quick else CLASS_CALLS
    job.watcher(f"fuzz: {workload}, {calls} calls of each and real data sets")
    parts = list(source.parts(job.seed, calls, real=not job.quick))
    waiting = Tally(source.name_of(part) for part in parts)
    accounts = {name: classes.ClassAccount(name) for name in waiting}
    for _, found in _spread(partial(source.run_part, rtl=not job.quick), parts):
        account = accounts[found.name]
        account.add(found)
        for failure in found.comparison.failures:
            job.watcher.detail(failure)
        job.watcher.reached(sum(a.calls for a in accounts.values()), None, None)
        waiting[found.name] -= 1
        if not waiting[found.name]:
            yield _class_row(workload, account)


def _class_row(workload: str, account: classes.ClassAccount) -> Row:
    found = account.comparison
    return Row(
        workload=workload,
        metric=f"calls of {account.name} with the same bits everywhere",
        value=account.agreeing,
        unit="calls",
        params={
            "answers": dict(found.answers),
            "refused": dict(found.refused),
            "failures": found.failures,
        },
        reference_name="calls",
        reference=account.calls,
        bar=1.0,
    )


def _programs(job: Job, chosen: Mapping[str, int]) -> Iterator[Row]:
    first = job.seed * SEEDS_A_JOB
    # All targets in turn, so that a run which is stopped has met them all.
    parts = [
        Part(name, first + done, min(DRAWS_A_PART, draws - done))
        for done in range(0, max(chosen.values()), DRAWS_A_PART)
        for name, draws in chosen.items()
        if done < draws
    ]
    programs = sum(draws * TARGETS[name][1] for name, draws in chosen.items())
    job.watcher(f"fuzz: {programs} programs on {', '.join(chosen)}")
    found: dict[Part, Account] = {}
    for part, account in _accounts(parts, job):
        found[part] = account
        for failure in account.failures:
            job.watcher.detail(f"{part.target}, seed {failure.seed}: {failure.reason}")
        done = sum(account.cases for account in found.values())
        job.watcher.reached(done, programs, sum(account.cycles for account in found.values()))
    accounts = {name: Account() for name in chosen}
    for part in parts:
        accounts[part.target].add(found[part])
    for name, account in accounts.items():
        yield _row_of(name, account, first)
    yield _long_share(accounts)
    yield _drawn(accounts, is_whole=chosen == DRAWS)


def _row_of(name: str, account: Account, first_seed: int) -> Row:
    failures = [
        {"seed": f.seed, "reason": f.reason, "before": list(f.before), "program": f.program}
        for f in account.failures
    ]
    return Row(
        workload=name,
        metric="programs that end as they must",
        value=account.cases - len(failures),
        unit="programs",
        params={
            "first_seed": first_seed,
            "units": TARGETS[name][1],
            "kinds": dict(account.kinds),
            "faults": dict(account.faults),
            "cycles": account.cycles,
            "failures": failures,
        },
        reference_name="programs",
        reference=account.cases,
        bar=1.0,
    )


def _long_share(accounts: Mapping[str, Account]) -> Row:
    cases = sum(account.cases for account in accounts.values())
    return Row(
        workload="all",
        metric=f"legal programs of {LONG_TOKENS} steps or more",
        value=sum(account.long_legal for account in accounts.values()),
        unit="programs",
        reference_name="half of the programs",
        reference=_LEAST_LONG_SHARE * cases,
        bar=1.0,
    )


def _drawn(accounts: Mapping[str, Account], *, is_whole: bool) -> Row:
    """Count opcodes, selectors, event bits, kinds and fault codes; a part may lack some."""
    kinds: Tally[str] = Tally()
    faults: Tally[str] = Tally()
    missing: list[str] = []
    total = 0
    for name, account in accounts.items():
        kinds += account.kinds
        faults += account.faults
        config = TARGETS[name][0]
        missing += [f"{name}: {choice}" for choice in account.coverage.missing(config)]
        total += account.coverage.total(config)
    codes = [code.name for code in FaultCode if code not in {FaultCode.NONE, *REDUCE_FAULTS}]
    missing += [name for name in codes if name not in faults]
    missing += [name for name in KINDS if name not in kinds]
    total += len(codes) + len(KINDS)
    return Row(
        workload="all",
        metric="opcodes, selectors, event bits, kinds and fault codes met",
        value=total - len(missing),
        unit="1",
        params={"missing": missing, "kinds": dict(kinds), "faults": dict(faults)},
        reference_name="there are",
        reference=total,
        bar=1.0 if is_whole else None,
    )
