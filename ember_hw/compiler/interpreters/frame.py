"""
How IR becomes Python closures: each op once, each region once.

A frame is a list with one slot per SSA value of the function. A *step* is a closure that reads and
writes slots; running a block means calling its steps in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from ember_hw.errors import CheckError, UnsupportedError

__all__ = ["Body", "Frame", "Handler", "Handlers", "Lowering", "Step", "iterations", "run_loop"]

Frame: TypeAlias = list[Any]
Step: TypeAlias = Callable[[Frame], None]
Handler: TypeAlias = "Callable[[Any, Lowering], Step | None]"
HandlerT = TypeVar("HandlerT", bound="Handler")


class Handlers(dict[type[Operation], Handler]):
    """What each op type becomes; one table per dialect."""

    def register(self, *op_types: type[Operation]) -> Callable[[HandlerT], HandlerT]:
        """Enter the decorated function for these op types."""

        def enter(handler: HandlerT) -> HandlerT:
            for op_type in op_types:
                self[op_type] = handler
            return handler

        return enter


@dataclass(frozen=True)
class Body:
    """
    A block as steps.

    Parameters
    ----------
    arguments : tuple of int
        Slots of the block arguments.
    steps : tuple of Step
        The ops but the terminator.
    yielded : tuple of int
        Slots of the terminator's operands.
    """

    arguments: tuple[int, ...]
    steps: tuple[Step, ...]
    yielded: tuple[int, ...]

    def run(self, frame: Frame) -> None:
        """Run the steps once."""
        for step in self.steps:
            step(frame)

    def results(self, frame: Frame) -> tuple[Any, ...]:
        """Return the values that the terminator takes out."""
        return tuple(frame[slot] for slot in self.yielded)


class Lowering:
    """
    Turns the ops of one function into steps.

    Parameters
    ----------
    handlers : Mapping of op type to Handler
        What each op becomes.
    """

    def __init__(self, handlers: Mapping[type[Operation], Handler]) -> None:
        self._handlers = handlers
        self._slots: dict[SSAValue, int] = {}
        self._presets: list[Any] = []

    def slot(self, value: SSAValue) -> int:
        """Return the slot of a value; the same each time."""
        if value not in self._slots:
            self._slots[value] = self.constant_slot(None)
        return self._slots[value]

    def slots(self, values: Iterable[SSAValue]) -> tuple[int, ...]:
        """Return the slots of several values."""
        return tuple(self.slot(value) for value in values)

    def preset(self, slot: int, constant: Any) -> None:
        """Fill a slot once, before anything runs."""
        self._presets[slot] = constant

    def constant_slot(self, constant: Any) -> int:
        """Return a slot that belongs to no value and holds this constant."""
        self._presets.append(constant)
        return len(self._presets) - 1

    def alias(self, value: SSAValue, slot: int) -> None:
        """Let a value live in a slot that another one fills."""
        self._slots[value] = slot

    def step(self, op: Operation) -> Step | None:
        """Return the op's step; None if there is nothing to do at run time."""
        handler = self._handlers.get(type(op))
        if handler is None:
            raise UnsupportedError(
                f"op must be one that the interpreters execute, not {op.name!r}", node=op.name
            )
        return handler(op, self)

    def body(self, block: Block) -> Body:
        """Lower a block."""
        arguments = self.slots(block.args)
        steps: list[Step] = []
        yielded: tuple[int, ...] = ()
        for op in block.ops:
            if op.has_trait(IsTerminator):
                yielded = self.slots(op.operands)
            elif (step := self.step(op)) is not None:
                steps.append(step)
        return Body(arguments, tuple(steps), yielded)

    def frame(self) -> Frame:
        """Return a new frame; only after the whole function is lowered."""
        return list(self._presets)


def run_loop(
    name: str,
    bounds: tuple[int, int, int],
    initial: tuple[int, ...],
    results: tuple[int, ...],
    body: Body,
) -> Step:
    """
    Return the step of a counted loop with carried values.

    Parameters
    ----------
    name : str
        The op's name, for the error.
    bounds : tuple of int
        Slots of lower bound, upper bound (exclusive) and step.
    initial, results : tuple of int
        Slots of the carried values before and after the loop.
    body : Body
        Its first argument is the induction variable, the others are the carried values.
    """
    lower, upper, stride = bounds
    variable, *carried = body.arguments
    steps = body.steps

    def run(frame: Frame) -> None:
        for target, source in zip(carried, initial, strict=True):
            frame[target] = frame[source]
        for value in iterations(name, frame[lower], frame[upper], frame[stride]):
            frame[variable] = value
            for step in steps:
                step(frame)
            if carried:
                for target, result in zip(carried, body.results(frame), strict=True):
                    frame[target] = result
        for target, source in zip(results, carried, strict=True):
            frame[target] = frame[source]

    return run


def iterations(name: str, lower: int, upper: int, step: int) -> range:
    """Return the values of an induction variable; the step must be positive."""
    if step < 1:
        raise CheckError(f"step of {name} must be at least 1, not {step}")
    return range(lower, upper, step)
