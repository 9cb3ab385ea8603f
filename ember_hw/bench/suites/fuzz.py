"""Random programs with random faults, on simulated access units: how many end as they must.

10,000 programs on several small and odd access units, one after another without a reset: legal ones
(more than half of them, of a hundred steps or more), programs that break a rule, memory that errs
or stops, sinks that stop, aborts and resets. None may hang, read outside its regions, or give a
wrong answer unreported. A failing program is made small; `replay` runs one by its seed.

And random loop nests, for ten minutes: those that compile write what their source writes, at least
four of five compile, the others are refused with a reason.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Iterator

from ember_hw.bench.fuzzing.campaign import LONG_TOKENS, Account, Campaign
from ember_hw.bench.fuzzing.configs import CONFIGS
from ember_hw.bench.fuzzing.faults import KINDS
from ember_hw.bench.fuzzing.nests import NestAccount, run_nests
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.config import AcceleratorConfig
from ember_hw.registers import FaultCode

#: Programs on each config.
CASES = {"tiny": 2500, "odd": 2500, "one": 500, "ports": 1500, "eight": 1000, "wide": 2000}
QUICK_CASES = {"tiny": 150, "ports": 100}
#: Seeds of two jobs are apart.
SEEDS_A_JOB = 1_000_000
_LEAST_LONG_SHARE = 0.5
#: Workload of the nests, how long they run, and how many a quick run has.
NESTS = "nests"
NEST_SECONDS = 600
QUICK_NESTS = 60
_LEAST_COMPILED_SHARE = 0.8


def run(job: Job) -> Iterator[Row]:
    """Run all programs of the configs that are wanted."""
    accounts: dict[str, Account] = {}
    chosen = QUICK_CASES if job.quick else CASES
    for name, cases in chosen.items():
        if not job.wants(name):
            continue
        job.watcher(f"fuzz: {name}, {cases} programs")
        accounts[name] = account = _account(job, CONFIGS[name], cases)
        yield _row_of(name, account, job.seed * SEEDS_A_JOB)
    if accounts:
        yield _long_share(accounts)
        yield _drawn(accounts, is_whole=accounts.keys() == CASES.keys())
    if job.wants(NESTS):
        yield from _nests(job)


def replay(config: str, seed: int) -> str:
    """Run one program on fresh hardware. Return it, and what is wrong.

    Parameters
    ----------
    config : str
        One of `CONFIGS`.
    seed : int
        As a failure tells it.
    """
    campaign = Campaign(CONFIGS[config])
    try:
        account = campaign.run([seed])
    finally:
        campaign.close()
    failures = [f"{failure.reason}\n{failure.program}" for failure in account.failures]
    return "\n".join(failures) or "nothing is wrong"


def _account(job: Job, config: AcceleratorConfig, cases: int) -> Account:
    campaign = Campaign(config, optimise=not job.quick, progress=job.watcher.detail)
    first = job.seed * SEEDS_A_JOB

    def on_case() -> None:
        account = campaign.account
        job.watcher.reached(account.cases, cases, account.cycles)

    try:
        return campaign.run(range(first, first + cases), on_case)
    finally:
        campaign.close()


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
            "kinds": dict(account.kinds),
            "faults": dict(account.faults),
            "cycles": account.cycles,
            "failures": failures,
        },
        reference_name="programs",
        reference=account.cases,
        bar=1.0,
    )


def _long_share(accounts: dict[str, Account]) -> Row:
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


def _drawn(accounts: dict[str, Account], *, is_whole: bool) -> Row:
    """Count opcodes, selectors, event bits, kinds and fault codes; a part may lack some."""
    kinds: Tally[str] = Tally()
    faults: Tally[str] = Tally()
    missing: list[str] = []
    total = 0
    for name, account in accounts.items():
        kinds += account.kinds
        faults += account.faults
        missing += [f"{name}: {choice}" for choice in account.coverage.missing(CONFIGS[name])]
        total += account.coverage.total(CONFIGS[name])
    codes = [code.name for code in FaultCode if code is not FaultCode.NONE]
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
