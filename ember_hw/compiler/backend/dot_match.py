"""Which sums across rows the reduce unit can run, told by the structure of the execute code.

A case has a loop over the columns of its rows that carries one number: a sum, from +0 on, of what a
chain of at most two operations makes of them (`isa.dot`). What is done with the sum is not looked
at: the host does it, as it does all else in the cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import copysign
from typing import TypeAlias

from ember_hw.compiler.backend.execute_code import (
    Case,
    Compute,
    ExecuteCode,
    For,
    GetVariable,
    Pop,
    ReadRow,
    SetVariable,
    Statement,
    is_row,
    row_element,
    walk,
)
from ember_hw.compiler.backend.reduce_match import FORMATS, HostReason
from ember_hw.compiler.backend.reduce_values import Values
from ember_hw.compiler.dialects.au_program import AccessProgram
from ember_hw.compiler.nest import Callback
from ember_hw.isa import Chain, Event, Fold, Place

__all__ = ["Dot", "DotRow", "folds_in_a_loop", "folds_rows", "match_dot"]


@dataclass(frozen=True)
class DotRow:
    """A row that is summed across.

    Attributes
    ----------
    entry : int
        Its row entry.
    place : Place
        Which of the rows it is.
    is_negated : bool
        Whether its numbers get the other sign.
    element : str
        Type of its numbers.
    """

    entry: int
    place: Place
    is_negated: bool
    element: str


@dataclass(frozen=True)
class Dot:
    """A nest whose rows are summed across.

    Attributes
    ----------
    callback : Callback
        What a result starts.
    loop : For
        Over the columns, in its case.
    kept : tuple of int
        Variables whose rows the loop reads: those of cases that ran before.
    rows : tuple of DotRow
        In the order of their entries.
    fold : Fold
        What is summed.
    second, third : Chain
        How the rows join.
    """

    callback: Callback
    loop: For
    kept: tuple[int, ...]
    rows: tuple[DotRow, ...]
    fold: Fold
    second: Chain
    third: Chain


@dataclass(frozen=True)
class _Leaf:
    """A row's number."""

    row: str
    is_negated: bool


@dataclass(frozen=True)
class _Node:
    """Two numbers that are joined; signs are leaves', as no sum depends on that of a zero."""

    chain: Chain
    lhs: _Tree
    rhs: _Tree


_Tree: TypeAlias = "_Leaf | _Node"


def folds_rows(code: ExecuteCode) -> bool:
    """Whether a loop of the code carries a number that it makes of rows."""
    return any(_folds(statement) for case in code.cases for statement in walk(case.body))


def folds_in_a_loop(code: ExecuteCode) -> bool:
    """Whether such a loop stands in another one, and so folds a row many times."""
    return any(
        _folds(inner)
        for case in code.cases
        for statement in walk(case.body)
        if isinstance(statement, For)
        for inner in walk(statement.body)
    )


def _folds(statement: Statement) -> bool:
    return (
        isinstance(statement, For)
        and bool(statement.carried)
        and any(isinstance(inner, ReadRow) for inner in statement.body)
    )


def match_dot(
    code: ExecuteCode, program: AccessProgram, callbacks: tuple[Callback, ...], values: Values
) -> Dot:
    """Return what the reduce unit does of a nest that folds rows.

    Raises
    ------
    HostReason
        It can't run the nest.
    """
    callback, case, loop = _fold_loop(code, callbacks)
    entries, kept = _rows_of(code, callbacks, callback, case)
    types = code.types()
    for element in (row_element(types[name]) for name in entries):
        if element not in FORMATS:
            raise HostReason(f"rows are of {element}, and the unit takes f32, f16 and bf16")
    _check_uses(code, loop, set(kept))
    _check_columns(case, loop, program, values)
    fold, tree = _summed(case, loop, values)
    second, third, leaves = _chain(case, fold, tree)
    # What nothing needs is no longer there.
    assert {leaf.row for leaf in leaves} == set(entries), f"{leaves} must be all of {entries}"
    assert len(entries) == len(program.rows), f"{entries} must be all of {program.rows}"
    rows = [
        DotRow(entries[leaf.row], place, leaf.is_negated, row_element(types[leaf.row]))
        for place, leaf in zip(Place, leaves, strict=False)
    ]
    rows.sort(key=lambda row: row.entry)
    return Dot(callback, loop, tuple(kept.values()), tuple(rows), fold, second, third)


