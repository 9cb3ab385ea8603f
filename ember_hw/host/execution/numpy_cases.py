"""Reads execute code for the NumPy engine: which names are free, which accesses may conflict."""

from __future__ import annotations

from collections.abc import Iterator

from ember_hw.compiler.backend.execute_code import (
    Case,
    Compute,
    Constant,
    ExecuteCode,
    For,
    GetVariable,
    If,
    Increment,
    Load,
    Pop,
    ReadRow,
    SetVariable,
    Statement,
    Store,
    defines,
    reads,
    walk,
)
from ember_hw.host.execution.numpy_plan import (
    Accumulation,
    CasePlan,
    CellAccess,
    MemoryAccess,
    Plan,
    Span,
)
from ember_hw.host.execution.numpy_sums import ACCUMULATIONS

__all__ = ["make_plan"]


def make_plan(code: ExecuteCode) -> Plan:
    """Return what is known of the code before any token."""
    written = {s.symbol for c in code.cases for s in walk(c.body) if isinstance(s, Store)}
    shared = {name for s in code.entry if isinstance(name := getattr(s, "name", None), str)}
    constants = {s.name: s.value for s in code.entry if isinstance(s, Constant)}
    found: list[int] = []
    while True:
        more = [
            variable.number
            for variable in code.variables
            if variable.number not in found
            and _is_free(code, variable.number, found, shared, written)
        ]
        if not more:
            break
        found += more
    cases = {
        case.id: _CaseReader(case, shared, constants, set(found), written).plan()
        for case in code.cases
    }
    return Plan(tuple(found), cases)


def _free_names(
    case: Case, variables: list[int] | set[int], shared: set[str], written: set[str]
) -> dict[str, tuple[int, Statement]]:
    """Return the statements at the top of a case whose names are free, by name."""
    free: dict[str, tuple[int, Statement]] = {}

    def is_known(names: tuple[str, ...]) -> bool:
        return all(name in shared or name in free for name in names)

    for position, statement in enumerate(case.body):
        match statement:
            case Pop():
                free[statement.name] = position, statement
            case GetVariable() if statement.number in variables:
                free[statement.name] = position, statement
            case Compute() if is_known(statement.operands):
                free[statement.name] = position, statement
            case Load() if statement.symbol not in written and is_known(statement.indices):
                free[statement.name] = position, statement
            case _:
                pass
    return free


def _is_free(
    code: ExecuteCode, number: int, known: list[int], shared: set[str], written: set[str]
) -> bool:
    for case in code.cases:
        names = _free_names(case, known, shared, written)
        for statement in walk(case.body):
            if isinstance(statement, SetVariable | Increment) and statement.number == number:
                if not any(statement is top for top in case.body):
                    return False
                if isinstance(statement, SetVariable):
                    if statement.value not in names and statement.value not in shared:
                        return False
    return True


