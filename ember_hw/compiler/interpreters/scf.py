"""Meaning of the host's structured control flow: `scf.for` and `scf.if`, run directly."""

from __future__ import annotations

from xdsl.dialects import scf

from ember_hw.compiler.interpreters.frame import Body, Frame, Handlers, Lowering, Step, run_loop

__all__ = ["SCF"]

SCF = Handlers()


@SCF.register(scf.ForOp)
def _for(op: scf.ForOp, lowering: Lowering) -> Step:
    return run_loop(
        op.name,
        (lowering.slot(op.lb), lowering.slot(op.ub), lowering.slot(op.step)),
        lowering.slots(op.iter_args),
        lowering.slots(op.res),
        lowering.body(op.body.block),
    )


@SCF.register(scf.IfOp)
def _if(op: scf.IfOp, lowering: Lowering) -> Step:
    condition, results = lowering.slot(op.cond), lowering.slots(op.output)
    if_true = lowering.body(op.true_region.block)
    if_false = lowering.body(op.false_region.block) if op.false_region.blocks else Body((), (), ())

    def run(frame: Frame) -> None:
        branch = if_true if frame[condition] else if_false
        branch.run(frame)
        for target, value in zip(results, branch.results(frame), strict=True):
            frame[target] = value

    return run
