"""The stream ops of `slc`: what one resource of the access unit computes from heads and memory."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override
from xdsl.dialects.builtin import BoolAttr, IndexType, IntegerType, MemRefType, i1
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Operation, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, Pure
from xdsl.utils.str_enum import StrEnum

from ember_hw.compiler.dialects.stream_types import (
    StreamType,
    head_type,
    hint_properties,
    is_index_or_stream,
    is_set,
    memref_type,
    reject,
    verify_hints,
)


class AluKind(StrEnum):
    """Integer operation of an ALU stream; `div` is signed and rounds toward zero."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"


@irdl_attr_definition
class AluKindAttr(EnumAttribute[AluKind], SpacedOpaqueSyntaxAttribute):
    """Operation of an ALU stream. Text: `#slc<op_type add>`."""

    name = "slc.op_type"


@irdl_op_definition
class ToStreamOp(IRDLOperation):
    """
    A host value as a constant stream.

    ```mlir
    %s = slc.to_stream %v : index to !slc.stream<index>
    ```
    """

    name = "slc.to_stream"

    value = operand_def()
    """The value that every iteration sees."""
    stream = result_def(StreamType)
    """The stream of it."""

    traits = traits_def(Pure())

    assembly_format = "$value attr-dict `:` type($value) `to` type($stream)"

    def __init__(self, value: SSAValue | Operation) -> None:
        value = SSAValue.get(value)
        super().__init__(operands=[value], result_types=[StreamType(value.type)])

    @override
    def verify_(self) -> None:
        element = self.stream.type.element_type
        if element != self.value.type:
            reject("element of the result stream", f"the value's type {self.value.type}", element)


@irdl_op_definition
class FromStreamOp(IRDLOperation):
    """
    The head of a stream, read by a callback.

    ```mlir
    %v = slc.from_stream %s : !slc.stream<f32> to f32
    ```
    """

    name = "slc.from_stream"

    stream = operand_def(StreamType)
    """The stream to read."""
    value = result_def()
    """Its head."""

    traits = traits_def(Pure())

    assembly_format = "$stream attr-dict `:` type($stream) `to` type($value)"

    def __init__(self, stream: SSAValue | Operation) -> None:
        stream = SSAValue.get(stream)
        super().__init__(operands=[stream], result_types=[head_type(stream.type)])

    @override
    def verify_(self) -> None:
        element = head_type(self.stream.type)
        if element != self.value.type:
            reject("type of the value read", f"the stream's element {element}", self.value.type)


@irdl_op_definition
class CastStreamOp(IRDLOperation):
    """
    A stream of integers as a stream of indices (`arith.index_cast` of its heads).

    ```mlir
    %i = slc.cast_stream %s : !slc.stream<i64> to !slc.stream<index>
    ```
    """

    name = "slc.cast_stream"

    stream = operand_def(StreamType)
    """Stream of a signless integer type."""
    result = result_def(StreamType)
    """Stream of `index`."""

    traits = traits_def(Pure())

    assembly_format = "$stream attr-dict `:` type($stream) `to` type($result)"

    def __init__(self, stream: SSAValue | Operation) -> None:
        super().__init__(operands=[stream], result_types=[StreamType(IndexType())])

    @override
    def verify_(self) -> None:
        source = head_type(self.stream.type)
        if source == i1 or not isinstance(source, IntegerType):
            reject(
                "element of the stream to cast",
                "an integer wider than i1",
                str(head_type(self.stream.type)),
            )
        target = head_type(self.result.type)
        if not isinstance(target, IndexType):
            reject("element of the cast stream", "index", target)


@irdl_op_definition
class MemStreamOp(IRDLOperation):
    """
    The stream of `memref[heads of the indices]`.

    ```mlir
    %v = slc.mem_stream %m[%i] {nontemporal = true}
        : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
    ```
    """

    name = "slc.mem_stream"

    memref = operand_def(MemRefType)
    """The memory that is read."""
    indices = var_operand_def()
    """One per dimension, each index or stream of index."""
    nontemporal = opt_prop_def(BoolAttr)
    """Whether the data isn't expected to be read again soon; absent means false."""
    keep = opt_prop_def(BoolAttr)
    """Whether it is expected to be read again soon; absent means false."""
    result = result_def(StreamType)
    """Stream of the memref's element type."""

    traits = traits_def(MemoryReadEffect())
    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = (
        "$memref `[` $indices `]` attr-dict `:` type($memref) `[` type($indices) `]` "
        "`into` type($result)"
    )

    def __init__(
        self,
        memref: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        *,
        nontemporal: bool = False,
        keep: bool = False,
    ) -> None:
        super().__init__(
            operands=[memref, indices],
            result_types=[StreamType(memref_type(SSAValue.get(memref)).element_type)],
            properties=hint_properties(nontemporal, keep),
        )

    @property
    def is_nontemporal(self) -> bool:
        """Whether `nontemporal` is present and true."""
        return is_set(self.nontemporal)

    @property
    def is_kept(self) -> bool:
        """Whether `keep` is present and true."""
        return is_set(self.keep)

    @override
    def verify_(self) -> None:
        verify_index_count(memref_type(self.memref), len(self.indices))
        verify_hints(self.nontemporal, self.keep)
        for index in self.indices:
            if not is_index_or_stream(index.type):
                reject("type of an index", "index or !slc.stream<index>", index.type)
        element = head_type(self.result.type)
        expected = memref_type(self.memref).element_type
        if element != expected:
            reject("element of the result stream", f"the memref's element type {expected}", element)