def _fold_loop(code: ExecuteCode, callbacks: tuple[Callback, ...]) -> tuple[Callback, Case, For]:
    """Return the one loop that folds rows, its case, and what starts that."""
    found: list[tuple[Callback, Case, For, bool]] = []
    for callback in callbacks:
        case = code.case(callback.id)
        for statement in walk(case.body):
            if isinstance(statement, For) and any(isinstance(s, ReadRow) for s in statement.body):
                if not statement.carried:
                    raise HostReason(
                        f"case {case.id} needs its rows once more, behind the sum across them"
                    )
                found.append((callback, case, statement, statement in case.body))
    if len(found) != 1:
        raise HostReason(f"{len(found)} loops fold rows, and the unit does what one does")
    ((callback, case, loop, is_plain),) = found
    if not is_plain:
        raise HostReason(
            f"case {case.id} folds its rows in a loop or a branch, and the unit does so once"
        )
    if callback.event is not Event.ITERATE:
        raise HostReason(
            f"case {case.id} folds rows at the {callback.event.name.lower()} of a loop"
        )
    return callback, case, loop


def _rows_of(
    code: ExecuteCode, callbacks: tuple[Callback, ...], callback: Callback, case: Case
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the row entry of each row of a case by its name, and the variables that keep some."""
    entries = _popped(case, callback)
    if not entries:
        raise HostReason(f"case {case.id} folds rows and takes none")
    kept: dict[str, int] = {}
    types = code.types()
    for statement in case.body:
        if not isinstance(statement, GetVariable) or not is_row(types[statement.name]):
            continue
        kept[statement.name] = statement.number
        entries[statement.name] = _kept_entry(code, callbacks, callback, statement.number)
    return entries, kept


def _kept_entry(
    code: ExecuteCode, callbacks: tuple[Callback, ...], callback: Callback, number: int
) -> int:
    """Return the entry of the row that a variable keeps from the begin of a loop on."""
    for other in callbacks:
        case = code.case(other.id)
        for statement in walk(case.body):
            if isinstance(statement, SetVariable) and statement.number == number:
                entry = _popped(case, other).get(statement.value)
                is_begin = other.event is Event.BEGIN and other.level <= callback.level
                if entry is not None and is_begin and statement in case.body:
                    return entry
    raise HostReason(
        f"case {callback.id} keeps a row that doesn't come at the begin of a loop around it"
    )


def _popped(case: Case, callback: Callback) -> dict[str, int]:
    """Return the row entry of each row that a case takes."""
    pops = [statement for statement in case.body if isinstance(statement, Pop)]
    return {
        pop.name: operand.index
        for pop, operand in zip(pops, callback.operands, strict=True)
        if is_row(pop.type)
    }


def _check_uses(code: ExecuteCode, loop: For, kept: set[str]) -> None:
    """Refuse rows that anything but the loop needs: they don't leave the unit."""
    types = code.types()
    settings = 0
    for case in code.cases:
        for statement in walk(case.body):
            match statement:
                case GetVariable(name):
                    is_other = is_row(types[name]) and name not in kept
                case ReadRow():
                    is_other = statement not in loop.body
                case SetVariable(_, value):
                    is_other = False
                    settings += is_row(types[value])
                case _:
                    is_other = False
            if is_other:
                raise HostReason(f"case {case.id} needs a row besides the sum across it")
    if settings != len(kept):
        raise HostReason("rows are kept more often than the sum across them needs")


def _check_columns(case: Case, loop: For, program: AccessProgram, values: Values) -> None:
    """Refuse a loop that isn't over all columns, one after the other."""
    lower, upper, step = (
        values.polynomial(term) if (term := values.terms.get(name)) else None
        for name in (loop.lower, loop.upper, loop.step)
    )
    columns = values.polynomial(("slot", program.rows[0].length))
    # The shape of a table that belongs to the program is a number in its access program alone.
    is_number = columns is not None and not any(columns) and upper is not None and any(upper)
    if lower != {} or step != {(): 1} or (upper != columns and not is_number):
        raise HostReason(f"case {case.id} folds other columns than all of its rows', in order")


def _summed(case: Case, loop: For, values: Values) -> tuple[Fold, _Tree]:
    """Read what a loop adds up; each statement of its body must take part."""
    if len(loop.carried) != 1:
        raise HostReason(f"case {case.id} folds {len(loop.carried)} numbers, and the unit one")
    (carried,) = loop.carried
    match values.terms.get(carried.initial):
        case ("constant", "f32", (int() | float()) as value) if (
            value == 0 and copysign(1, value) > 0
        ):
            pass
        case _:
            raise HostReason(f"case {case.id} begins its sum with another number than +0")
    body = _Body(case, loop)
    new = body.take(carried.following)
    match new:
        case Compute(_, _, "addf" | "subf" as operation, (lhs, rhs)) if (
            carried.argument in (lhs, rhs) and lhs != rhs
        ):
            name = rhs if lhs == carried.argument else lhs
            is_negated = operation == "subf"
            if is_negated and name == lhs:
                raise HostReason(f"case {case.id} folds its rows by another operation than a sum")
        case _:
            raise HostReason(f"case {case.id} folds its rows by another operation than a sum")
    fold, name, is_negated = body.fold(name, is_negated)
    tree = body.tree(name, is_negated)
    body.check_used()
    return fold, tree


class _Body:
    """The statements of a loop's body, by name."""

    def __init__(self, case: Case, loop: For) -> None:
        self._case, self._loop = case, loop
        self._made: Mapping[str, Statement] = {
            s.name: s for s in loop.body if isinstance(s, Compute | ReadRow)
        }
        self._used: set[str] = set()

    def take(self, name: str) -> Statement | None:
        """Return what makes a number in the loop; None if nothing does."""
        self._used.add(name)
        return self._made.get(name)

    def fold(self, name: str, is_negated: bool) -> tuple[Fold, str, bool]:
        """Return what is summed of which number, with which sign."""
        made = self.take(name)
        match made:
            case Compute(_, _, "negf", (operand,)):
                return self.fold(operand, not is_negated)
            case Compute(_, _, "absf", (operand,)) if not is_negated:
                return Fold.ABSOLUTE, operand, False
            case Compute(_, _, "mulf", (lhs, rhs)) if lhs == rhs and not is_negated:
                return Fold.SQUARE, lhs, False
            case _:
                return Fold.SUM, name, is_negated

    def tree(self, name: str, is_negated: bool) -> _Tree:
        """Return what makes a number of rows."""
        made = self.take(name)
        match made:
            case ReadRow(_, row, index) if index == self._loop.index:
                return _Leaf(row, is_negated)
            case Compute(_, _, "extf", (operand,)) if isinstance(self.take(operand), ReadRow):
                return self.tree(operand, is_negated)
            case Compute(_, _, "negf", (operand,)):
                return self.tree(operand, not is_negated)
            case Compute(_, _, "addf" | "subf" as operation, (lhs, rhs)):
                right = self.tree(rhs, is_negated != (operation == "subf"))
                return _Node(Chain.ADD, self.tree(lhs, is_negated), right)
            case Compute(_, _, "mulf", (lhs, rhs)):
                return _Node(Chain.MULTIPLY, self.tree(lhs, is_negated), self.tree(rhs, False))
            case Compute():
                raise HostReason(
                    f"case {self._case.id} computes {made.operation!r} of its columns, and the "
                    "unit adds, subtracts and multiplies them"
                )
            case _:
                raise HostReason(
                    f"case {self._case.id} folds {name!r}, which is no column of its rows"
                )

    def check_used(self) -> None:
        """Refuse statements of which the sum doesn't depend."""
        for statement in self._loop.body:
            is_used = isinstance(statement, Compute | ReadRow) and statement.name in self._used
            if not is_used:
                raise HostReason(f"case {self._case.id} does more to its columns than to fold them")


def _chain(case: Case, fold: Fold, tree: _Tree) -> tuple[Chain, Chain, list[_Leaf]]:
    """Return how rows join: the first and the second, and what comes of these with the third."""
    leaves = _leaves(tree)
    if len(leaves) > len(Place) or len({leaf.row for leaf in leaves}) < len(leaves):
        raise HostReason(
            f"case {case.id} computes with {len(leaves)} numbers for each column, and the unit's "
            "chain takes those of up to 3 rows, once each"
        )
    second, third = Chain.NONE, Chain.NONE
    match tree:
        case _Leaf():
            pass
        case _Node(chain, _Leaf(), _Leaf()):
            second = chain
        case _Node(chain, _Node(inner), _Leaf()):
            second, third = inner, chain
        case _Node(chain, _Leaf(), _Node(inner)):
            second, third = inner, chain
            leaves = [*leaves[1:], leaves[0]]
        case _:
            raise AssertionError(f"{tree} has more than three leaves")
    if fold is Fold.SQUARE and third is Chain.MULTIPLY:
        raise HostReason(
            f"case {case.id} squares a product with its third row, and the unit has no multiplier "
            "left for that"
        )
    return second, third, leaves


def _leaves(tree: _Tree) -> list[_Leaf]:
    return [tree] if isinstance(tree, _Leaf) else [*_leaves(tree.lhs), *_leaves(tree.rhs)]
