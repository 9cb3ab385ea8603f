"""Which choices of the ISA, event bits, fault codes and states the programs have used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ember_hw.bench.fuzzing.case import Case
from ember_hw.bench.fuzzing.coverage import Coverage
from ember_hw.bench.fuzzing.outcome import Outcome
from ember_hw.config import AcceleratorConfig
from ember_hw.registers import REDUCE_FAULTS, FaultCode

#: Those of an access unit whose queues lead out.
_FAULTS = [code for code in FaultCode if code not in REDUCE_FAULTS]


@dataclass
class Functional:
    """What programs have used.

    Attributes
    ----------
    config : AcceleratorConfig
    choices : Coverage
        Opcodes, sources, sizes, selectors, flags; event bits of rows and of bundles told.
    events : int
        Event bits that came in bundles.
    faults : set of FaultCode
    """

    config: AcceleratorConfig
    choices: Coverage = field(default_factory=Coverage)
    events: int = 0
    faults: set[FaultCode] = field(default_factory=set[FaultCode])

    def note(self, case: Case, outcome: Outcome) -> None:
        """Take note of a case that was run."""
        self.choices.note(case.microcode)
        self.faults.add(FaultCode(outcome.fault[0]))
        for events, _ in outcome.bundles:
            self.events |= events

    def missing(self) -> Iterator[str]:
        """Yield all that no program has used."""
        yield from self.choices.missing(self.config)
        for bit in range(self.config.events):
            if not self.events >> bit & 1:
                yield f"event bit {bit} in a bundle"
        for code in _FAULTS:
            if code not in self.faults:
                yield f"fault {code.name}"

    def total(self) -> int:
        """Return how much there is to use."""
        return self.choices.total(self.config) + self.config.events + len(_FAULTS)
