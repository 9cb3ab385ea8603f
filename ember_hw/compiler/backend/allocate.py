"""From the access program of `dlc` to `au`: physical names, arithmetic folded into addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from ember_hw.compiler.dialects import dlc, slc, slcvec
from ember_hw.compiler.dialects.au import (
    AluOp,
    AluOperation,
    ArgOp,
    MemOp,
    NextOp,
    ProgramOp,
    PushOp,
    RowOp,
    Slot,
    SlotKind,
    TuOp,
)
from ember_hw.compiler.dialects.stream_types import head_type, vector_shape
from ember_hw.compiler.transforms.ir_facts import (
    argument_symbols,
    constant,
    refuse,
    strip_stream,
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
    0) or `<name>.dim<k>`. A constant added to or multiplied with an index goes into the address;
    two loads of one memref at i and i + step of the root unit become one load and its next value;
    other index arithmetic takes the unit's ALU. A vector stream becomes a row of that many
    elements, clipped at the unit's upper bound.

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
    return _Allocation(function, engines[0], sizes or {}).program(target)


@dataclass(frozen=True)
class _Address:
    """An index as `stream * scale + offset`, the last two constants."""

    stream: SSAValue
    scale: int = 1
    offset: int = 0


class _Allocation:
    """The names given so far and the records made."""

    def __init__(
        self,
        function: func.FuncOp,
        engine: dlc.ConfigureAccessEngineOp,
        sizes: Mapping[str, Sequence[int]],
    ) -> None:
        self.function = function
        self.ops = list(engine.body.block.ops)
        self.sizes = sizes
        self.symbols = argument_symbols(function)
        self.arguments: dict[str, ArgOp] = {}
        self.units: dict[SSAValue, int] = {}
        self.unit_ops: list[dlc.NewTuOp] = []
        # Of each stream: its slot, and the unit that holds it.
        self.slots: dict[SSAValue, Slot] = {}
        self.holders: dict[SSAValue, int] = {}
        self.loads: list[tuple[slc.MemStreamOp, _Address, int]] = []
        self.records: list[Operation] = []
        self.streams = self.rows = 0
        self.computed = self._computed_streams()

    def program(self, target: str) -> ProgramOp:
        """Make the records, arguments first."""
        for op in self.ops:
            self._add(op)
        records = [*self.arguments.values(), *self.records]
        return ProgramOp(self.function.sym_name.data, target, records)

    def _computed_streams(self) -> set[SSAValue]:
        """ALU streams that somebody needs as a value; the others go into addresses."""
        needed: set[SSAValue] = set()
        for op in reversed(self.ops):
            match op:
                case slc.MemStreamOp(indices=indices) if len(indices) == 1:
                    needed.add(_address(indices[0]).stream)
                case slc.AluStreamOp() if op.result not in needed:
                    pass
                case _:
                    needed.update(op.operands)
        return needed

    def _add(self, op: Operation) -> None:
        match op:
            case dlc.NewTuOp():
                self._unit(op)
            case dlc.GetIndVarOp():
                number = self.units[op.tu]
                self._name(op.result, Slot(SlotKind.UNIT, number), number)
            case slc.CastStreamOp():
                # Values have one width in the access unit; the load has extended the sign.
                self._name(op.result, self.slots[op.stream], self.holders[op.stream])
            case slc.AluStreamOp():
                if op.result in self.computed:
                    self._alu(op)
            case slc.MemStreamOp():
                self._load(op)
            case slcvec.MemStreamOp():
                self._vector(op)
            case dlc.RowStreamOp():
                self._row(op)
            case dlc.RegisterCallbackOp():
                values = [
                    self._slot(register.value, register)
                    for register in self.ops
                    if isinstance(register, dlc.RegisterOperandOp)
                    and register.tu is op.tu
                    and register.event == op.event
                ]
                unit = self.units[op.tu]
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

    def _name(self, stream: SSAValue, slot: Slot, holder: int) -> None:
        self.slots[stream] = slot
        self.holders[stream] = holder

    def _new_stream(self, stream: SSAValue, holder: int) -> int:
        number = self.streams
        self.streams += 1
        self._name(stream, Slot(SlotKind.STREAM, number), holder)
        return number

    def _argument(self, symbol: str, type_: Attribute) -> Slot:
        if symbol not in self.arguments:
            self.arguments[symbol] = ArgOp(len(self.arguments), symbol, type_)
        return Slot(SlotKind.ARGUMENT, self.arguments[symbol].argument.data.number)

    def _slot(self, value: SSAValue, user: Operation) -> Slot:
        """Return the slot of a stream or host value."""
        if value in self.slots:
            return self.slots[value]
        number = constant(value)
        if number is not None:
            return Slot(SlotKind.INTEGER, number)
        host = strip_stream(value)
        if host in self.symbols and isinstance(host.type, IndexType):
            return self._argument(self.symbols[host], host.type)
        if isinstance(host.owner, memref.DimOp) and host.owner.source in self.symbols:
            dimension = constant(host.owner.index)
            if dimension is not None:
                return self._dimension(self.symbols[host.owner.source], dimension)
        rule = "a stream, a constant, an argument or a dimension of one"
        refuse(user, f"operand {value_name(value)}", rule, f"a value of {_owner_name(host)}")

    def _dimension(self, name: str, dimension: int) -> Slot:
        if name in self.sizes:
            return Slot(SlotKind.INTEGER, self.sizes[name][dimension])
        symbol = f"{name}.dim{dimension}" if dimension else f"{name}.rows"
        return self._argument(symbol, IndexType())

    def _base(self, value: SSAValue) -> int:
        # Only arguments are memrefs here: `allocate` has refused host code that makes others.
        return self._argument(self.symbols[value], value.type).number

    def _holder(self, operands: Sequence[SSAValue]) -> int:
        """Return the innermost unit that holds one of the streams."""
        return max((self.holders[value] for value in operands if value in self.holders), default=0)

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
        lower, upper = (self._slot(v, op) for v in (op.lower_bound, op.upper_bound))
        self.records.append(TuOp(number, lower, upper, step, under=under if number else None))

    def _alu(self, op: slc.AluStreamOp) -> None:
        if op.alu_op.data not in _ALU:
            refuse(op, "operation of the access unit", "add, sub or mul", op.alu_op.data.value)
        holder = self._holder(op.operands)
        operands = self._slot(op.lhs, op), self._slot(op.rhs, op)
        number = self._new_stream(op.result, holder)
        self.records.append(AluOp(number, holder, _ALU[op.alu_op.data], *operands))

    def _load(self, op: slc.MemStreamOp) -> None:
        base, element = self._base(op.memref), head_type(op.result.type)
        holder = self._holder(op.indices)
        if len(op.indices) == 1:
            address = _address(op.indices[0])
            holder = self._holder([address.stream])
            source = self._pair_source(op, address, holder)
            if source is not None:
                number = self._new_stream(op.result, holder)
                self.records.append(NextOp(number, holder, self.slots[source].number))
                return
            index = self._slot(address.stream, op)
            scale = Slot(SlotKind.INTEGER, address.scale) if address.scale != 1 else None
            offset = Slot(SlotKind.INTEGER, address.offset) if address.offset else None
            self.loads.append((op, address, holder))
        elif len(op.indices) == 2:
            index, offset = (self._slot(value, op) for value in op.indices)
            scale = self._pitch(op.memref)
        else:
            refuse(op, "rank of a memref read by the access unit", "1 or 2", len(op.indices))
        number = self._new_stream(op.result, holder)
        self.records.append(
            MemOp(
                number, holder, base, index, element,
                scale=scale, offset=offset, nontemporal=op.is_nontemporal,
            )
        )  # fmt: skip

    def _pair_source(self, op: slc.MemStreamOp, address: _Address, holder: int) -> SSAValue | None:
        """Return the load of the root unit whose next value this one is, if the pair is free."""
        unit = self.unit_ops[holder]
        step = constant(unit.step)
        taken = any(
            isinstance(r, NextOp | AluOp) and r.unit.data.number == holder for r in self.records
        )
        alu_needed = any(
            isinstance(other, slc.AluStreamOp)
            and other.result in self.computed
            and self._is_on_root(other)
            for other in self.ops
        )
        if holder or step is None or taken or alu_needed:
            return None
        if self.slots.get(address.stream) != Slot(SlotKind.UNIT, holder):
            return None
        for load, other, other_holder in self.loads:
            expected = _Address(other.stream, other.scale, other.offset + other.scale * step)
            if load.memref is op.memref and other_holder == holder and address == expected:
                return load.result
        return None

    def _is_on_root(self, op: slc.AluStreamOp) -> bool:
        """Whether the root unit's ALU computes the stream."""
        return all(
            value not in self.holders or self.holders[value] == 0 for value in op.operands
        ) and any(value in self.holders for value in op.operands)

    def _pitch(self, value: SSAValue) -> Slot:
        return self._argument(f"{self.symbols[value]}.pitch", IndexType())

    def _new_row(self, stream: SSAValue, holder: int) -> int:
        number = self.rows
        self.rows += 1
        self._name(stream, Slot(SlotKind.ROW, number), holder)
        return number

    def _row(self, op: dlc.RowStreamOp) -> None:
        if len(op.indices) != 1:
            refuse(op, "rank of a memref read by rows", "2", len(op.indices) + 1)
        base, element = (
            self._base(op.memref),
            cast("MemRefType[Attribute]", op.memref.type).element_type,
        )
        holder = self._holder(op.indices)
        index, length = self._slot(op.indices[0], op), self._slot(op.length, op)
        pitch = self._pitch(op.memref)
        number = self._new_row(op.result, holder)
        self.records.append(
            RowOp(
                number, holder, base, index, pitch, length, element, nontemporal=op.is_nontemporal
            )
        )

    def _vector(self, op: slcvec.MemStreamOp) -> None:
        """Add a vector as a part of a row, clipped where its unit ends."""
        shape = vector_shape(head_type(op.result.type))
        assert shape is not None, "checked by the op"
        lanes, element = shape
        if len(op.indices) != 2:
            refuse(op, "rank of a memref read by vectors", "2", len(op.indices))
        holder = self._holder(op.indices)
        index, offset = (self._slot(value, op) for value in op.indices)
        if offset != Slot(SlotKind.UNIT, holder):
            rule = "the induction variable of the innermost unit"
            refuse(op, "last index of a vector stream", rule, offset)
        base, pitch = self._base(op.memref), self._pitch(op.memref)
        end = self._slot(self.unit_ops[holder].upper_bound, op)
        number = self._new_row(op.result, holder)
        length = Slot(SlotKind.INTEGER, lanes)
        self.records.append(
            RowOp(
                number, holder, base, index, pitch, length, element,
                offset=offset, clip=(offset, end), nontemporal=op.is_nontemporal,
            )
        )  # fmt: skip


def _address(index: SSAValue) -> _Address:
    """Peel constants that are added to or multiplied with an index."""
    scale, offset = 1, 0
    while isinstance(alu := index.owner, slc.AluStreamOp):
        left, right = constant(alu.lhs), constant(alu.rhs)
        match alu.alu_op.data:
            case slc.AluKind.ADD if right is not None:
                index, offset = alu.lhs, offset + scale * right
            case slc.AluKind.ADD if left is not None:
                index, offset = alu.rhs, offset + scale * left
            case slc.AluKind.SUB if right is not None:
                index, offset = alu.lhs, offset - scale * right
            case slc.AluKind.MUL if right is not None:
                index, scale = alu.lhs, scale * right
            case slc.AluKind.MUL if left is not None:
                index, scale = alu.rhs, scale * left
            case _:
                break
    return _Address(index, scale, offset)


def _owner_name(value: SSAValue) -> str:
    return repr(value.owner.name) if isinstance(value.owner, Operation) else "a block argument"
