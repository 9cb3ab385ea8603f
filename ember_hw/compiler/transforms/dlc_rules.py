"""Soundness rules of `dlc`: what the access program pushes is what the execute program pops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ember_hw.compiler.dialects import dlc, slc, slcvec
from ember_hw.compiler.dialects.stream_types import head_type
from ember_hw.compiler.transforms.ir_facts import value_name
from ember_hw.compiler.transforms.violation import Violation

_STREAM_OPS = (
    slc.ToStreamOp,
    slc.CastStreamOp,
    slc.MemStreamOp,
    slc.AluStreamOp,
    slc.ViewOp,
    slcvec.MemStreamOp,
    slcvec.BroadcastOp,
    slcvec.ExtractOp,
    dlc.RowStreamOp,
)
_ACCESS_OPS = (
    dlc.NewTuOp,
    dlc.GetIndVarOp,
    dlc.RegisterCallbackOp,
    dlc.RegisterOperandOp,
    dlc.RowStreamOp,
)
_VARIABLE_OPS = (dlc.GetVarOp, dlc.SetVarOp, dlc.IncrementVarOp)

Key = tuple[int, dlc.Event]
"""Number of a unit, and an event of it."""


@dataclass
class AccessProgram:
    """
    What a `dlc.configure_access_engine` declares.

    Parameters
    ----------
    parents : list of int or None
        Parent of each unit, by number; None for the root.
    owners : dict of SSAValue to int or None
        Unit that advances each stream; None for a constant.
    tokens : dict of (unit, event) to RegisterCallbackOp
        The token of an event.
    operands : dict of (unit, event) to list of RegisterOperandOp
        What is pushed after it, in order.
    """

    parents: list[int | None] = field(default_factory=list[int | None])
    owners: dict[SSAValue, int | None] = field(default_factory=dict[SSAValue, int | None])
    tokens: dict[Key, dlc.RegisterCallbackOp] = field(
        default_factory=dict[Key, dlc.RegisterCallbackOp]
    )
    operands: dict[Key, list[dlc.RegisterOperandOp]] = field(
        default_factory=dict[Key, list[dlc.RegisterOperandOp]]
    )
    units: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def chain(self, unit: int | None) -> list[int]:
        """Return the unit and its ancestors."""
        chain: list[int] = []
        while unit is not None:
            chain.append(unit)
            unit = self.parents[unit]
        return chain

    def owner(self, stream: SSAValue) -> int | None:
        """Return the unit that advances a stream; None for a constant."""
        return self.owners.get(stream)

    @property
    def pushes(self) -> dict[int, tuple[Attribute, ...]]:
        """Types of the operands that follow each token, in order."""
        return {
            op.id.value.data: tuple(head_type(o.value.type) for o in self.operands.get(key, []))
            for key, op in self.tokens.items()
        }


def dlc_violations(module: ModuleOp) -> Iterator[Violation]:
    """Yield every broken rule of `dlc`."""
    for op in module.walk():
        parent = op.parent_op()
        if isinstance(op, _ACCESS_OPS) and not isinstance(parent, dlc.ConfigureAccessEngineOp):
            found = "detached" if parent is None else parent.name
            yield Violation(op, f"place must be a dlc.configure_access_engine, not {found}")
        elif isinstance(op, dlc.ConfigureAccessEngineOp):
            yield from _check_nest(op)
        elif isinstance(op, dlc.ComputeLoopOp):
            yield from _check_compute_loop(op)
        elif isinstance(op, dlc.PopOperandOp):
            yield from _check_pop(op)
    yield from _check_variables(module)


def push_pop_violations(
    access: dlc.ConfigureAccessEngineOp, execute: dlc.ComputeLoopOp
) -> list[Violation]:
    """
    Compare pushes and pops of a nest: equal in type and order for each token.

    Parameters
    ----------
    access : ConfigureAccessEngineOp
        Its access program.
    execute : ComputeLoopOp
        Its execute program.

    Returns
    -------
    list of Violation
        Empty if they agree.
    """
    program, _ = read_access_program(access)
    return list(_check_cases(program.pushes, access, execute))


def read_access_program(
    access: dlc.ConfigureAccessEngineOp,
) -> tuple[AccessProgram, list[Violation]]:
    """Read the units, streams and pushes of an access program, and which rules it breaks."""
    program = AccessProgram()
    violations: list[Violation] = []
    for op in access.body.block.ops:
        match op:
            case dlc.NewTuOp():
                violations += _read_unit(program, op)
            case dlc.GetIndVarOp():
                program.owners[op.result] = program.units.get(op.tu)
            case dlc.RegisterCallbackOp():
                violations += _read_token(program, op)
            case dlc.RegisterOperandOp():
                violations += _read_operand(program, op)
            case _ if isinstance(op, _STREAM_OPS):
                violations += _read_stream(program, op)
            case dlc.YieldOp():
                if op.operands:
                    message = f"number of values yielded must be 0, not {len(op.operands)}"
                    violations.append(Violation(op, message))
            case _:
                message = f"op of an access program must be a stream or dlc op of it, not {op.name}"
                violations.append(Violation(op, message))
    for (unit, event), operands in program.operands.items():
        if (unit, event) not in program.tokens:
            message = f"event {event.value} of unit {unit} must be given a token, not operands only"
            violations.append(Violation(operands[0], message))
    if not program.parents:
        violations.append(Violation(access, "number of units must be at least 1, not 0"))
    return program, violations


def _read_unit(program: AccessProgram, op: dlc.NewTuOp) -> Iterator[Violation]:
    number = len(program.parents)
    parent = number - 1 if op.under is None else op.under.value.data
    if number == 0:
        if op.under is not None:
            yield Violation(op, f"parent of the first unit must be absent, not {parent}")
        parent = None
    elif not 0 <= parent < number:
        yield Violation(op, f"parent must be the number of a unit above, not {parent}")
        parent = number - 1
    program.parents.append(parent)
    program.units[op.result] = number
    visible = program.chain(parent)
    for bound in (op.lower_bound, op.upper_bound, op.step):
        owner = program.owner(bound)
        if owner is not None and owner not in visible:
            rule = "a constant or a stream of the parent or an ancestor"
            found = f"{value_name(bound)} of unit {owner}"
            yield Violation(op, f"bound of unit {number} must be {rule}, not {found}")


def _read_stream(program: AccessProgram, op: Operation) -> Iterator[Violation]:
    """Give a stream to the deepest unit among its operands, which must lie on one path."""
    owners = [owner for value in op.operands if (owner := program.owner(value)) is not None]
    deepest = max(owners, key=lambda unit: len(program.chain(unit)), default=None)
    path = program.chain(deepest)
    for owner in owners:
        if owner not in path:
            message = f"units of its operands must be on one path, not {owner} and {deepest}"
            yield Violation(op, message)
    program.owners[op.results[0]] = deepest


def _read_token(program: AccessProgram, op: dlc.RegisterCallbackOp) -> Iterator[Violation]:
    number, event = op.id.value.data, op.event.data
    key = (program.units.get(op.tu, 0), event)
    if number < 1:
        yield Violation(op, f"id must be at least 1, because 0 means done, not {number}")
    if key in program.tokens:
        message = f"event {event.value} of unit {key[0]} must be given one token, not a second"
        yield Violation(op, message)
        return
    if any(other.id.value.data == number for other in program.tokens.values()):
        yield Violation(op, f"id must be given to one event, not {number} again")
    program.tokens[key] = op


def _read_operand(program: AccessProgram, op: dlc.RegisterOperandOp) -> Iterator[Violation]:
    unit, event = program.units.get(op.tu, 0), op.event.data
    iterate = event is dlc.Event.ITERATE
    owner = program.owner(op.value)
    if owner is not None and owner not in program.chain(unit if iterate else program.parents[unit]):
        rule = "the unit or an ancestor" if iterate else "a proper ancestor of the unit"
        found = f"{value_name(op.value)} of unit {owner}"
        message = f"operand on {event.value} of unit {unit} must be of {rule}, not {found}"
        yield Violation(op, message)
    program.operands.setdefault((unit, event), []).append(op)


def _check_nest(access: dlc.ConfigureAccessEngineOp) -> Iterator[Violation]:
    program, violations = read_access_program(access)
    yield from violations
    if access.res:
        yield Violation(access, f"number of results must be 0, not {len(access.res)}")
    execute = _partner(access)
    if execute is None:
        yield Violation(
            access, "access program must be followed by its dlc.compute_loop, not alone"
        )
    else:
        yield from _check_cases(program.pushes, access, execute)


def _partner(access: dlc.ConfigureAccessEngineOp) -> dlc.ComputeLoopOp | None:
    op = access.next_op
    while op is not None and not isinstance(op, dlc.ConfigureAccessEngineOp):
        if isinstance(op, dlc.ComputeLoopOp):
            return op
        op = op.next_op
    return None


def _check_cases(
    pushes: Mapping[int, tuple[Attribute, ...]],
    access: dlc.ConfigureAccessEngineOp,
    execute: dlc.ComputeLoopOp,
) -> Iterator[Violation]:
    for token in pushes:
        if token not in execute.case_ids:
            yield Violation(
                access, f"token {token} must be a case of the compute loop, not missing"
            )
    for token, region in zip(execute.case_ids, execute.case_regions, strict=True):
        if token not in pushes:
            yield Violation(
                execute, f"case {token} must be registered on an event, not unreachable"
            )
            continue
        pops = tuple(op.result.type for op in region.block.ops if isinstance(op, dlc.PopOperandOp))
        if pops != pushes[token]:
            message = (
                f"operands popped in case {token} must be those pushed "
                f"{_types(pushes[token])}, not {_types(pops)}"
            )
            yield Violation(execute, message)


def _types(types: tuple[Attribute, ...]) -> str:
    return f"({', '.join(str(type_) for type_ in types)})"


def _check_compute_loop(loop: dlc.ComputeLoopOp) -> Iterator[Violation]:
    if loop.res:
        yield Violation(loop, f"number of results must be 0, not {len(loop.res)}")
    for region in loop.case_regions:
        last = region.block.last_op
        if last is not None and last.operands:
            yield Violation(last, f"number of values yielded must be 0, not {len(last.operands)}")
    op = loop.prev_op
    while op is not None and not isinstance(op, dlc.ConfigureAccessEngineOp | dlc.ComputeLoopOp):
        op = op.prev_op
    if not isinstance(op, dlc.ConfigureAccessEngineOp):
        yield Violation(loop, "compute loop must be preceded by its access program, not alone")


def _check_pop(pop: dlc.PopOperandOp) -> Iterator[Violation]:
    parent = pop.parent_op()
    if not isinstance(parent, dlc.ComputeLoopOp):
        found = "detached" if parent is None else parent.name
        yield Violation(pop, f"place must be the top level of a case, not {found}")
        return
    op = pop.prev_op
    while op is not None:
        if op.regions:
            yield Violation(pop, f"pop must stand above ops with regions, not below {op.name}")
            return
        op = op.prev_op


def _check_variables(module: ModuleOp) -> Iterator[Violation]:
    """Check that each register has one type, and that all but rows are set above their uses."""
    for op in module.walk():
        if not isinstance(op, _VARIABLE_OPS):
            continue
        first = _initial_value(op) or _row_value(op)
        if first is None:
            message = (
                f"variable {op.variable} must be set at function level before its use, not unset"
            )
            yield Violation(op, message)
            continue
        expected = first.value.type
        if isinstance(op, dlc.IncrementVarOp):
            if not isinstance(expected, IndexType | IntegerType):
                message = (
                    f"variable {op.variable} must be an index or integer to increment, "
                    f"not {expected}"
                )
                yield Violation(op, message)
            continue
        found = op.value.type if isinstance(op, dlc.SetVarOp) else op.result.type
        if found != expected:
            message = f"type of variable {op.variable} must be {expected} as first set, not {found}"
            yield Violation(op, message)


def _row_value(op: dlc.GetVarOp | dlc.SetVarOp | dlc.IncrementVarOp) -> dlc.SetVarOp | None:
    """Return the first `set_var` of a register that holds rows: these have no value to start at."""
    value = next(iter((*op.results, *op.operands)), None)
    function = op.parent_op()
    while function is not None and function.name != "func.func":
        function = function.parent_op()
    if function is None or value is None or not isinstance(value.type, MemRefType):
        return None
    return next(
        (
            other
            for other in function.walk()
            if isinstance(other, dlc.SetVarOp) and other.variable == op.variable
        ),
        None,
    )


def _initial_value(op: dlc.GetVarOp | dlc.SetVarOp | dlc.IncrementVarOp) -> dlc.SetVarOp | None:
    """Return the register's first `set_var` in the function's own block, not below the op."""
    top: Operation = op
    while (parent := top.parent_op()) is not None and parent.name != "func.func":
        top = parent
    block = top.parent
    if not isinstance(block, Block):
        return None
    for candidate in block.ops:
        if isinstance(candidate, dlc.SetVarOp) and candidate.variable == op.variable:
            return candidate
        if candidate is top:
            return None
    return None
