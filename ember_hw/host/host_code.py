"""Runs a program's host code: loops over index arrays that tell the sizes of scratch memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from ember_hw.compiler.backend.execute_code import (
    Compute,
    Constant,
    ExecuteCode,
    Extent,
    For,
    Load,
    Scalar,
    Statement,
)
from ember_hw.errors import ProgramError


def _toward_zero(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_BINARY: Mapping[str, Callable[[int, int], int]] = {
    "addi": lambda left, right: left + right,
    "subi": lambda left, right: left - right,
    "muli": lambda left, right: left * right,
    "divsi": _toward_zero,
    "floordivsi": lambda left, right: left // right,
    "ceildivsi": lambda left, right: -(-left // right),
    "remsi": lambda left, right: left - right * _toward_zero(left, right),
    "andi": lambda left, right: left & right,
    "ori": lambda left, right: left | right,
    "xori": lambda left, right: left ^ right,
    "cmpi_eq": lambda left, right: left == right,
    "cmpi_ne": lambda left, right: left != right,
    "cmpi_slt": lambda left, right: left < right,
    "cmpi_sle": lambda left, right: left <= right,
    "cmpi_sgt": lambda left, right: left > right,
    "cmpi_sge": lambda left, right: left >= right,
    "maxsi": lambda left, right: max(left, right),
    "minsi": lambda left, right: min(left, right),
}


def run_host_code(
    code: ExecuteCode, arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, int]
) -> dict[str, int]:
    """Return the values that the entry of some host code defines, by name.

    Parameters
    ----------
    code : ExecuteCode
        Loops, loads and arithmetic on integers.
    arrays : mapping of str to array
        What it reads, by symbol.
    scalars : mapping of str to int
        Index arguments by symbol.

    Raises
    ------
    ProgramError
        The code holds something else, or reads outside an array.
    """
    host = _Host(arrays, scalars)
    host.block(code.entry)
    return host.values


class _Host:
    def __init__(self, arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, int]) -> None:
        self._arrays = arrays
        self._scalars = scalars
        self.values: dict[str, int] = {}

    def block(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            match statement:
                case Constant(value=int()):
                    self.values[statement.name] = int(statement.value)
                case Scalar():
                    self.values[statement.name] = self._scalars[statement.symbol]
                case Extent():
                    shape = self._arrays[statement.symbol].shape
                    self.values[statement.name] = shape[statement.dimension]
                case Load():
                    self.values[statement.name] = self._load(statement)
                case Compute(operation="convert"):  # integers of memory are signed already
                    self.values[statement.name] = self.values[statement.operands[0]]
                case Compute(operation="select"):
                    condition, left, right = (self.values[name] for name in statement.operands)
                    self.values[statement.name] = left if condition else right
                case Compute() if statement.operation in _BINARY:
                    left, right = (self.values[name] for name in statement.operands)
                    self.values[statement.name] = _BINARY[statement.operation](left, right)
                case For():
                    self._loop(statement)
                case _:
                    raise ProgramError(
                        "host code must be of loops, loads and arithmetic on integers, "
                        f"not {statement!r}"
                    )

    def _load(self, load: Load) -> int:
        array = self._arrays[load.symbol]
        place = tuple(self.values[name] for name in load.indices)
        if not all(0 <= at < extent for at, extent in zip(place, array.shape, strict=True)):
            raise ProgramError(
                f"position of a load of {load.symbol!r} by the host must be inside its shape "
                f"{array.shape}, not {place}"
            )
        return int(array[place])

    def _loop(self, loop: For) -> None:
        lower, upper, step = (self.values[name] for name in (loop.lower, loop.upper, loop.step))
        now = [self.values[carried.initial] for carried in loop.carried]
        turns = range(lower, upper, step)
        amount = self._amount(loop)
        if amount is not None:
            now, turns = [now[0] + amount * len(turns)], range(0)
        for turn in turns:
            self.values[loop.index] = turn
            for carried, value in zip(loop.carried, now, strict=True):
                self.values[carried.argument] = value
            self.block(loop.body)
            now = [self.values[carried.following] for carried in loop.carried]
        for carried, value in zip(loop.carried, now, strict=True):
            self.values[carried.result] = value

    def _amount(self, loop: For) -> int | None:
        """Return what a loop that only counts adds in each turn: one need not run it."""
        match loop.body, loop.carried:
            case [Compute(operation="addi") as add], [carried] if (
                add.name == carried.following and add.operands[0] == carried.argument
            ):
                other = add.operands[1]
                return self.values[other] if other not in (carried.argument, loop.index) else None
            case _:
                return None
