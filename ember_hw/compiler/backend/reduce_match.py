"""Which compute loops the reduce unit can run, told by their structure (`docs/reduce_unit.md`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ember_hw.compiler.backend.execute_code import (
    Case,
    Compute,
    ExecuteCode,
    For,
    GetVariable,
    Load,
    Pop,
    ReadRow,
    Statement,
    Store,
    is_row,
    row_element,
    walk,
)
from ember_hw.compiler.backend.execute_text import statement_text
from ember_hw.compiler.backend.reduce_values import CODE_LEVEL, Term, Values, iteration_level
from ember_hw.compiler.dialects.au_program import AccessProgram
from ember_hw.compiler.nest import Callback
from ember_hw.isa import Event, ReduceOperation, RowFormat

__all__ = ["CODED", "FORMATS", "HostReason", "Pooling", "copies_rows", "match_pooling"]

_OPERATIONS = {"addf": ReduceOperation.SUM, "maximumf": ReduceOperation.MAXIMUM}
#: Formats of rows that the unit takes, by the type of their numbers.
FORMATS = {"f32": RowFormat.FP32, "f16": RowFormat.FP16, "bf16": RowFormat.BF16}
#: Rows of codes that a unit with `int8_rows` takes, and whether their scale and bias are fp16.
CODED = {"q8f32": False, "q8f16": True}


class HostReason(Exception):
    """Why the execute code of a nest stays on the host; a clause that ends a sentence."""


@dataclass(frozen=True)
class Weight:
    """A scalar of the bundle that multiplies a row, and its type."""

    scalar: int
    element: str


@dataclass(frozen=True)
class Pooling:
    """A nest whose rows are pooled, one result for each iteration of a level.

    Attributes
    ----------
    case : Case
        What takes a row.
    row : Pop
        The row that it takes.
    entry : int
        Its row entry.
    element : str
        Type of the row's numbers.
    loop : For
        Over the columns: it reads the row, and writes the accumulator.
    read : ReadRow
        In it.
    store : Store
        In it.
    operation : ReduceOperation
        Sum or maximum.
    weight : Weight, optional
        What multiplies the row.
    level : int
        In each iteration of it one result comes, behind the loops below; CODE_LEVEL: one in all.
    """

    case: Case
    row: Pop
    entry: int
    element: str
    loop: For
    read: ReadRow
    store: Store
    operation: ReduceOperation
    weight: Weight | None
    level: int

    @property
    def indices(self) -> tuple[str, ...]:
        """Names that say which row of the output is the accumulator."""
        return self.store.indices[:-1]


def copies_rows(code: ExecuteCode) -> bool:
    """Whether all that is done with rows is to store them, column by column, maybe rounded."""
    for case in code.cases:
        rows = {s.name for s in case.body if isinstance(s, Pop) and is_row(s.type)}
        for statement in walk(case.body):
            if isinstance(statement, For):
                reads = [s for s in statement.body if isinstance(s, ReadRow) and s.row in rows]
                computes = [s for s in statement.body if not _moves(s)]
                if reads and computes:
                    return False
    return True


def _moves(statement: Statement) -> bool:
    """Whether a statement reads a row, stores a number, or only gives it another format."""
    if isinstance(statement, Compute):
        return statement.operation in ("extf", "truncf")
    return isinstance(statement, ReadRow | Store)


def match_pooling(
    code: ExecuteCode,
    program: AccessProgram,
    callbacks: tuple[Callback, ...],
    values: Values,
    *,
    takes_codes: bool = False,
) -> Pooling:
    """Return what the reduce unit does of a nest; `takes_codes`: it has `int8_rows`.

    Raises
    ------
    HostReason
        It can't run the nest.
    """
    callback, case, row = _row_case(code, callbacks, takes_codes=takes_codes)
    loop = _column_loop(code, case)
    pooling = _combination(code, callback, case, row, loop, values)
    level = _result_level(pooling, callback, program, values)
    pooling = replace(pooling, level=level)
    _check_others(code, callbacks, callback, pooling, values)
    return pooling


def _row_case(
    code: ExecuteCode, callbacks: tuple[Callback, ...], *, takes_codes: bool
) -> tuple[Callback, Case, Pop]:
    """Return the one callback that takes rows, its case, and the one row that it takes."""
    found: list[tuple[Callback, Case, Pop]] = []
    for callback in callbacks:
        case = code.case(callback.id)
        rows = [s for s in case.body if isinstance(s, Pop) and is_row(s.type)]
        if len(rows) > 1:
            raise HostReason(
                f"case {case.id} takes {len(rows)} rows, and the unit combines one row with its "
                "accumulator"
            )
        found += [(callback, case, row) for row in rows]
    if len(found) > 1:
        cases = " and ".join(str(case.id) for _, case, _ in found)
        raise HostReason(f"cases {cases} take rows, and the compiler pools those of one case")
    ((callback, case, row),) = found
    if callback.event is not Event.ITERATE:
        raise HostReason(
            f"case {case.id} takes a row at the {callback.event.name.lower()} of a loop"
        )
    taken = (*FORMATS, *(CODED if takes_codes else ()))
    if row_element(row.type) not in taken:
        text = f"{', '.join(taken[:-1])} and {taken[-1]}"
        raise HostReason(f"rows are of {row_element(row.type)}, and the unit takes {text}")
    return callback, case, row


def _column_loop(code: ExecuteCode, case: Case) -> For:
    """Return the one loop of a case; the rest of it only says where the loop works."""
    loops = [statement for statement in walk(case.body) if isinstance(statement, For)]
    if any(loop.carried for loop in loops):
        raise HostReason(
            f"case {case.id} folds the columns of its row, and the unit keeps one number of each"
        )
    if len(loops) != 1:
        raise HostReason(f"case {case.id} has {len(loops)} loops, and the unit does what one does")
    for statement in case.body:
        if not isinstance(statement, Pop | GetVariable | Compute | For):
            text = statement_text(statement, code.types())
            raise HostReason(f"case {case.id} does more than to combine a row: '{text}'")
    return loops[0]


def _combination(
    code: ExecuteCode, callback: Callback, case: Case, row: Pop, loop: For, values: Values
) -> Pooling:
    """Read the body of a column loop: a load, maybe a product, a sum or maximum, a store."""
    made = {s.name: s for s in loop.body if isinstance(s, Compute | Load | ReadRow)}
    stores = [s for s in loop.body if isinstance(s, Store)]
    if len(stores) != 1 or len(made) + 1 != len(loop.body):
        raise HostReason(f"case {case.id} does more to a column than to combine it with a row's")
    (store,) = stores
    new = made.pop(store.value, None)
    if not isinstance(new, Compute) or new.operation not in _OPERATIONS:
        what = f"by {new.operation!r}" if isinstance(new, Compute) else "by nothing"
        raise HostReason(
            f"case {case.id} makes its columns {what}, and the unit adds or takes the maximum"
        )
    operands = [made.pop(name, None) for name in new.operands]
    loads = [operand for operand in operands if isinstance(operand, Load)]
    others = [operand for operand in operands if not isinstance(operand, Load)]
    if len(loads) != 1 or not _same_place(loads[0], store, loop, values):
        raise HostReason(f"case {case.id} doesn't combine a row with the element that it stores to")
    number, weight = others[0], None
    if isinstance(number, Compute) and number.operation == "mulf":
        factors = [made.pop(name, name) for name in number.operands]
        weights = [factor for factor in factors if isinstance(factor, str)]
        numbers = [factor for factor in factors if not isinstance(factor, str)]
        if len(weights) != 1:
            raise HostReason(
                f"case {case.id} multiplies columns by more than one scalar of the row"
            )
        weight = _weight(callback, case, weights[0])
        number = numbers[0]
    if isinstance(number, Compute) and number.operation == "extf":
        number = made.pop(number.operands[0], None)
    if not isinstance(number, ReadRow) or number.row != row.name or number.index != loop.index:
        raise HostReason(f"case {case.id} computes with more than a column of its row")
    if made:
        raise HostReason(f"case {case.id} does more to a column than to combine it with a row's")
    pops = [statement for statement in case.body if isinstance(statement, Pop)]
    entry = callback.operands[pops.index(row)].index
    operation = _OPERATIONS[new.operation]
    element = row_element(row.type)
    return Pooling(case, row, entry, element, loop, number, store, operation, weight, CODE_LEVEL)


def _same_place(load: Load, store: Store, loop: For, values: Values) -> bool:
    """Whether a load reads what a store writes: row by terms, column by the loop's variable."""
    if load.symbol != store.symbol or not load.indices[-1] == store.indices[-1] == loop.index:
        return False
    terms = [values.terms.get(name) for name in store.indices[:-1]]
    return None not in terms and terms == [values.terms.get(name) for name in load.indices[:-1]]


