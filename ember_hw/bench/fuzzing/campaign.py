"""Runs many cases on one access unit and keeps account."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ember_hw.bench.fuzzing.case import Case
from ember_hw.bench.fuzzing.compare import judge, judge_interpreter
from ember_hw.bench.fuzzing.coverage import Coverage
from ember_hw.bench.fuzzing.faults import random_case
from ember_hw.bench.fuzzing.hardware import HangError, Hardware
from ember_hw.bench.fuzzing.shrink import shrink
from ember_hw.config import AcceleratorConfig
from ember_hw.registers import FaultCode
from ember_hw.sim.model import SimulationError

#: Leaf tokens that make a program a long one.
LONG_TOKENS = 100
#: Failures that are made small; more are only counted.
_MOST_SHRUNK = 3
#: Cases before a failing one that may be its cause.
_MOST_BEFORE = 8


@dataclass(frozen=True)
class Failure:
    """A case that failed.

    Attributes
    ----------
    seed : int
    reason : str
    before : tuple of int
        Seeds of cases that must run before it on the same hardware.
    program : str
        A small program that fails alike; empty where none was looked for.
    """

    seed: int
    reason: str
    before: tuple[int, ...] = ()
    program: str = ""


@dataclass
class Account:
    """What came of a campaign.

    Attributes
    ----------
    cases, long_legal, cycles : int
        Cases run, legal ones with `LONG_TOKENS` or more leaf tokens, and their simulated cycles.
    kinds, faults : tally of str
        Kinds of cases, and fault codes that hardware reported.
    coverage : Coverage
    failures : list of Failure
    """

    cases: int = 0
    long_legal: int = 0
    cycles: int = 0
    kinds: Tally[str] = field(default_factory=Tally[str])
    faults: Tally[str] = field(default_factory=Tally[str])
    coverage: Coverage = field(default_factory=Coverage)
    failures: list[Failure] = field(default_factory=list[Failure])


class Campaign:
    """Random cases on one simulated access unit, which is never reset unless a case says so.

    Parameters
    ----------
    config : AcceleratorConfig
    optimise : bool
        Compile a faster model, in more time.
    progress : callable, optional
        Told what a build does next.
    """

    def __init__(
        self,
        config: AcceleratorConfig,
        *,
        optimise: bool = True,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.config = config
        self.account = Account()
        self._hardware = Hardware(config, optimise=optimise, progress=progress)

    def close(self) -> None:
        """Free the model."""
        self._hardware.close()

    def run(self, seeds: Iterable[int], on_case: Callable[[], None] = lambda: None) -> Account:
        """Run the cases of some seeds, and tell `on_case` after each."""
        ran: list[int] = []
        for seed in seeds:
            case = random_case(self.config, seed)
            self._count(case)
            reason = self.attempt(case, with_counters=True)
            ran.append(seed)
            if reason is not None:
                self._hardware.restart()
                self.account.failures.append(self._explain(case, reason, ran[:-1]))
                self._hardware.restart()
                ran = []
            on_case()
        return self.account

    def attempt(self, case: Case, *, with_counters: bool = False) -> str | None:
        """Run a case. Return what is wrong, or None."""
        try:
            outcome = self._hardware.run(case, with_counters=with_counters)
        except (HangError, SimulationError) as error:
            return f"{type(error).__name__}: {error}"
        self.account.cycles += outcome.cycles
        if outcome.fault[0]:
            self.account.faults[FaultCode(outcome.fault[0]).name] += 1
        return judge(case, outcome) or judge_interpreter(case)

    def _count(self, case: Case) -> None:
        account = self.account
        account.cases += 1
        account.kinds[case.kind] += 1
        if case.kind == "legal" and case.whole.leaf_tokens >= LONG_TOKENS:
            account.long_legal += 1
        account.coverage.note(case.microcode)

    def _explain(self, case: Case, reason: str, ran: list[int]) -> Failure:
        """Find out what a failure needs, and make it small."""
        if len(self.account.failures) >= _MOST_SHRUNK:
            return Failure(case.seed, reason)
        for count in range(_MOST_BEFORE + 1):
            before = tuple(ran[len(ran) - count :])
            if len(before) == count and self._fails(case, before):
                small = shrink(case, lambda smaller: self._fails(smaller, before))
                return Failure(case.seed, reason, before, small.describe())
        return Failure(case.seed, f"{reason} (once in a long run; not again)", tuple(ran))

    def _fails(self, case: Case, before: tuple[int, ...]) -> bool:
        """Tell whether a case fails on fresh hardware, after some others."""
        self._hardware.restart()
        for seed in before:
            self.attempt(random_case(self.config, seed))
        return self.attempt(case) is not None
