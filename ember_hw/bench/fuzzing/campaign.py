"""Runs many cases on simulated access units and keeps account."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from ember_hw.bench.fuzzing.case import Case
from ember_hw.bench.fuzzing.compare import judge, judge_interpreter
from ember_hw.bench.fuzzing.coverage import Coverage
from ember_hw.bench.fuzzing.draw import random_draw
from ember_hw.bench.fuzzing.hardware import Draw, HangError, Hardware
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
    """A draw that failed.

    Attributes
    ----------
    seed : int
    reason : str
    before : tuple of int
        Seeds of draws that must run before it on the same hardware.
    program : str
        Small programs, of each unit that takes part, that fail alike; empty where none were looked
        for.
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
        Cases run, legal ones with `LONG_TOKENS` or more leaf tokens, and the simulated cycles.
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

    def add(self, other: Account) -> None:
        """Add what came of another campaign."""
        self.cases += other.cases
        self.long_legal += other.long_legal
        self.cycles += other.cycles
        self.kinds += other.kinds
        self.faults += other.faults
        self.coverage.seen |= other.coverage.seen
        self.failures += other.failures


class Campaign:
    """Random cases on simulated access units, which are never reset unless a case says so.

    Parameters
    ----------
    config : AcceleratorConfig
        Of each unit.
    units : int
        They share all channels, and each runs a case at the same time as the others.
    optimise : bool
        Compile a faster model, in more time.
    progress : callable, optional
        Told what a build does next.
    """

    def __init__(
        self,
        config: AcceleratorConfig,
        *,
        units: int = 1,
        optimise: bool = True,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.config, self.units = config, units
        self.account = Account()
        self._hardware = Hardware(config, units=units, optimise=optimise, progress=progress)

    def close(self) -> None:
        """Free the model."""
        self._hardware.close()

    def run(self, seeds: Iterable[int], on_draw: Callable[[], None] = lambda: None) -> Account:
        """Run the cases of some seeds, and tell `on_draw` after each seed."""
        ran: list[int] = []
        for seed in seeds:
            draw = random_draw(self.config, seed, units=self.units)
            for case in draw:
                self._count(case)
            reason = self.attempt(draw, with_counters=True)
            ran.append(seed)
            if reason is not None:
                self._hardware.restart()
                self.account.failures.append(self._explain(seed, draw, reason, ran[:-1]))
                self._hardware.restart()
                ran = []
            on_draw()
        return self.account

    def attempt(self, draw: Draw, *, with_counters: bool = False) -> str | None:
        """Run cases, each on its unit. Return what is wrong, or None."""
        try:
            outcomes = self._hardware.run_all(draw, with_counters=with_counters)
        except (HangError, SimulationError) as error:
            return f"{type(error).__name__}: {error}"
        self.account.cycles += next(iter(outcomes.values())).cycles
        reasons: list[str] = []
        for unit, outcome in outcomes.items():
            case = draw[unit]
            assert case is not None
            if outcome.fault[0]:
                self.account.faults[FaultCode(outcome.fault[0]).name] += 1
            reason = judge(case, outcome) or judge_interpreter(case)
            if reason is not None:
                reasons.append(reason if self.units == 1 else f"unit {unit}: {reason}")
        return "; ".join(reasons) or None

    def _count(self, case: Case) -> None:
        account = self.account
        account.cases += 1
        account.kinds[case.kind] += 1
        if case.kind == "legal" and case.whole.leaf_tokens >= LONG_TOKENS:
            account.long_legal += 1
        account.coverage.note(case.microcode)

    def _explain(self, seed: int, draw: Draw, reason: str, ran: list[int]) -> Failure:
        """Find out what a failure needs, and make it small."""
        if len(self.account.failures) >= _MOST_SHRUNK:
            return Failure(seed, reason)
        for count in range(_MOST_BEFORE + 1):
            before = tuple(ran[len(ran) - count :])
            if len(before) == count and self._fails(draw, before):
                program = "\n".join(case.describe() for case in self._small(draw, before) if case)
                return Failure(seed, reason, before, program)
        return Failure(seed, f"{reason} (once in a long run; not again)", tuple(ran))

    def _small(self, draw: Draw, before: tuple[int, ...]) -> Draw:
        """Leave out units whose programs do not matter, and make small those of the others."""
        for unit in range(self.units):
            alone = (*draw[:unit], None, *draw[unit + 1 :])
            if any(alone) and self._fails(alone, before):
                draw = alone
        for unit, case in enumerate(draw):
            if case is not None:
                head, tail = draw[:unit], draw[unit + 1 :]
                fails = partial(self._fails_with, head, tail, before)
                draw = (*head, shrink(case, fails), *tail)
        return draw

    def _fails_with(self, head: Draw, tail: Draw, before: tuple[int, ...], case: Case) -> bool:
        return self._fails((*head, case, *tail), before)

    def _fails(self, draw: Draw, before: tuple[int, ...]) -> bool:
        """Tell whether cases fail on fresh hardware, after some others."""
        self._hardware.restart()
        for seed in before:
            self.attempt(random_draw(self.config, seed, units=self.units))
        return self.attempt(draw) is not None
