"""The assembler: a program of the access-unit dialect becomes microcode.

Streams take their unit's records in text order (`au.next` moves its source to stream 0), rows the
row entries in text order, and each distinct value that is pushed takes one scalar of the bundle.
Integers become immediates; arguments become patches, which the launch fills in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, IndexType, IntegerType
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from ember_hw import isa
from ember_hw.compiler.backend.exports import Places, is_value, over_limit, refuse
from ember_hw.compiler.dialects.au import AU, ProgramOp, Slot, SlotKind
from ember_hw.compiler.dialects.au import Event as EventName
from ember_hw.compiler.dialects.au_program import (
    AccessProgram,
    AluStream,
    MemoryStream,
    NextStream,
    Push,
    Row,
    Stream,
    Unit,
    element_bytes,
    read_program,
)
from ember_hw.compiler.program import Argument, Callback, Operand, Patch, Program
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import AssemblyError

_EVENTS = {
    EventName.BEGIN: isa.Event.BEGIN,
    EventName.ITERATE: isa.Event.ITERATE,
    EventName.END: isa.Event.END,
}
_ONE = Slot(SlotKind.INTEGER, 1)


@dataclass(frozen=True)
class Assembly:
    """What the assembler makes of a program; the parts are those of `Program`."""

    name: str
    config: AcceleratorConfig
    microcode: isa.Microcode
    patches: tuple[Patch, ...]
    arguments: tuple[Argument, ...]
    callbacks: tuple[Callback, ...]

    def program(self, *, opt_level: int, ir: Mapping[str, str] | None = None) -> Program:
        """Return a program without kernels or tables."""
        return Program(
            name=self.name,
            config=self.config,
            opt_level=opt_level,
            microcode=self.microcode,
            patches=self.patches,
            arguments=self.arguments,
            callbacks=self.callbacks,
            ir=ir or {},
        )


def assemble(program: ProgramOp | AccessProgram, config: AcceleratorConfig) -> Assembly:
    """Assemble a verified program for a config.

    Parameters
    ----------
    program : ProgramOp or AccessProgram
        The op, or what `read_program` made of it.
    config : AcceleratorConfig
        Gives the limits, whatever target the program names.

    Raises
    ------
    AssemblyError
        The program exceeds a limit, or asks for what no record can say. The message names the op.
    """
    if isinstance(program, ProgramOp):
        program = read_program(program)
    return _Assembler(program, config).assemble()


def assemble_text(text: str, config: AcceleratorConfig | None = None) -> Assembly:
    """Assemble the text of one `au.program`.

    Parameters
    ----------
    text : str
        One program; `//` begins a comment.
    config : AcceleratorConfig, optional
        Gives the limits; absent, the preset that the program names as its target.

    Raises
    ------
    AssemblyError
        The text is not one legal program, its target is no preset, or see `assemble`.
    """
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(AU)
    try:
        module = Parser(context, text).parse_module()
        module.verify()
    except (ParseError, VerifyException) as error:
        raise AssemblyError(f"text must be a legal au.program: {error}") from error
    programs = [op for op in module.body.block.ops if isinstance(op, ProgramOp)]
    if len(programs) != 1:
        raise AssemblyError(f"text must hold 1 au.program, not {len(programs)}")
    if config is None:
        try:
            config = AcceleratorConfig.preset(programs[0].target.data)
        except ValueError as error:
            raise AssemblyError(f"target of au.program: {error}") from error
    return assemble(programs[0], config)


class _Assembler:
    def __init__(self, program: AccessProgram, config: AcceleratorConfig) -> None:
        self.program, self.config = program, config
        self.places = Places(program, config)
        self.symbols = {argument.number: argument.symbol for argument in program.arguments}
        self.records: dict[str, dict[str, int]] = {}
        self.patches: list[Patch] = []

    def assemble(self) -> Assembly:
        for level, unit in enumerate(self.program.units):
            self._unit(unit, level)
            self._exports(level)
        for level, streams in enumerate(self.places.memory):
            for number, stream in enumerate(streams):
                self._memory(stream, f"unit{level}.stream{number}", level)
        for level, stream in enumerate(self.places.alu):
            if isinstance(stream, AluStream):
                self._alu(stream, level)
            elif isinstance(stream, NextStream):
                self._set(stream, f"unit{level}", "pair", 1)
        events = self._row_events()
        for number, row in enumerate(self.program.rows):
            if number >= self.config.row_entries:
                raise over_limit(row, f"row entry {number}", self.config, "row_entries")
            self._row(row, f"row{number}", events[row.number])
        callbacks = self._callbacks()
        return Assembly(
            name=self.program.name,
            config=self.config,
            microcode=isa.Microcode(self.config, self.records),
            patches=tuple(self.patches),
            arguments=tuple(Argument(a.symbol, str(a.type)) for a in self.program.arguments),
            callbacks=callbacks,
        )

    # Fields

    def _set(self, item: Unit | Stream | Row | str, record: str, field: str, value: int) -> None:
        legal = isa.layouts(self.config)[record].field(field)
        if not legal.least <= value <= legal.most:
            raise refuse(
                item,
                f"field {field!r} of record {record!r} must be "
                f"from {legal.least} to {legal.most}, not {value}",
            )
        self.records.setdefault(record, {})[field] = value

    def _set_constant(
        self, item: Unit | Stream | Row, record: str, field: str, slot: Slot, scale: int = 1
    ) -> None:
        """Set a field to an integer, or have the launch set it to an argument."""
        if slot.kind is SlotKind.INTEGER:
            self._set(item, record, field, slot.number * scale)
        else:
            self.patches.append(Patch(record, field, self.symbols[slot.number], scale))

    # Records

    def _unit(self, unit: Unit, level: int) -> None:
        record = f"unit{level}"
        self._set(unit, record, "enable", 1)
        self._set(unit, record, "step", unit.step)
        if is_value(unit.lower):
            self._set(unit, record, "lower_source", isa.BoundSource.SLOT)
            self._set(unit, record, "lower_slot", self.places.slot(unit.lower, level))
        else:
            self._set_constant(unit, record, "lower_immediate", unit.lower)
        if unit.upper_offset is not None:
            self._set(unit, record, "upper_source", isa.BoundSource.LOWER_PLUS)
            self._set(unit, record, "upper_immediate", unit.upper_offset)
        elif is_value(unit.upper):
            self._set(unit, record, "upper_source", isa.BoundSource.SLOT)
            self._set(unit, record, "upper_slot", self.places.slot(unit.upper, level))
        else:
            self._set_constant(unit, record, "upper_immediate", unit.upper)

    def _exports(self, level: int) -> None:
        unit = self.program.units[level]
        for number, value in enumerate(self.places.exports[level]):
            self._set(unit, f"unit{level}", f"export{number}", self.places.slot(value, level))

    def _alu(self, stream: AluStream, level: int) -> None:
        record, lhs, rhs = f"unit{level}", stream.lhs, stream.rhs
        name = stream.operation.value
        if not is_value(lhs) and name in ("add", "mul"):
            lhs, rhs = rhs, lhs
        if not is_value(lhs):
            raise refuse(
                stream, f"left operand of {name} must be a unit or stream, not {stream.lhs}"
            )
        self._set(stream, record, "alu_operation", isa.AluOperation[name.upper()])
        self._set(stream, record, "alu_a_slot", self.places.slot(lhs, level))
        if is_value(rhs):
            self._set(stream, record, "alu_b_source", isa.Source.SLOT)
            self._set(stream, record, "alu_b_slot", self.places.slot(rhs, level))
        else:
            self._set_constant(stream, record, "alu_immediate", rhs)

    def _memory(self, stream: MemoryStream, record: str, level: int) -> None:
        size = element_bytes(stream.element_type)
        symbol = self.symbols[stream.base]
        is_integer = isinstance(stream.element_type, IntegerType | IndexType)
        self._set(stream, record, "enable", 1)
        self._set(stream, record, "size", size.bit_length() - 1)
        self._set(stream, record, "signed", int(is_integer))
        self.patches.append(Patch(record, "base", symbol))
        self.patches.append(Patch(record, "region_bytes", f"{symbol}.bytes"))
        if stream.nontemporal:
            self._set(stream, record, "hint", isa.Hint.NON_TEMPORAL)
        self._address(stream, record, level, size)

    def _address(self, stream: MemoryStream, record: str, level: int, size: int) -> None:
        """Encode ``index * scale + offset`` as shifted slot, second slot with pitch, constant."""
        products = [(stream.index, stream.scale or _ONE)]
        if stream.offset is not None:
            products.append((stream.offset, _ONE))
        # Each value with its constant scale; constants apart.
        terms: list[tuple[Slot, Slot]] = []
        constants: list[tuple[Slot, Slot]] = []
        for left, right in products:
            if is_value(right):
                left, right = right, left
            if is_value(right):
                raise refuse(stream, f"{left} must be scaled by a constant, not by {right}")
            (terms if is_value(left) else constants).append((left, right))

        own = {value for value, _ in terms if self.places.owners[value][0] == level}
        for value in own:
            if value.kind is not SlotKind.UNIT:
                raise refuse(
                    stream, f"{value} must be of a unit above to select an address, not of the same"
                )
        for number, (value, scale) in enumerate(terms):
            others = terms[:number] + terms[number + 1 :]
            shift = _shift(scale, size)
            if shift is not None and all(other not in own for other, _ in others):
                break
        else:
            raise refuse(
                stream,
                "address must be a value times a power of two, plus at most one value of a unit "
                "above times a constant, plus a constant",
            )
        self._set(stream, record, "slot", self.places.slot(value, level))
        self._set(stream, record, "shift", shift)
        for outer, pitch in others:
            self._set(stream, record, "second_enable", 1)
            self._set(stream, record, "second_slot", self.places.slot(outer, level))
            self._set_constant(stream, record, "second_pitch", pitch, size)
        for left, right in constants:
            if left.kind is SlotKind.ARGUMENT:
                left, right = right, left
            if left.kind is SlotKind.ARGUMENT:
                raise refuse(stream, f"{right} must be scaled by an integer, not by {left}")
            self._set_constant(stream, record, "first", right, left.number * size)

    def _row(self, row: Row, record: str, events: int) -> None:
        size = element_bytes(row.element_type)
        symbol = self.symbols[row.base]
        if not is_value(row.index):
            raise refuse(row, f"row number must be a unit or stream, not {row.index}")
        self._set(row, record, "events", events)
        self._set(row, record, "index_export", self.places.leaf_export(row.index))
        self.patches.append(Patch(record, "base", symbol))
        self.patches.append(Patch(record, "rows", f"{symbol}.rows"))
        for field, slot in (("pitch", row.pitch), ("length", row.length)):
            if is_value(slot):
                if size > 1:
                    raise refuse(
                        row,
                        f"{field} must be an integer or argument, not {slot}: only of bytes "
                        "may it be a value",
                    )
                self._set(row, record, f"{field}_source", isa.Source.SLOT)
                self._set(row, record, f"{field}_export", self.places.leaf_export(slot))
            else:
                self._set_constant(row, record, field, slot, size)
        if row.nontemporal:
            self._set(row, record, "hint", isa.Hint.NON_TEMPORAL)
        if row.offset is not None or row.clip is not None:
            self._part(row, record, size)

    def _part(self, row: Row, record: str, size: int) -> None:
        """Encode a part of a row: ``+ tN`` with ``clip tN to end``."""
        offset, clip = row.offset, row.clip
        if offset is None or offset.kind is not SlotKind.UNIT:
            raise refuse(row, f"offset of a part must be a unit's value, not {offset or 'absent'}")
        if clip is None or clip[0] != offset or is_value(clip[1]):
            found = "absent" if clip is None else f"{clip[0]} to {clip[1]}"
            raise refuse(row, f"clip must be {offset} to an integer or argument, not {found}")
        unit = self.program.units[self.places.levels[offset.number]]
        bus_bytes = self.config.bus_bytes
        parts = {f"lower bound of t{unit.number}": unit.lower, "length": row.length}
        parts[f"step of t{unit.number}"] = Slot(SlotKind.INTEGER, unit.step)
        for what, slot in parts.items():
            if slot.kind is not SlotKind.INTEGER or slot.number * size % bus_bytes:
                raise refuse(
                    row,
                    f"{what} must be a multiple of {bus_bytes // size} elements, the bus width of "
                    f"config {self.config.name!r}, not {slot}",
                )
        self._set(row, record, "offset_enable", 1)
        self._set(row, record, "offset_export", self.places.leaf_export(offset))
        self._set(row, record, "offset_shift", size.bit_length() - 1)
        self._set_constant(row, record, "clip", clip[1], size)

    # Pushes

    def _row_events(self) -> dict[int, int]:
        """Return the event mask of each row; every row is pushed once."""
        pushed: dict[int, list[Push]] = {row.number: [] for row in self.program.rows}
        for push in self.program.pushes:
            for operand in push.operands:
                if operand.kind is SlotKind.ROW:
                    pushed[operand.number].append(push)
        for row in self.program.rows:
            if len(pushed[row.number]) != 1:
                raise refuse(row, f"must be pushed once, not {len(pushed[row.number])} times")
        return {number: self._mask(pushes[0]) for number, pushes in pushed.items()}

    def _mask(self, push: Push) -> int:
        event = _EVENTS[push.event], self.places.levels[push.unit]
        return isa.event_mask([event], self.config)

    def _callbacks(self) -> tuple[Callback, ...]:
        scalars: dict[Slot, int] = {}
        rows = {row.number: position for position, row in enumerate(self.program.rows)}
        callbacks: list[Callback] = []
        told = 0
        for push in self.program.pushes:
            name = f"au.push t{push.unit} {push.event.value}"
            told |= self._mask(push)
            operands: list[Operand] = []
            for slot in push.operands:
                if slot.kind is SlotKind.ROW:
                    operands.append(Operand("row", rows[slot.number], self._dtype(slot)))
                    continue
                if not is_value(slot):
                    raise refuse(name, f"operand must be a unit, stream or row, not {slot}")
                if slot not in scalars:
                    if len(scalars) >= self.config.bundle_scalars:
                        needed = f"scalar {len(scalars)} for {slot}"
                        raise over_limit(name, needed, self.config, "bundle_scalars")
                    export = self.places.leaf_export(slot)
                    self._set(name, "issue", f"scalar{len(scalars)}_export", export)
                    scalars[slot] = len(scalars)
                operands.append(Operand("scalar", scalars[slot], self._dtype(slot)))
            level, event = self.places.levels[push.unit], _EVENTS[push.event]
            callbacks.append(Callback(push.id, level, event, tuple(operands)))
        self._set("au.push", "issue", "events", told)
        ids = [callback.id for callback in callbacks]
        for callback_id in ids:
            if ids.count(callback_id) > 1:
                raise refuse("au.push", f"id must be given once, not {callback_id} again")
        return tuple(sorted(callbacks, key=lambda callback: callback.id))

    def _dtype(self, slot: Slot) -> str:
        """Return the element type of what a slot holds, `index` where the access unit computes."""
        if slot.kind is SlotKind.ROW:
            rows = {row.number: row for row in self.program.rows}
            return str(rows[slot.number].element_type)
        streams = {stream.number: stream for stream in self.program.streams}
        stream = streams.get(slot.number) if slot.kind is SlotKind.STREAM else None
        if isinstance(stream, NextStream):
            stream = streams[stream.source]
        return str(stream.element_type) if isinstance(stream, MemoryStream) else "index"


def _shift(scale: Slot, size: int) -> int | None:
    """Return the shift that multiplies by the scale and the element's bytes, if there is one."""
    step = scale.number * size
    if scale.kind is not SlotKind.INTEGER or step < 1 or step & (step - 1):
        return None
    shift = step.bit_length() - 1
    return shift if shift < 16 else None