@irdl_op_definition
class ViewOp(IRDLOperation):
    """
    A table in a memory of one dimension, at a place and of a shape that streams give.

    ```mlir
    %t = slc.view %m at %base rows %n len %d pitch %p
        : memref<?xf32>[!slc.stream<index>, !slc.stream<index>, !slc.stream<index>, index]
        to memref<?x?xf32, strided<[?, 1], offset: ?>>
    ```

    Element [i, k] is `m[base + i * pitch + k]`; `memref.reinterpret_cast` at heads. Streams may
    read the table as any memory.
    """

    name = "slc.view"

    source = operand_def(MemRefType)
    """The memory."""
    base = operand_def()
    """Its first element: index or stream of index, as are the others."""
    rows = operand_def()
    """Number of rows."""
    length = operand_def()
    """Elements of a row."""
    pitch = operand_def()
    """Elements between two rows."""
    result = result_def(MemRefType)
    """The table, of two dimensions and unit stride in the last."""

    traits = traits_def(Pure())

    assembly_format = (
        "$source `at` $base `rows` $rows `len` $length `pitch` $pitch attr-dict `:` type($source) "
        "`[` type($base) `,` type($rows) `,` type($length) `,` type($pitch) `]` `to` type($result)"
    )

    def __init__(
        self,
        source: SSAValue | Operation,
        base: SSAValue | Operation,
        rows: SSAValue | Operation,
        length: SSAValue | Operation,
        pitch: SSAValue | Operation,
        result_type: Attribute,
    ) -> None:
        super().__init__(operands=[source, base, rows, length, pitch], result_types=[result_type])

    @override
    def verify_(self) -> None:
        for operand in (self.base, self.rows, self.length, self.pitch):
            if not is_index_or_stream(operand.type):
                reject("type of a view's shape", "index or !slc.stream<index>", operand.type)
        source, result = memref_type(self.source), memref_type(self.result)
        if source.get_num_dims() != 1:
            reject("memory of a view", "a memref of one dimension", source)
        strides = result.get_strides()
        if result.get_num_dims() != 2 or strides is None or strides[-1] != 1:
            reject("view", "a memref of two dimensions with unit stride in the last", result)
        if result.element_type != source.element_type:
            reject("element type of a view", f"the memory's {source.element_type}", result)


def verify_index_count(memref: MemRefType[Attribute], count: int, *, missing: int = 0) -> None:
    """Raise unless `count` indices fit the memref; its last `missing` dimensions have none."""
    rank = memref.get_num_dims()
    if count != rank - missing:
        suffix = f" less {missing}" if missing else ""
        reject("number of indices", f"the memref's rank {rank}{suffix}", count)


@irdl_op_definition
class AluStreamOp(IRDLOperation):
    """
    The stream of an integer operation on two heads.

    ```mlir
    %k = slc.alu_stream<add> %i, %one : !slc.stream<index>, index -> !slc.stream<index>
    ```
    """

    name = "slc.alu_stream"

    alu_op = prop_def(AluKindAttr, prop_name="aluOp")
    """The operation."""
    lhs = operand_def()
    """Left operand: index or stream of index."""
    rhs = operand_def()
    """Right operand: index or stream of index."""
    result = result_def(StreamType)
    """Stream of index."""

    traits = traits_def(Pure())

    assembly_format = (
        "`` `<` $aluOp `>` $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"
    )

    def __init__(
        self, alu_op: AluKind, lhs: SSAValue | Operation, rhs: SSAValue | Operation
    ) -> None:
        super().__init__(
            operands=[lhs, rhs],
            result_types=[StreamType(IndexType())],
            properties={"aluOp": AluKindAttr(alu_op)},
        )

    @override
    def verify_(self) -> None:
        for side, operand in (("left", self.lhs), ("right", self.rhs)):
            if not is_index_or_stream(operand.type):
                reject(f"type of the {side} operand", "index or !slc.stream<index>", operand.type)
        if not isinstance(head_type(self.result.type), IndexType):
            reject("type of the result", "!slc.stream<index>", self.result.type)
