"""Physical names: which slot, argument register or integer stands for a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects import arith, func, llvm, memref
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from ember_hw.compiler.backend.extract_values import allocations
from ember_hw.compiler.dialects.au import ArgOp, Slot, SlotKind
from ember_hw.compiler.transforms.ir_facts import (
    argument_symbols,
    constant,
    refuse,
    strip_stream,
    value_name,
)


class PhysicalNames:
    """
    The names given so far in one access program.

    Parameters
    ----------
    function : FuncOp
        Has the attribute `ember.args`.
    sizes : mapping of str to sequence of int
        Dimensions of memref arguments that are known now and so become integers.

    Attributes
    ----------
    arguments : dict of str to ArgOp
        Argument registers, by symbol.
    slots : dict of SSAValue to Slot
        What stands for each stream and row.
    holders : dict of SSAValue to int
        The unit that advances each of them.
    """

    def __init__(self, function: func.FuncOp, sizes: Mapping[str, Sequence[int]]) -> None:
        self.sizes = sizes
        #: Of arguments, and of memory that the function allocates.
        self.symbols = {**argument_symbols(function), **allocations(function)}
        self.arguments: dict[str, ArgOp] = {}
        self.slots: dict[SSAValue, Slot] = {}
        self.holders: dict[SSAValue, int] = {}
        self._streams = self._rows = 0

    def name(self, stream: SSAValue, slot: Slot, holder: int) -> None:
        """Let a slot stand for a stream of a unit."""
        self.slots[stream] = slot
        self.holders[stream] = holder

    def new_stream(self, stream: SSAValue, holder: int) -> int:
        """Give a stream the next number."""
        number = self._streams
        self._streams += 1
        self.name(stream, Slot(SlotKind.STREAM, number), holder)
        return number

    def argument(self, symbol: str, type_: Attribute) -> Slot:
        """Return the argument register of a symbol, a new one at its first use."""
        if symbol not in self.arguments:
            self.arguments[symbol] = ArgOp(len(self.arguments), symbol, type_)
        return Slot(SlotKind.ARGUMENT, self.arguments[symbol].argument.data.number)

    def slot(self, value: SSAValue, user: Operation) -> Slot:
        """Return the slot of a stream or host value."""
        if value in self.slots:
            return self.slots[value]
        number = constant(value)
        if number is not None:
            return Slot(SlotKind.INTEGER, number)
        host = strip_stream(value)
        symbol = self._symbol(host)
        if symbol is not None:
            return self.argument(symbol, IndexType())
        if isinstance(host.owner, memref.DimOp) and host.owner.source in self.symbols:
            dimension = constant(host.owner.index)
            if dimension is not None:
                return self.dimension(self.symbols[host.owner.source], dimension)
        rule = "a stream, a constant, an argument or a dimension of one"
        refuse(user, f"operand {value_name(value)}", rule, f"a value of {_owner_name(host)}")

    def _symbol(self, value: SSAValue) -> str | None:
        """Return the symbol of an integer: an argument, or `name.0.1` of one that is a struct."""
        if isinstance(value.owner, arith.IndexCastOp):
            value = value.owner.input
        if value in self.symbols and isinstance(value.type, IndexType | IntegerType):
            return self.symbols[value]
        owner = value.owner
        if isinstance(owner, llvm.ExtractValueOp) and owner.container in self.symbols:
            places = (str(place) for place in owner.position.get_values())
            return ".".join((self.symbols[owner.container], *places))
        return None

    def dimension(self, name: str, dimension: int) -> Slot:
        """Return the extent of a memref argument: an integer, or an argument register."""
        if name in self.sizes:
            return Slot(SlotKind.INTEGER, self.sizes[name][dimension])
        # With more dimensions than two a region's `rows` are counted over all but the last.
        is_rows = not dimension and self._rank(name) <= 2
        symbol = f"{name}.rows" if is_rows else f"{name}.dim{dimension}"
        return self.argument(symbol, IndexType())

    def _rank(self, name: str) -> int:
        (type_,) = (value.type for value, symbol in self.symbols.items() if symbol == name)
        return cast("MemRefType[Attribute]", type_).get_num_dims()

    def base(self, value: SSAValue, user: Operation) -> int:
        """Return the argument register of a memref's base address."""
        if value not in self.symbols:
            rule = "an argument of the function, or allocated by it"
            refuse(user, f"memref {value_name(value)} of the access unit", rule, _owner_name(value))
        return self.argument(self.symbols[value], value.type).number

    def holder(self, operands: Sequence[SSAValue]) -> int:
        """Return the innermost unit that holds one of the streams."""
        return max((self.holders[value] for value in operands if value in self.holders), default=0)

    def pitch(self, value: SSAValue) -> Slot:
        """Return the distance of a memref's rows."""
        return self.argument(f"{self.symbols[value]}.pitch", IndexType())

    def next_row(self) -> int:
        """Return the next number of a row."""
        number = self._rows
        self._rows += 1
        return number

    def new_row(self, stream: SSAValue, holder: int) -> int:
        """Give a row the next number."""
        number = self.next_row()
        self.name(stream, Slot(SlotKind.ROW, number), holder)
        return number

    def new_value(self) -> int:
        """Return the next number of a stream that no value of the IR is."""
        number = self._streams
        self._streams += 1
        return number


def _owner_name(value: SSAValue) -> str:
    return repr(value.owner.name) if isinstance(value.owner, Operation) else "a block argument"
