"""
Meaning of `dlc`: an access agent that walks the units, an execute agent that runs cases.

The execute agent pops a token, runs its case, which pops the operands in order, and ends at the
done token. Variables are registers of the execute side and live as long as the function runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import func
from xdsl.ir import Attribute, Operation
from xdsl.traits import IsTerminator

from ember_hw.compiler.backend.extract_values import allocations
from ember_hw.compiler.dialects import dlc
from ember_hw.compiler.interpreters.access import ACCESS, AccessProgram
from ember_hw.compiler.interpreters.frame import Frame, Handlers, Lowering, Step
from ember_hw.compiler.interpreters.queues import (
    DONE,
    Counts,
    Entry,
    Execute,
    Push,
    Queue,
    Schedule,
    run_agents,
)
from ember_hw.compiler.interpreters.values import Array, as_memref, as_vector
from ember_hw.errors import CheckError

__all__ = [
    "AccessSource",
    "DlcMachine",
    "Receive",
    "receive_exactly",
    "row_as_vector",
]

AccessSource: TypeAlias = "Callable[[Mapping[str, Array], int], Iterator[Push]]"
"""Starts what stands in for an access program: with the arrays that the function has allocated, by
symbol, and rows of so many elements an entry."""

Receive: TypeAlias = "Callable[[Attribute, int, list[Entry]], Any]"
"""Gives the value a case pops: type popped, token, entries of the operand."""


def _on_frame(
    source: AccessSource, loop: dlc.ComputeLoopOp, lowering: Lowering
) -> Callable[[Frame, int], Iterator[Push]]:
    """Return what starts a source with what the function of a compute loop has allocated."""
    function = loop.parent_op()
    assert isinstance(function, func.FuncOp)
    slots = {symbol: lowering.slot(value) for value, symbol in allocations(function).items()}

    def start(frame: Frame, entry_elements: int) -> Iterator[Push]:
        # What is allocated behind this loop isn't there yet.
        arrays: dict[str, Array] = {
            symbol: frame[slot] for symbol, slot in slots.items() if frame[slot] is not None
        }
        return source(arrays, entry_elements)

    return start


def receive_exactly(type_: Attribute, token: int, entries: list[Entry]) -> Any:
    """Return the popped value if it was pushed with the type that is popped."""
    if entries[0].type != type_:
        raise CheckError(
            f"type popped in case {token} must be the type pushed {entries[0].type}, not {type_}"
        )
    if as_memref(type_) is not None:
        return np.concatenate([entry.value for entry in entries])
    return entries[0].value


def row_as_vector(row: Array, lanes: int, token: int) -> Array:
    """Return a popped row as a vector, whose missing lanes are 0.

    Raises
    ------
    CheckError
        The row has more elements than the vector has lanes.
    """
    if row.size > lanes:
        raise CheckError(
            f"row popped as a vector in case {token} must have at most {lanes} elements, "
            f"not {row.size}"
        )
    return np.concatenate([row, np.zeros(lanes - row.size, row.dtype)])


@dataclass(frozen=True)
class _Pop:
    """A pop of a case: type popped and slot filled."""

    type: Attribute
    slot: int


class DlcMachine:
    """
    The two sides of one function, shared by all access/execute pairs in it.

    Parameters
    ----------
    schedule : Schedule
        Of every pair.
    vector_length : int, optional
        Elements of one entry of a row; None takes the widest vector of the execute program, or
        1 without vectors.
    access : sequence of AccessSource, optional
        What to run in place of the function's own access programs: one per compute loop, in order.
    receive : Receive
        How a pop takes an operand.
    """

    def __init__(
        self,
        schedule: Schedule,
        vector_length: int | None = None,
        *,
        access: Sequence[AccessSource] | None = None,
        receive: Receive = receive_exactly,
    ) -> None:
        self.counts = Counts()
        self._schedule = schedule
        self._vector_length = vector_length
        self._replacements = None if access is None else list(access)
        self._receive = receive
        self._pending: dlc.ConfigureAccessEngineOp | None = None
        self._variables: dict[int, Any] = {}
        handlers = Handlers(ACCESS)
        handlers[dlc.ConfigureAccessEngineOp] = self._configure
        handlers[dlc.ComputeLoopOp] = self._compute_loop
        handlers[dlc.PopOperandOp] = self._misplaced_pop
        handlers[dlc.GetVarOp] = self._get_var
        handlers[dlc.SetVarOp] = self._set_var
        handlers[dlc.IncrementVarOp] = self._increment_var
        handlers[dlc.ConfigureOp] = self._marker
        self.handlers = handlers

    def _entry_elements(self, op: dlc.ComputeLoopOp) -> int:
        """Return the elements of one entry of a row."""
        if self._vector_length is not None:
            return self._vector_length
        widths = [
            vector.get_shape()[0]
            for inner in op.walk()
            for result in inner.results
            if (vector := as_vector(result.type)) is not None
        ]
        return max(widths, default=1)

    def _configure(self, op: dlc.ConfigureAccessEngineOp, lowering: Lowering) -> None:
        if self._pending is not None:
            raise CheckError("access program must be followed by its compute loop, not by another")
        self._pending = op

    def check_ended(self) -> None:
        """Raise if the function has ended in the middle of an access/execute pair."""
        if self._pending is not None:
            raise CheckError(
                "access program must be followed by its compute loop, not by the function's end"
            )

    def _compute_loop(self, op: dlc.ComputeLoopOp, lowering: Lowering) -> Step:
        if op.res:
            raise CheckError(f"number of results of a compute loop must be 0, not {len(op.res)}")
        access_op, self._pending = self._pending, None
        if self._replacements is not None:
            start = _on_frame(self._replacements.pop(0), op, lowering)
        elif access_op is None:
            raise CheckError("compute loop must follow an access program, not stand alone")
        else:
            start = AccessProgram(access_op, lowering).start
        cases = {
            token: self._case(token, region.block.ops, lowering)
            for token, region in zip(op.case_ids, op.case_regions, strict=True)
        }

        entry_elements = self._entry_elements(op)

        def run(frame: Frame) -> None:
            access = start(frame, entry_elements)
            run_agents(access, self._execute(cases, frame), self._schedule, self.counts)

        return run

    def _case(self, token: int, ops: Iterable[Operation], lowering: Lowering) -> list[Step | _Pop]:
        steps: list[Step | _Pop] = []
        after_region = False
        for op in ops:
            after_region = after_region or bool(op.regions)
            if isinstance(op, dlc.PopOperandOp):
                if after_region:
                    raise CheckError(
                        f"pops of case {token} must stand before every op that has a region, "
                        "not behind one"
                    )
                steps.append(_Pop(op.result.type, lowering.slot(op.result)))
            elif not op.has_trait(IsTerminator) and (step := lowering.step(op)) is not None:
                steps.append(step)
        return steps

    def _execute(self, cases: dict[int, list[Step | _Pop]], frame: Frame) -> Execute:
        while (token := (yield Queue.CONTROL)) != DONE:
            if token not in cases:
                raise CheckError(
                    f"token must be a case of the compute loop "
                    f"({', '.join(map(str, cases)) or 'none'}), not {token}"
                )
            for step in cases[token]:
                if not isinstance(step, _Pop):
                    step(frame)
                    continue
                entries: list[Entry] = [(yield Queue.DATA)]
                while not entries[-1].last:
                    entries.append((yield Queue.DATA))
                frame[step.slot] = self._receive(step.type, token, entries)

    def _misplaced_pop(self, op: dlc.PopOperandOp, lowering: Lowering) -> None:
        parent = op.parent_op()
        raise CheckError(
            "dlc.pop_operand must be a direct child of a case, "
            f"not of {parent.name if parent else 'nothing'}"
        )

    def _variable(self, number: int) -> Any:
        if number not in self._variables:
            raise CheckError(f"variable must be set before it is read, not variable {number}")
        return self._variables[number]

    def _get_var(self, op: dlc.GetVarOp, lowering: Lowering) -> Step:
        number, target = op.variable, lowering.slot(op.result)

        def run(frame: Frame) -> None:
            frame[target] = self._variable(number)

        return run

    def _set_var(self, op: dlc.SetVarOp, lowering: Lowering) -> Step:
        number, source = op.variable, lowering.slot(op.value)
        is_row = as_memref(op.value.type) is not None

        def run(frame: Frame) -> None:
            value = frame[source]
            self._variables[number] = value.copy() if is_row else value

        return run

    def _increment_var(self, op: dlc.IncrementVarOp, lowering: Lowering) -> Step:
        number, amount = op.variable, op.increment

        def run(frame: Frame) -> None:
            self._variables[number] = self._variable(number) + amount

        return run

    def _marker(self, op: dlc.ConfigureOp, lowering: Lowering) -> None:
        return None
