"""Statements of execute code in C, and the functions that they make up."""

from collections.abc import Iterable, Sequence

from ember_hw.compiler.backend.execute_code import (
    Compute,
    Constant,
    Extent,
    For,
    GetVariable,
    If,
    Increment,
    Load,
    Pop,
    ReadRow,
    Scalar,
    SetVariable,
    Store,
    is_row,
    reads,
    row_element,
    walk,
)
from ember_hw.compiler.quantized_rows import FORMATS
from ember_hw.host.execution.c_helpers import C_TYPES, RESERVED, expression, literal
from ember_hw.host.execution.checks import (
    Bound,
    Checked,
    CheckedCode,
    ConvertCheck,
    DivisorCheck,
    IndexCheck,
    RangeCheck,
    RowCheck,
    StepCheck,
)

__all__ = ["Statements"]


class Statements:
    """Writes the statements of one piece of code.

    Parameters
    ----------
    code : CheckedCode
        The code.

    Attributes
    ----------
    names : dict of str to str
        C name of each name.
    pointers, scalars : dict of str to str
        Member of `struct ember_state` that each memory and each index argument has, by symbol.
    entry : set of str
        Names that the entry computes, which are members, too.
    """

    def __init__(self, code: CheckedCode) -> None:
        self.code, self.types = code, code.types
        self.names: dict[str, str] = {}
        taken: set[str] = set(RESERVED)
        for name in self.types:
            self.names[name] = free_name(name, taken)
        bodies = (code.code.entry, *(case.body for case in code.code.cases), code.code.end)
        self.constants = {
            s.name: s for body in bodies for s in walk(body) if isinstance(s, Constant)
        }
        self.entry = {
            s.name for s in code.code.entry if isinstance(s, Extent | Scalar | Compute | Load)
        }
        self.memories = {m.symbol: m for m in code.code.memories}
        self.pointers = {symbol: free_name(symbol, taken) for symbol in self.memories}
        self.scalars = {
            s.symbol: free_name(f"scalar_{s.symbol}", taken)
            for s in code.code.entry
            if isinstance(s, Scalar)
        }
        self.variables = {v.number: v for v in code.code.variables}

    def extents(self, symbol: str) -> tuple[str, ...]:
        """Return the members that hold a memory's extents."""
        return tuple(f"{self.pointers[symbol]}_{k}" for k in range(self.memories[symbol].rank))

    def used_memories(self, body: Iterable[Checked]) -> list[str]:
        """Return the memories that statements load or store."""
        used = {s.symbol for s in _walk(body) if isinstance(s, Load | Store)}
        return [symbol for symbol in self.memories if symbol in used]

    def memory_arguments(self, body: Iterable[Checked]) -> str:
        """Return the arguments that hand them to a function."""
        return "".join(f", s->{self.pointers[symbol]}" for symbol in self.used_memories(body))

    def function(
        self, result: str, name: str, body: tuple[Checked, ...], *, begins: bool = False
    ) -> str:
        """Return a function of some statements; one that begins keeps the entry's values."""
        parameters = ["struct ember_state *s"]
        for statement in body:
            if isinstance(statement, Pop):
                parameters += self.parameter(statement)
        restrict = " restrict " if self.code.code.no_alias else " "
        for symbol in self.used_memories(body):
            memory = self.memories[symbol]
            constant = "" if memory.is_written else "const "
            pointer = f"{constant}{C_TYPES[memory.element]} *{restrict.strip()} "
            parameters.append(pointer.replace("* ", "*") + self.pointers[symbol])
        lines = [] if begins else self.locals(body)
        if begins:
            lines += [
                f"const int64_t {extent} = s->{extent};"
                for symbol in self.used_memories(body)
                for extent in self.extents(symbol)
            ]
        lines += self.block(body)
        if begins:
            lines += self.first_values()
        text = "\n".join(f"    {line}" for line in [*lines, "return 0;"])
        return f"{result} {name}({', '.join(parameters)})\n{{\n{text}\n}}\n"

    def parameter(self, pop: Pop) -> list[str]:
        """Return the parameters of a popped operand."""
        name = self.names[pop.name]
        if is_row(pop.type):
            type_ = C_TYPES[row_element(pop.type)]
            return [f"const {type_} *restrict {name}", f"int64_t {name}_length"]
        return [f"{C_TYPES[pop.type]} {name}"]

    def locals(self, body: tuple[Checked, ...]) -> list[str]:
        """Return copies of what the statements use of the entry, and of extents."""
        used: set[str] = set()
        extents: set[str] = set()
        for statement in _walk(body):
            used |= _uses(statement)
            match statement:
                case Load() | Store():
                    extents |= set(self.extents(statement.symbol)[1:])
                case IndexCheck() | RangeCheck() if statement.bound.dimension is not None:
                    at = statement.bound.dimension
                    extents.add(self.extents(statement.bound.name)[at])
                case _:
                    pass
        lines = [f"const int64_t {extent} = s->{extent};" for extent in sorted(extents)]
        for name in sorted(used & self.entry):
            type_, local = C_TYPES[self.types[name]], self.names[name]
            lines.append(f"const {type_} {local} = s->{local};")
        return lines

    def first_values(self) -> list[str]:
        """Return what keeps the entry's values and starts the variables."""
        lines = [f"s->{self.names[name]} = {self.names[name]};" for name in sorted(self.entry)]
        for number, variable in self.variables.items():
            if variable.initial is not None:
                lines.append(f"s->variable_{number} = {self.name(variable.initial)};")
        return lines

    def name(self, name: str) -> str:
        """Return a value in C."""
        if name in self.constants:
            return literal(self.types[name], self.constants[name].value)
        return self.names[name]

    def block(self, body: Iterable[Checked]) -> list[str]:
        """Return the lines of some statements."""
        lines: list[str] = []
        for statement in body:
            lines += self.statement(statement)
        return lines

    def define(self, name: str, text: str) -> list[str]:
        """Return the definition of a name."""
        return [f"const {C_TYPES[self.types[name]]} {self.names[name]} = {text};"]

    def place(self, symbol: str, indices: Sequence[str]) -> str:
        """Return an element of a memory."""
        offset = ""
        for extent, index in zip(self.extents(symbol), indices, strict=True):
            outer = f"({offset})" if " " in offset else offset
            offset = f"{outer} * {extent} + {self.name(index)}" if offset else self.name(index)
        return f"{self.pointers[symbol]}[{offset or '0'}]"

    def statement(self, statement: Checked) -> list[str]:
        """Return the lines of one statement or check."""
        match statement:
            case Constant() | Pop():
                return []
            case Extent():
                extent = self.extents(statement.symbol)[statement.dimension]
                return self.define(statement.name, f"s->{extent}")
            case Scalar():
                return self.define(statement.name, f"s->{self.scalars[statement.symbol]}")
            case Compute():
                operands = [self.name(operand) for operand in statement.operands]
                source = self.types[statement.operands[-1]]
                text = expression(statement.operation, statement.type, operands, source)
                return self.define(statement.name, text)
            case Load():
                return self.define(statement.name, self.place(statement.symbol, statement.indices))
            case Store():
                place = self.place(statement.symbol, statement.indices)
                return [f"{place} = {self.name(statement.value)};"]
            case ReadRow() if (form := row_element(self.types[statement.row])) in FORMATS:
                row, index = self.names[statement.row], self.name(statement.index)
                return self.define(statement.name, f"ember_{form}({row}, {row}_length, {index})")
            case ReadRow():
                return self.define(
                    statement.name, f"{self.names[statement.row]}[{self.name(statement.index)}]"
                )
            case GetVariable():
                return self.get(statement)
            case SetVariable():
                value = self.name(statement.value)
                lines = [f"s->variable_{statement.number} = {value};"]
                if is_row(self.types[statement.value]):
                    lines.append(f"s->variable_{statement.number}_length = {value}_length;")
                return lines
            case Increment():
                type_ = self.variables[statement.number].type
                amount = literal("i64", statement.amount)
                return [f"s->variable_{statement.number} += ({C_TYPES[type_]}){amount};"]
            case For():
                return self.loop(statement)
            case If():
                return self.branches(statement)
            case _:
                return self.check(statement)

    def get(self, statement: GetVariable) -> list[str]:
        """Return the read of a variable."""
        name, variable = self.names[statement.name], f"s->variable_{statement.number}"
        type_ = self.types[statement.name]
        if not is_row(type_):
            return self.define(statement.name, variable)
        return [
            f"const {C_TYPES[row_element(type_)]} *restrict {name} = {variable};",
            f"const int64_t {name}_length = {variable}_length;",
        ]

    def loop(self, loop: For) -> list[str]:
        """Return a loop."""
        lines: list[str] = []
        for carried in loop.carried:
            type_ = C_TYPES[self.types[carried.argument]]
            initial = self.name(carried.initial)
            lines.append(f"{type_} {self.names[carried.argument]} = {initial};")
        index, step = self.names[loop.index], self.name(loop.step)
        advance = f"{index}++" if step == "1" else f"{index} += {step}"
        lines.append(
            f"for (int64_t {index} = {self.name(loop.lower)}; {index} < {self.name(loop.upper)}; "
            f"{advance}) {{"
        )
        lines += [f"    {line}" for line in self.block(loop.body)]
        arguments = {carried.argument for carried in loop.carried}
        news = {c.argument: self.name(c.following) for c in loop.carried}
        for carried in loop.carried:
            if carried.following in arguments:
                type_ = C_TYPES[self.types[carried.argument]]
                new = f"next_{self.names[carried.argument]}"
                lines.append(f"    const {type_} {new} = {news[carried.argument]};")
                news[carried.argument] = new
        for carried in loop.carried:
            lines.append(f"    {self.names[carried.argument]} = {news[carried.argument]};")
        lines.append("}")
        for carried in loop.carried:
            lines += self.define(carried.result, self.names[carried.argument])
        return lines

    def branches(self, statement: If) -> list[str]:
        """Return a condition."""
        lines = [
            f"{C_TYPES[self.types[merged.name]]} {self.names[merged.name]};"
            for merged in statement.merged
        ]
        lines.append(f"if ({self.name(statement.condition)}) {{")
        lines += [f"    {line}" for line in self.block(statement.then)]
        for merged in statement.merged:
            lines.append(f"    {self.names[merged.name]} = {self.name(merged.if_true)};")
        if statement.otherwise or statement.merged:
            lines.append("} else {")
            lines += [f"    {line}" for line in self.block(statement.otherwise)]
            for merged in statement.merged:
                lines.append(f"    {self.names[merged.name]} = {self.name(merged.if_false)};")
        return [*lines, "}"]

    def bound(self, bound: Bound) -> str:
        """Return what an index must be below."""
        if bound.dimension is None:
            return f"{self.names[bound.name]}_length"
        return self.extents(bound.name)[bound.dimension]

    def check(self, check: Checked) -> list[str]:
        """Return a check."""
        match check:
            case IndexCheck():
                index, bound = self.name(check.index), self.bound(check.bound)
                test = f"(uint64_t){index} >= (uint64_t){bound}"
                if check.guard is not None:
                    lower, upper = map(self.name, check.guard)
                    test = f"{lower} < {upper} && {test}"
                return [f"if ({test})", f"    return fail(s, {check.number}, {index}, {bound});"]
            case RangeCheck():
                bounds = [self.name(name) for name in (check.lower, check.upper, check.step)]
                offset = "0" if check.offset is None else self.name(check.offset)
                limit = self.bound(check.bound)
                arguments = ", ".join((str(check.number), *bounds, offset, limit))
                return [f"if (outside(s, {arguments}))", "    return 1;"]
            case DivisorCheck():
                divisor = self.name(check.divisor)
                return [f"if ({divisor} == 0)", f"    return fail(s, {check.number}, 0, 0);"]
            case StepCheck():
                step = self.name(check.step)
                return [f"if ({step} < 1)", f"    return fail(s, {check.number}, {step}, 0);"]
            case RowCheck():
                row = self.names[check.row]
                return [f"if (!{row})", f"    return fail(s, {check.number}, 0, 0);"]
            case ConvertCheck():
                value = self.name(check.value)
                test = f"!({value} >= -0x1p63f && {value} < 0x1p63f)"
                return [f"if ({test})", f"    return fail(s, {check.number}, 0, 0);"]
            case _:
                raise AssertionError(check)


def free_name(name: str, taken: set[str]) -> str:
    base = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
    found = base
    while found in taken or found.startswith(("ember_", "variable_", "kept_", "case_")):
        found += "_"
    taken.add(found)
    return found


def _walk(body: Iterable[Checked]) -> Iterable[Checked]:
    for statement in body:
        yield statement
        if isinstance(statement, For):
            yield from _walk(statement.body)
        elif isinstance(statement, If):
            yield from _walk(statement.then)
            yield from _walk(statement.otherwise)


def _uses(statement: Checked) -> set[str]:
    """Return the names that a statement or check reads, not the statements in it."""
    match statement:
        case IndexCheck():
            return {statement.index, *(statement.guard or ())}
        case RangeCheck():
            offset = () if statement.offset is None else (statement.offset,)
            return {statement.lower, statement.upper, statement.step, *offset}
        case DivisorCheck():
            return {statement.divisor}
        case StepCheck():
            return {statement.step}
        case ConvertCheck():
            return {statement.value}
        case RowCheck():
            return set()
        case _:
            return set(reads(statement))
