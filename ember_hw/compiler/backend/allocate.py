"""From the access program of `dlc` to `au`: physical names, arithmetic folded into addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, func, memref
from xdsl.ir import Operation, SSAValue

from ember_hw.compiler.backend.addresses import Address, choose, unit_depths
from ember_hw.compiler.backend.allocate_rows import RowNames
from ember_hw.compiler.backend.tables import check_memory, table_of
from ember_hw.compiler.dialects import dlc, slc, slcvec
from ember_hw.compiler.dialects.au import (
    AluOp,
    AluOperation,
    MemOp,
    NextOp,
    ProgramOp,
    PushOp,
    Slot,
    SlotKind,
    TuOp,
)
from ember_hw.compiler.dialects.stream_types import head_type, hints_of
from ember_hw.compiler.transforms.ir_facts import (
    constant,
    refuse,
    value_name,
)

_ALU = {
    slc.AluKind.ADD: AluOperation.ADD,
    slc.AluKind.SUB: AluOperation.SUB,
    slc.AluKind.MUL: AluOperation.MUL,
}

_HOST_CODE = (
    arith.ConstantOp,
    memref.DimOp,
    slc.ToStreamOp,
    dlc.SetVarOp,
    dlc.ConfigureAccessEngineOp,
    dlc.ComputeLoopOp,
    func.ReturnOp,
)


def allocate(
    function: func.FuncOp, target: str, sizes: Mapping[str, Sequence[int]] | None = None
) -> ProgramOp:
    """
    Give the streams of a function's access program their physical names.

    Units are numbered in pre-order, streams and rows in dependence order. Constants become
    integers, other host values argument registers: a memref argument's symbol is its name in
    `ember.args`, the distance of its rows is `<name>.pitch`, dimension k of it `<name>.rows` (k =
    0 of at most 2) or `<name>.dim<k>`. A constant added to or multiplied with an index goes into
    the address; two loads of one memref at i and i + step of the root unit become one load and its
    next value; a sum of a unit's own value, a scaled one from above and a constant goes into the
    address, too; other index arithmetic takes an ALU. `add_relays` finds room for what one unit
    can't hold. A vector stream becomes a row of that many elements, clipped at the unit's upper
    bound.

    Parameters
    ----------
    function : FuncOp
        After `slc-to-dlc`, with one access program and the attribute `ember.args`.
    target : str
        Name of the configuration; whether the program fits it is the assembler's to check.
    sizes : mapping of str to sequence of int, optional
        Dimensions of memref arguments that are known now and so become integers.

    Returns
    -------
    ProgramOp
        Named like the function; not yet verified.

    Raises
    ------
    CompileError
        The function isn't as above, or an op has no form in the access unit.
    """
    for op in function.body.block.ops:
        if not isinstance(op, _HOST_CODE):
            refuse(op, "host code around an access program", "constants and dims", repr(op.name))
    engines = [op for op in function.body.block.ops if isinstance(op, dlc.ConfigureAccessEngineOp)]
    if len(engines) != 1:
        refuse(function, "number of access programs of a function", "1", len(engines))
    return _Allocation(function, engines[0], sizes or {}).program(function.sym_name.data, target)


def allocate_all(
    function: func.FuncOp, target: str, sizes: Mapping[str, Sequence[int]] | None = None
) -> tuple[ProgramOp, ...]:
    """
    Give the streams of each of a function's access programs their physical names.

    Parameters
    ----------
    function, target, sizes
        As for `allocate`; there may be any number of access programs, and any host code around.

    Returns
    -------
    tuple of ProgramOp
        In order; named like the function, with `_0`, `_1`, .. if there are several.

    Raises
    ------
    CompileError
        An op has no form in the access unit.
    """
    engines = [op for op in function.body.block.ops if isinstance(op, dlc.ConfigureAccessEngineOp)]
    if not engines:
        refuse(function, "number of access programs of a function", "at least 1", 0)
    name = function.sym_name.data
    return tuple(
        _Allocation(function, engine, sizes or {}).program(
            f"{name}_{number}" if len(engines) > 1 else name, target
        )
        for number, engine in enumerate(engines)
    )


class _Allocation(RowNames):
    """The names given so far and the records made."""

    def __init__(
        self,
        function: func.FuncOp,
        engine: dlc.ConfigureAccessEngineOp,
        sizes: Mapping[str, Sequence[int]],
    ) -> None:
        super().__init__(function, sizes)
        self.ops = list(engine.body.block.ops)
        self.units: dict[SSAValue, int] = {}
        self.loads: list[tuple[slc.MemStreamOp, Address, int]] = []
        self.depths = unit_depths(self.ops)
        #: Address of each memory stream of one dimension, of the last index of others.
        self.addresses: dict[slc.MemStreamOp, Address] = {}
        self.computed = self._computed_streams()

    def program(self, name: str, target: str) -> ProgramOp:
        """Make the records, arguments first."""
        for op in self.ops:
            if isinstance(op, slc.MemStreamOp | slcvec.MemStreamOp):
                check_memory(op)
        for op in self.ops:
            self._add(op)
        return ProgramOp(name, target, [*self.arguments.values(), *self.records])

    def _computed_streams(self) -> set[SSAValue]:
        """ALU streams that somebody needs as a value; the others go into addresses."""
        needed: set[SSAValue] = set()
        for op in reversed(self.ops):
            match op:
                case slc.MemStreamOp(indices=indices) if indices:
                    address = choose(op, needed, self.depths)
                    self.addresses[op] = address
                    needed.update(indices[:-1])
                    needed.update(term for term, _ in address.terms)
                case slc.AluStreamOp() if op.result not in needed:
                    pass
                case slc.ViewOp():
                    pass  # its rows say what they need
                case dlc.RowStreamOp() if isinstance(view := op.memref.owner, slc.ViewOp):
                    needed.update(op.indices)
                    needed.update(table_of(view, op.length).values)
                case _:
                    needed.update(op.operands)
        return needed

    def _add(self, op: Operation) -> None:
        match op:
            case dlc.NewTuOp():
                self._unit(op)
            case dlc.GetIndVarOp():
                number = self.units[op.tu]
                self.name(op.result, Slot(SlotKind.UNIT, number), number)
            case slc.CastStreamOp():
                # Values have one width in the access unit; the load has extended the sign.
                self.name(op.result, self.slots[op.stream], self.holders[op.stream])
            case slc.AluStreamOp():
                if op.result in self.computed:
                    self._alu(op)
            case slc.ViewOp():
                pass
            case slc.MemStreamOp():
                self._load(op)
            case slcvec.MemStreamOp():
                self.vector(op)
            case dlc.RowStreamOp() if isinstance(view := op.memref.owner, slc.ViewOp):
                self.table_row(op, view)
            case dlc.RowStreamOp():
                self.row(op)
            case dlc.RegisterCallbackOp():
                values = [
                    self.slot(register.value, register)
                    for register in self.ops
                    if isinstance(register, dlc.RegisterOperandOp)
                    and register.tu is op.tu
                    and register.event == op.event
                ]
                unit = self.units[op.tu]
                values = [self.own_row(slot) for slot in values]
                self.records.append(PushOp(unit, op.event.data, op.id.value.data, values))
            case dlc.RegisterOperandOp() | dlc.YieldOp():
                pass
            case _:
                refuse(
                    op,
                    "op of an access program",
                    "one with a form in the access unit",
                    repr(op.name),
                )

    def _unit(self, op: dlc.NewTuOp) -> None:
        number = len(self.unit_ops)
        under = number - 1 if op.under is None else op.under.value.data
        if number and under != number - 1:
            rule = (
                f"the only unit under t{under} (loops side by side need opt_level 2 to become rows)"
            )
            refuse(op, f"unit t{number}", rule, "a second one")
        step = constant(op.step)
        if step is None or step < 1:
            refuse(op, f"step of unit t{number}", "a positive constant", value_name(op.step))
        self.units[op.result] = number
        self.unit_ops.append(op)
        lower, upper = (self.slot(v, op) for v in (op.lower_bound, op.upper_bound))
        self.records.append(TuOp(number, lower, upper, step, under=under if number else None))

    def _alu(self, op: slc.AluStreamOp) -> None:
        if op.alu_op.data not in _ALU:
            refuse(op, "operation of the access unit", "add, sub or mul", op.alu_op.data.value)
        holder = self.holder(op.operands)
        operands = self.slot(op.lhs, op), self.slot(op.rhs, op)
        number = self.new_stream(op.result, holder)
        self.records.append(AluOp(number, holder, _ALU[op.alu_op.data], *operands))

    def _load(self, op: slc.MemStreamOp) -> None:
        base, element = self.base(op.memref, op), head_type(op.result.type)
        holder = self.holder(op.indices)
        scale: Slot | None
        offset: Slot | None
        constant_part = 0
        address = self.addresses.get(op, Address(()))
        if len(op.indices) == 1:
            holder = self.holder([term for term, _ in address.terms])
            source = self._pair_source(op, address, holder)
            if source is not None:
                number = self.new_stream(op.result, holder)
                self.records.append(NextOp(number, holder, self.slots[source].number))
                return
            self.loads.append((op, address, holder))
            # The factor stands with the first term, the unit's own value is the last.
            depths = self.depths
            (stream, factor), *other = sorted(
                address.terms, key=lambda term: (term[1] == 1, depths.get(term[0], -1))
            )
            index = self.slot(stream, op)
            scale = Slot(SlotKind.INTEGER, factor) if factor != 1 or other else None
            offset = Slot(SlotKind.INTEGER, address.offset) if address.offset else None
            if other:
                offset, constant_part = self.slot(other[0][0], op), address.offset
        elif op.indices:
            index = self.row_number(op.memref, op.indices[:-1], op)
            scale = self.pitch(op.memref)
            ((column, _),), constant_part = address.terms, address.offset
            offset = self.slot(column, op)
            holder = self.holder([*op.indices[:-1], column])
            if offset.kind is SlotKind.INTEGER:
                offset = Slot(SlotKind.INTEGER, offset.number + constant_part)
                constant_part = 0
        else:
            index, scale, offset = Slot(SlotKind.INTEGER, 0), None, None
        number = self.new_stream(op.result, holder)
        self.records.append(
            MemOp(
                number, holder, base, index, element, scale=scale, offset=offset,
                constant=constant_part, **hints_of(op),
            )
        )  # fmt: skip

    def _pair_source(self, op: slc.MemStreamOp, address: Address, holder: int) -> SSAValue | None:
        """Return the load whose next value in its unit this one is, if the pair is free.

        A pair costs an inner unit a turn at each of its ends, so there it is only taken for an
        address that has no other form.
        """
        step = constant(self.unit_ops[holder].step)
        taken = any(
            isinstance(r, NextOp | AluOp) and r.unit.data.number == holder for r in self.records
        )
        alu_needed = any(
            isinstance(other, slc.AluStreamOp)
            and other.result in self.computed
            and self.depths[other.result] == holder
            for other in self.ops
        )
        if step is None or taken or alu_needed or (holder and len(address.terms) == 1):
            return None
        own, factor = address.terms[-1]
        if self.slots.get(own) != Slot(SlotKind.UNIT, holder):
            return None
        for load, other, other_holder in self.loads:
            if (
                load.memref is op.memref
                and other_holder == holder
                and address == other.moved(factor * step)
            ):
                return load.result
        return None