def _weight(callback: Callback, case: Case, name: str) -> Weight:
    """Return the scalar of the bundle that a name is, as it came or widened."""
    widened = {s.name: s for s in case.body if isinstance(s, Compute) and s.operation == "extf"}
    popped = widened[name].operands[0] if name in widened else name
    pops = [statement for statement in case.body if isinstance(statement, Pop)]
    for pop, operand in zip(pops, callback.operands, strict=True):
        if pop.name == popped and pop.type in FORMATS:
            return Weight(operand.index, pop.type)
    raise HostReason(
        f"case {case.id} multiplies columns by {name!r}, which no bundle holds as f32, f16 or bf16"
    )


def _result_level(
    pooling: Pooling, callback: Callback, program: AccessProgram, values: Values
) -> int:
    """Return the level whose iterations each have a result, see `Pooling`."""
    case, memory = pooling.case, pooling.store.symbol
    where = [values.terms[name] for name in pooling.indices]
    bounds = [
        values.terms.get(n) for n in (pooling.loop.lower, pooling.loop.upper, pooling.loop.step)
    ]
    level = max((values.level(term) for term in (*where, *_known(bounds))), default=CODE_LEVEL)
    below = callback.level
    if level >= below or None in bounds:
        raise HostReason(f"case {case.id} writes to another place of {memory!r} at each row")
    if not values.are_new(where, level):
        raise HostReason(
            f"case {case.id} may come back to a row of {memory!r} that has its result: its indices "
            "don't count"
        )
    while level + 1 < below and program.units[level + 1].is_relay:
        level += 1  # a relay has one iteration
    if pooling.operation is ReduceOperation.MAXIMUM and level + 1 != below:
        raise HostReason(
            f"case {case.id} takes a maximum over {below - level} loops, and the host knows of one "
            "whether it ran"
        )
    return level


