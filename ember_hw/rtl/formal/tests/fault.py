"""A block that is wrong on purpose, and the proof that must fail for it."""

from __future__ import annotations

from dataclasses import dataclass

from ember_hw.rtl.tests.mutations import Mutation, Shows


@dataclass(frozen=True)
class Fault:
    """A change of a block's source.

    Attributes
    ----------
    depth : int
        Cycles within which the solver finds a failure, from the reset on.
    module, component, rule, before, after : str
        As those of `Mutation`.
    """

    depth: int
    module: str
    component: str
    rule: str
    before: str
    after: str

    @property
    def mutation(self) -> Mutation:
        """The change, as the context manager `applied` takes it."""
        return Mutation(
            self.rule, Shows.PROOF, self.module, self.component, self.before, self.after
        )
