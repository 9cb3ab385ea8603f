"""`check-dae`: refuse IR that verifies op by op but breaks a soundness rule of its level."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ember_hw.compiler.transforms.dlc_rules import dlc_violations
from ember_hw.compiler.transforms.slc_rules import slc_violations
from ember_hw.compiler.transforms.violation import Violation
from ember_hw.errors import CheckError


def find_violations(module: ModuleOp, *, allow_temporaries: bool = False) -> list[Violation]:
    """
    Return every soundness rule that the module breaks.

    Parameters
    ----------
    module : ModuleOp
        IR that verifies; levels may be mixed.
    allow_temporaries : bool
        Whether the casts between the vectorizer's passes may be there.

    Returns
    -------
    list of Violation
        Those of slc and slcvec first, each group in text order.
    """
    return [
        *slc_violations(module, allow_temporaries=allow_temporaries),
        *dlc_violations(module),
    ]


def check_dae(module: ModuleOp, *, allow_temporaries: bool = False) -> None:
    """
    Raise `CheckError` if the module breaks a soundness rule.

    Parameters
    ----------
    module : ModuleOp
        IR that verifies; levels may be mixed.
    allow_temporaries : bool
        Whether the casts between the vectorizer's passes may be there.

    Raises
    ------
    CheckError
        Names the first op that breaks a rule, its place, and how many more there are.
    """
    violations = find_violations(module, allow_temporaries=allow_temporaries)
    if violations:
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        raise CheckError(f"{violations[0]}{more}")


@dataclass(frozen=True)
class CheckDae(ModulePass):
    """
    Hold the soundness rules of slc, slcvec and dlc.

    Accepts any module, changes nothing, and raises `CheckError` for IR whose decoupled execution
    could differ from its sequential meaning: a stream read outside a callback, an execute value in
    the access side, pops that differ from the pushes, a token without a case, and the like.
    """

    name = "check-dae"

    allow_temporaries: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check the module."""
        check_dae(op, allow_temporaries=self.allow_temporaries)
