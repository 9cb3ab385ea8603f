"""Integers of execute code as terms over the loops of its access program.

Two names with the same term are the same number, as long as the loops that the term depends on
stand still. That is how `reduce_match` knows that all rows of a loop go into one row of the output,
and that each result goes into another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from ember_hw.compiler.backend.execute_code import (
    Compute,
    Constant,
    ExecuteCode,
    Extent,
    GetVariable,
    Increment,
    Pop,
    Scalar,
    SetVariable,
    Statement,
    defines,
    walk,
)
from ember_hw.compiler.backend.exports import Places
from ember_hw.compiler.dialects.au import AluOperation, Slot, SlotKind
from ember_hw.compiler.dialects.au_program import AccessProgram, AluStream
from ember_hw.compiler.nest import Callback
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import Event

__all__ = ["CODE_LEVEL", "Polynomial", "Term", "Values", "iteration_level"]

#: Level of what no loop changes.
CODE_LEVEL = -1

#: An operation and its operands, which are terms, numbers or names.
Term: TypeAlias = "tuple[Any, ...]"

#: Coefficient of each product of symbols; ``%t<level>`` is the variable of a loop.
Polynomial: TypeAlias = "dict[tuple[str, ...], int]"

_ONE: Polynomial = {(): 1}


def iteration_level(callback: Callback) -> int:
    """Return the level in each of whose iterations an event happens, as often as it does."""
    return callback.level if callback.event is Event.ITERATE else callback.level - 1


class Values:
    """Terms of the names of a nest's code.

    Parameters
    ----------
    code : ExecuteCode
        The code.
    program : AccessProgram
        What pushes its operands.
    callbacks : sequence of Callback
        What the pushes start.
    config : AcceleratorConfig
        What the program was assembled for.

    Attributes
    ----------
    places : Places
        Levels of the program's values.
    terms : dict of str to Term
        By name, of the names that have one: constants, extents, arguments, popped scalars,
        variables, integer operations on these, and all that the code's entry made.
    """

    def __init__(
        self,
        code: ExecuteCode,
        program: AccessProgram,
        callbacks: Iterable[Callback],
        config: AcceleratorConfig,
    ) -> None:
        self.places = Places(program, config)
        self._program = program
        self._types = code.types()
        self._callbacks = {callback.id: callback for callback in callbacks}
        self._updates: dict[int, list[tuple[Callback, Statement, bool]]] = {}
        self._initial = {variable.number: variable.initial for variable in code.variables}
        self.terms: dict[str, Term] = {}
        self._add(code.entry, {}, ())
        for statement in code.entry:
            for name in defines(statement):
                self.terms.setdefault(name, ("entry", name))
        pushed = {push.id: push.operands for push in program.pushes}
        for case in code.cases:
            if case.id not in self._callbacks:
                continue
            callback = self._callbacks[case.id]
            for statement in walk(case.body):
                if isinstance(statement, Increment | SetVariable):
                    update = callback, statement, statement in case.body
                    self._updates.setdefault(statement.number, []).append(update)
            pops = [statement.name for statement in case.body if isinstance(statement, Pop)]
            slots = dict(zip(pops, pushed[case.id], strict=True))
            self._add(case.body, slots, case.body)

    def _add(
        self,
        statements: Iterable[Statement],
        slots: Mapping[str, Slot],
        case: tuple[Statement, ...],
    ) -> None:
        changed: set[int] = set()
        for statement in statements:
            match statement:
                case Constant():
                    self.terms[statement.name] = ("constant", statement.type, statement.value)
                case Extent():
                    symbol, dimension = statement.symbol, statement.dimension
                    self.terms[statement.name] = ("symbol", f"{symbol}.dim{dimension}")
                case Scalar():
                    self.terms[statement.name] = ("symbol", statement.symbol)
                case Pop():
                    self.terms[statement.name] = ("slot", slots[statement.name])
                case GetVariable():
                    if statement.number not in changed:
                        self.terms[statement.name] = ("variable", statement.number)
                case Compute():
                    known = [self.terms.get(name) for name in statement.operands]
                    if self._types[statement.name] in ("index", "i64", "i32") and None not in known:
                        self.terms[statement.name] = (statement.operation, *known)
                case _:
                    for inner in walk((statement,)):
                        if isinstance(inner, Increment | SetVariable):
                            changed.add(inner.number)

    def slot(self, name: str) -> Slot | None:
        """Return the slot that a popped name comes from."""
        match self.terms.get(name):
            case ("slot", Slot() as slot):
                return slot
            case _:
                return None

    def level(self, term: Term) -> int:
        """Return the innermost level whose iterations change a term, CODE_LEVEL if none does."""
        match term:
            case ("slot", Slot() as slot):
                return self.places.owners[slot][0]
            case ("variable", int() as number):
                updates = self._updates.get(number, [])
                return max((iteration_level(c) for c, _, _ in updates), default=CODE_LEVEL)
            case _:
                parts: list[Term] = [part for part in term[1:] if isinstance(part, tuple)]
                return max(map(self.level, parts), default=CODE_LEVEL)

    def are_new(self, terms: Iterable[Term], level: int) -> bool:
        """Whether the terms are another tuple of numbers in each iteration of a level.

        They are if one of them counts these iterations, or if the loops down to the level can be
        told from them: each is a number in a mixed radix whose digits are the loops' variables.
        """
        terms = tuple(terms)
        if any(self._counts(term, level) for term in terms):
            return True
        units = self._program.units[: level + 1]
        told = {number for number, unit in enumerate(units) if unit.is_relay}
        for term in terms:
            told |= self._digits(self.polynomial(term))
        return told.issuperset(range(level + 1))

    def _counts(self, term: Term, level: int) -> bool:
        """Whether a term is a variable that grows in each iteration of a level."""
        match term:
            case ("variable", int() as number):
                updates = self._updates.get(number, [])
            case _:
                return False
        if not all(isinstance(s, Increment) and s.amount > 0 for _, s, _ in updates):
            return False
        return any(iteration_level(c) == level and is_always for c, _, is_always in updates)

    def _counted(self, number: int) -> int | None:
        """Return the loop whose iterations a variable numbers, from 0 or 1 each time it begins."""
        updates = self._updates.get(number, [])
        steps = [(c, s, a) for c, s, a in updates if isinstance(s, Increment)]
        if len(steps) != 1 or not self._is_zero(self._initial.get(number)):
            return None
        ((callback, step, is_always),) = steps
        level = iteration_level(callback)
        resets = [(c, s, a) for c, s, a in updates if isinstance(s, SetVariable)]
        begins_anew = any(iteration_level(c) == level - 1 and a for c, _, a in resets)
        is_reset = all(
            self._is_zero(s.value) and iteration_level(c) == level - 1 for c, s, _ in resets
        )
        counts = step.amount == 1 and is_always and level >= 0
        return level if counts and is_reset and (begins_anew or level == 0) else None

    def _is_zero(self, name: str | None) -> bool:
        match self.terms.get(name or ""):
            case ("constant", str(), 0):
                return True
            case _:
                return False

    def polynomial(self, term: Term) -> Polynomial | None:
        """Return a term as a sum of products; None if it isn't one."""
        match term:
            case ("constant", str(), int() as value):
                return _polynomial({(): value})
            case ("symbol", str() as symbol):
                return {(symbol,): 1}
            case ("slot", Slot() as slot):
                return self._slot_polynomial(slot)
            case ("variable", int() as number):
                level = self._counted(number)
                return None if level is None else {(_variable(level),): 1}
            case ("addi" | "subi" | "muli", _, _):
                operation, lhs, rhs = term
                return _combined(operation[:3], self.polynomial(lhs), self.polynomial(rhs))
            case _:
                return None

    def _slot_polynomial(self, slot: Slot) -> Polynomial | None:
        match slot.kind:
            case SlotKind.INTEGER:
                return _polynomial({(): slot.number})
            case SlotKind.ARGUMENT:
                (argument,) = (a for a in self._program.arguments if a.number == slot.number)
                return {(argument.symbol,): 1}
            case SlotKind.UNIT:
                level = self.places.levels[slot.number]
                unit = self._program.units[level]
                if unit.is_relay:  # has one iteration, from its lower bound on
                    return self._slot_polynomial(unit.lower)
                return {(_variable(level),): 1}
            case _:
                pass
        (stream,) = (s for s in self._program.streams if s.number == slot.number)
        if not isinstance(stream, AluStream) or stream.operation is AluOperation.SHL:
            return None
        lhs, rhs = self._slot_polynomial(stream.lhs), self._slot_polynomial(stream.rhs)
        return _combined(stream.operation.value, lhs, rhs)

    def _digits(self, polynomial: Polynomial | None) -> set[int]:
        """Return the levels whose variables a number tells; none if it isn't in a mixed radix."""
        if polynomial is None:
            return set()
        variables = {_variable(k): k for k in range(len(self._program.units))}
        weights: dict[int, Polynomial] = {}
        for product, coefficient in polynomial.items():
            digits = [factor for factor in product if factor in variables]
            if len(digits) > 1:
                return set()
            if digits:
                rest = tuple(factor for factor in product if factor != digits[0])
                weights.setdefault(variables[digits[0]], {})[rest] = coefficient
        expected: Polynomial | None = _ONE
        for level in sorted(weights, reverse=True):
            if weights[level] != expected:
                return set()
            expected = _combined("mul", expected, self._iterations(level))
        return set(weights)

    def _iterations(self, level: int) -> Polynomial | None:
        """Return the iterations of a loop that counts from 0 by ones."""
        unit = self._program.units[level]
        starts_at_0 = unit.lower == Slot(SlotKind.INTEGER, 0)
        if not starts_at_0 or unit.step != 1 or unit.upper_offset is not None:
            return None
        extent = self._slot_polynomial(unit.upper)
        variables = {_variable(k) for k in range(len(self._program.units))}
        is_fixed = extent is not None and not any(variables & set(product) for product in extent)
        return extent if is_fixed else None


def _variable(level: int) -> str:
    return f"%t{level}"


def _polynomial(products: Mapping[tuple[str, ...], int]) -> Polynomial:
    return {product: value for product, value in products.items() if value}


def _combined(operation: str, lhs: Polynomial | None, rhs: Polynomial | None) -> Polynomial | None:
    if lhs is None or rhs is None:
        return None
    result: Polynomial = {}
    if operation == "mul":
        for one, value in lhs.items():
            for other, factor in rhs.items():
                product = tuple(sorted((*one, *other)))
                result[product] = result.get(product, 0) + value * factor
        return _polynomial(result)
    sign = -1 if operation == "sub" else 1
    for product in (*lhs, *rhs):
        result[product] = lhs.get(product, 0) + sign * rhs.get(product, 0)
    return _polynomial(result)