def _known(terms: list[Term | None]) -> Iterator[Term]:
    yield from (term for term in terms if term is not None)


def _check_others(
    code: ExecuteCode,
    callbacks: tuple[Callback, ...],
    taker: Callback,
    pooling: Pooling,
    values: Values,
) -> None:
    """Refuse other cases that the host couldn't run without the rows, or before the result."""
    level, memory = pooling.level, pooling.store.symbol
    where = [values.terms[name] for name in pooling.indices]
    for callback in callbacks:
        if callback is taker:
            continue
        case = code.case(callback.id)
        is_frame = callback.level == level + 1 and callback.event is not Event.ITERATE
        if iteration_level(callback) > level or (callback.level > level and not is_frame):
            raise HostReason(f"case {case.id} runs between the rows of one result")
        for slot in (values.slot(s.name) for s in case.body if isinstance(s, Pop)):
            # A loop that may have no iteration has no values at its begin and end.
            assert slot is None or values.places.owners[slot][0] <= level, f"{slot} at {callback}"
        is_behind = callback.level == level + 1 and callback.event is Event.END
        for statement in walk(case.body):
            if not isinstance(statement, Store | Load) or statement.symbol != memory:
                continue
            terms = [values.terms.get(name) for name in statement.indices[:-1]]
            if terms != where or (isinstance(statement, Store) and not is_behind):
                raise HostReason(
                    f"case {case.id} uses {memory!r} in another way than the pooled loop: "
                    f"{statement_text(statement, code.types())}"
                )