class _CaseReader:
    """Reads one case."""

    def __init__(
        self,
        case: Case,
        shared: set[str],
        constants: dict[str, int | float],
        variables: set[int],
        written: set[str],
    ) -> None:
        self.case, self.shared, self.constants = case, shared, constants
        self.variables, self.written = variables, written
        self.free = _free_names(case, variables, shared, written)
        self.definitions = {s.name: s for s in walk(case.body) if isinstance(s, Compute)}

    def plan(self) -> CasePlan:
        accumulations = [a for a in self._accumulations() if a is not None]
        writes = tuple(
            (position, statement)
            for position, statement in enumerate(self.case.body)
            if isinstance(statement, SetVariable | Increment) and statement.number in self.variables
        )
        return CasePlan(
            self.case,
            tuple(self.free.values()),
            tuple(self._memories({a.target for a in accumulations})),
            tuple(self._cells({a.target for a in accumulations})),
            writes,
            tuple(
                (position, statement)
                for position, top in enumerate(self.case.body)
                for statement in walk((top,))
                if isinstance(statement, GetVariable)
                and statement is not top
                and statement.number in self.variables
            ),
            tuple(accumulations),
        )

    def _accesses(
        self, body: tuple[Statement, ...], loops: tuple[For, ...] = ()
    ) -> Iterator[tuple[Load | Store, tuple[For, ...]]]:
        for statement in body:
            match statement:
                case Load() | Store() if statement.symbol in self.written:
                    yield statement, loops
                case For():
                    yield from self._accesses(statement.body, (*loops, statement))
                case If():
                    yield from self._accesses(statement.then, loops)
                    yield from self._accesses(statement.otherwise, loops)
                case _:
                    pass

    def _span(self, index: str, loops: tuple[For, ...]) -> Span:
        if index in self.free or index in self.shared:
            return Span(index)
        for loop in loops:
            if index == loop.index:
                return self._part(loop, None)
            found = self.definitions.get(index)
            if found is not None and found.operation == "addi":
                for variable, other in (found.operands, found.operands[::-1]):
                    if variable == loop.index and (other in self.free or other in self.shared):
                        return self._part(loop, other)
        return Span(None)

    def _part(self, loop: For, offset: str | None) -> Span:
        """Return the span of a loop's variable plus an offset: lanes of a vector from it on."""
        found = self.definitions.get(loop.upper)
        if offset is None or found is None or found.operation != "minsi":
            return Span(None)
        first = self.definitions.get(loop.lower)
        is_forward = first is not None and first.operation == "maxsi"
        widths = [self.constants[name] for name in found.operands if name in self.constants]
        zero = first is not None and any(self.constants.get(n) == 0 for n in first.operands)
        if len(widths) != 1 or not is_forward or not zero:
            return Span(None)
        return Span(offset, int(widths[0]))

    def _memories(self, accumulated: set[str | int]) -> list[MemoryAccess]:
        found: dict[tuple[str, tuple[Span, ...]], tuple[bool, bool]] = {}
        for statement, loops in self._accesses(self.case.body):
            spans = tuple(self._span(index, loops) for index in statement.indices)
            reads, writes = found.get((statement.symbol, spans), (False, False))
            is_store = isinstance(statement, Store)
            found[statement.symbol, spans] = reads or not is_store, writes or is_store
        return [
            MemoryAccess(symbol, spans, reads, writes, symbol in accumulated)
            for (symbol, spans), (reads, writes) in found.items()
        ]

    def _cells(self, accumulated: set[str | int]) -> Iterator[CellAccess]:
        for position, top in enumerate(self.case.body):
            for statement in walk((top,)):
                if not isinstance(statement, GetVariable | SetVariable | Increment):
                    continue
                number = statement.number
                if number in self.variables:
                    continue
                begins = is_known = False
                if isinstance(statement, SetVariable) and statement is top:
                    value = statement.value
                    begins = number not in accumulated and not self._depends(value, number)
                    is_known = begins and (value in self.free or value in self.shared)
                yield CellAccess(
                    number,
                    position,
                    statement,
                    not isinstance(statement, GetVariable),
                    begins,
                    is_known,
                    number in accumulated,
                )

    def _depends(self, name: str, number: int) -> bool:
        """Whether a value may depend on what a variable was."""
        gets = {
            s.name
            for s in walk(self.case.body)
            if isinstance(s, GetVariable) and s.number == number
        }
        return bool(gets & self._sources(name, set()))

    def _sources(self, name: str, seen: set[str]) -> set[str]:
        """Return the names that a name depends on, itself included."""
        if name in seen:
            return seen
        seen.add(name)
        for statement in walk(self.case.body):
            if name in defines(statement):
                for other in reads(statement):
                    self._sources(other, seen)
        return seen

    def _accumulations(self) -> Iterator[Accumulation | None]:
        yield from self._accumulations_in(self.case.body, None)
        for statement in self.case.body:
            if isinstance(statement, For) and not statement.carried:
                if all(isinstance(s, Compute | Load | Store | ReadRow) for s in statement.body):
                    yield from self._accumulations_in(statement.body, statement)

    def _accumulations_in(
        self, body: tuple[Statement, ...], loop: For | None
    ) -> Iterator[Accumulation | None]:
        for statement in body:
            match statement:
                case Store() if statement.symbol in self.written:
                    reads = [
                        s for s in body if isinstance(s, Load) and s.symbol == statement.symbol
                    ]
                    accesses = [
                        s for s, _ in self._accesses(self.case.body) if s.symbol == statement.symbol
                    ]
                    if len(reads) != 1 or len(accesses) != 2:
                        continue
                    if reads[0].indices != statement.indices:
                        continue
                    if not self._has_free_place(statement, loop):
                        continue
                    yield self._accumulation(statement.symbol, reads[0].name, statement.value, body)
                case SetVariable() if loop is None and statement.number not in self.variables:
                    uses = [
                        s
                        for s in walk(self.case.body)
                        if isinstance(s, GetVariable | SetVariable | Increment)
                        and s.number == statement.number
                    ]
                    if len(uses) == 2 and isinstance(uses[0], GetVariable) and uses[0] in body:
                        yield self._accumulation(
                            statement.number, uses[0].name, statement.value, body
                        )
                case _:
                    pass

    def _has_free_place(self, store: Store, loop: For | None) -> bool:
        """Whether tokens of one place touch the same elements, so that only their order counts."""
        known = self.shared | set(self.free)
        if loop is None:
            return all(index in known for index in store.indices)
        if not store.indices or not all(index in known for index in store.indices[:-1]):
            return False
        span = self._span(store.indices[-1], (loop,))
        if span.origin is None:
            bounds = (loop.lower, loop.upper, loop.step)
            is_plain = store.indices[-1] == loop.index
            return is_plain and all(name in self.shared for name in bounds)
        sources = self._sources(loop.lower, set()) | self._sources(loop.upper, set())
        popped = {n for n in sources if n in self.free and n not in self.definitions}
        return popped <= {span.origin}

    def _accumulation(
        self, target: str | int, read: str, stored: str, body: tuple[Statement, ...]
    ) -> Accumulation | None:
        combined = next((s for s in body if isinstance(s, Compute) and s.name == stored), None)
        if combined is None or combined.operation not in ACCUMULATIONS:
            return None
        left, right = combined.operands
        if (left == read) == (right == read):
            return None
        value = right if left == read else left
        uses = [s for s in walk(self.case.body) if {read, stored} & set(reads(s))]
        if len(uses) != 2 or read in self._sources(value, set()):
            return None
        return Accumulation(target, combined.operation, read, stored, value)
