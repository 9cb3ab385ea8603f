"""`dlc-to-au`: the access program of a function in physical names, ready for the assembler."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ember_hw.compiler.backend.allocate import allocate_all
from ember_hw.compiler.transforms.ir_facts import functions


@dataclass(frozen=True)
class DlcToAu(ModulePass):
    """
    Replace each function by the `au.program` of each of its access programs.

    Accepts what `slc-to-dlc` leaves, if each function has an access program and the attribute
    `ember.args`; `allocate` says how names are given. What comes out is the text that the assembler
    reads. The cases of the execute side go with the function: kernels are made from dlc.

    Parameters
    ----------
    target : str
        Name of the configuration that the program is for.
    """

    name = "dlc-to-au"

    target: str = "default"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in list(functions(op)):
            Rewriter.replace_op(function, list(allocate_all(function, self.target)), [])
