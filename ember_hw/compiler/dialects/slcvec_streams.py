"""The ops of `slcvec` besides its loop: vector streams, row buffers, and the lanes of a chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from typing_extensions import override
from xdsl.dialects.builtin import BoolAttr, IndexType, IntegerAttr, MemRefType, VectorType, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryAllocEffect, MemoryReadEffect, MemoryWriteEffect, Pure

from ember_hw.compiler.dialects.slc_streams import verify_index_count
from ember_hw.compiler.dialects.stream_types import (
    StreamType,
    head_type,
    hint_properties,
    is_set,
    memref_type,
    reject,
    row_type,
    vector_shape,
    vector_stream,
    verify_hints,
    verify_row,
    verify_vector,
)


@irdl_op_definition
class MemStreamOp(IRDLOperation):
    """
    A vector of memory elements: a gather. An inactive lane reads nothing and gives 0.

    ```mlir
    %v = slcvec.mem_stream %x[%r, %d]
        : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>]
        into !slc.stream<vector<4xf32>>
    ```

    An index that isn't a vector is the same for all lanes. Without any vector index, the VL
    contiguous elements from the last index are read.
    """

    name = "slcvec.mem_stream"

    memref = operand_def(MemRefType)
    """The memory that is read."""
    indices = var_operand_def()
    """One per dimension: index, stream of index, or stream of vector of index."""
    nontemporal = opt_prop_def(BoolAttr)
    """Whether the data isn't expected to be read again soon; absent means false."""
    keep = opt_prop_def(BoolAttr)
    """Whether it is expected to be read again soon; absent means false."""
    result = result_def(StreamType)
    """Stream of vectors of the memref's element type."""

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
        vector_length: int,
        *,
        nontemporal: bool = False,
        keep: bool = False,
    ) -> None:
        element = memref_type(SSAValue.get(memref)).element_type
        super().__init__(
            operands=[memref, indices],
            result_types=[vector_stream(vector_length, element)],
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
        lanes, element = verify_vector("element of the result stream", head_type(self.result.type))
        expected = memref_type(self.memref).element_type
        if element != expected:
            reject(
                "element of the result vectors", f"the memref's element type {expected}", element
            )
        index_vector = vector_stream(lanes, IndexType())
        for index in self.indices:
            if head_type(index.type) != IndexType() and index.type != index_vector:
                rule = f"index, !slc.stream<index> or {index_vector}"
                reject("type of an index", rule, index.type)


@irdl_op_definition
class BroadcastOp(IRDLOperation):
    """
    The stream of vectors whose lanes all hold the head of a scalar stream.

    ```mlir
    %v = slcvec.broadcast %s : !slc.stream<f32> to !slc.stream<vector<8xf32>>
    ```
    """

    name = "slcvec.broadcast"

    stream = operand_def(StreamType)
    """Scalar stream."""
    result = result_def(StreamType)
    """Vector stream of the same element type."""

    traits = traits_def(Pure())

    assembly_format = "$stream attr-dict `:` type($stream) `to` type($result)"

    def __init__(self, stream: SSAValue | Operation, vector_length: int) -> None:
        stream = SSAValue.get(stream)
        super().__init__(
            operands=[stream], result_types=[vector_stream(vector_length, head_type(stream.type))]
        )

    @override
    def verify_(self) -> None:
        _verify_lane(self.result.type.element_type, head_type(self.stream.type))


def _verify_lane(vector: Attribute, scalar: Attribute) -> None:
    """Raise unless `vector` is a legal vector whose element type is `scalar`."""
    _, element = verify_vector("vector side of the op", vector)
    if element != scalar:
        reject("scalar side of the op", f"the vector's element type {element}", scalar)


@irdl_op_definition
class ExtractOp(IRDLOperation):
    """
    One lane of a vector stream.

    ```mlir
    %s = slcvec.extract %v[0 : i64] : !slc.stream<vector<8xindex>> -> !slc.stream<index>
    ```
    """

    name = "slcvec.extract"

    stream = operand_def(StreamType)
    """Vector stream."""
    index = prop_def(IntegerAttr)
    """Lane, 0 <= index < VL."""
    result = result_def(StreamType)
    """Scalar stream of the same element type."""

    traits = traits_def(Pure())

    assembly_format = "$stream `[` $index `]` attr-dict `:` type($stream) `->` type($result)"

    def __init__(self, stream: SSAValue | Operation, index: int) -> None:
        stream = SSAValue.get(stream)
        shape = vector_shape(head_type(stream.type))
        element = shape[1] if shape is not None else head_type(stream.type)
        super().__init__(
            operands=[stream],
            result_types=[StreamType(element)],
            properties={"index": IntegerAttr(index, i64)},
        )

    @override
    def verify_(self) -> None:
        _verify_lane(head_type(self.stream.type), self.result.type.element_type)
        lanes, _ = verify_vector("vector side of the op", head_type(self.stream.type))
        if not 0 <= self.index.value.data < lanes:
            reject("lane index", f"at least 0 and below {lanes}", self.index.value.data)


@irdl_op_definition
class TmpVecStreamCastOp(IRDLOperation):
    """
    Bookkeeping between the vectorizer's passes: a vector stream where a scalar one is expected.

    ```mlir
    %s = slcvec.tmp_vec_stream_cast %v : !slc.stream<vector<8xf32>> to !slc.stream<f32>
    ```

    It has no meaning to execute; `check-dae` refuses it outside the vectorizer.
    """

    name = "slcvec.tmp_vec_stream_cast"

    source = operand_def(StreamType)
    """Vector stream."""
    result = result_def(StreamType)
    """Scalar stream of the same element type."""

    traits = traits_def(Pure())

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue | Operation) -> None:
        source = SSAValue.get(source)
        shape = vector_shape(head_type(source.type))
        element = shape[1] if shape is not None else head_type(source.type)
        super().__init__(operands=[source], result_types=[StreamType(element)])

    @override
    def verify_(self) -> None:
        _verify_lane(head_type(self.source.type), self.result.type.element_type)


@irdl_op_definition
class TmpVecCastOp(IRDLOperation):
    """
    Bookkeeping between the vectorizer's passes: a vector where a scalar is expected.

    ```mlir
    %s = slcvec.tmp_vec_cast %v : vector<8xf32> to f32
    ```

    It has no meaning to execute; `check-dae` refuses it outside the vectorizer.
    """

    name = "slcvec.tmp_vec_cast"

    source = operand_def()
    """Vector."""
    result = result_def()
    """Scalar of its element type."""

    traits = traits_def(Pure())

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue | Operation) -> None:
        source = SSAValue.get(source)
        shape = vector_shape(source.type)
        super().__init__(
            operands=[source], result_types=[shape[1] if shape is not None else source.type]
        )

    @override
    def verify_(self) -> None:
        _verify_lane(self.source.type, self.result.type)


@irdl_op_definition
class BufStreamOp(IRDLOperation):
    """
    An empty row buffer.

    ```mlir
    %b = slcvec.buf_stream : !slc.stream<memref<?xf32>>
    ```
    """

    name = "slcvec.buf_stream"

    result = result_def(StreamType)
    """Stream of rows (memref of one dimension)."""

    traits = traits_def(MemoryAllocEffect())

    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, element_type: Attribute) -> None:
        super().__init__(result_types=[StreamType(row_type(element_type))])

    @override
    def verify_(self) -> None:
        verify_row("element of the buffer", self.result.type.element_type)


@irdl_op_definition
class ToBufferOp(IRDLOperation):
    """
    Put the active lanes of a vector into a row: `buffer[lanes of the index] = lanes of the stream`.

    ```mlir
    slcvec.to_buffer %v, %b[%d] : !slc.stream<vector<4xf32>>
        -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>]
    ```
    """

    name = "slcvec.to_buffer"

    stream = operand_def(StreamType)
    """What is put: a scalar or vector stream."""
    buffer = operand_def(StreamType)
    """The row buffer."""
    indices = var_operand_def(StreamType)
    """One stream of index, or of as many lanes of index as the vector has."""

    traits = traits_def(MemoryWriteEffect())

    assembly_format = (
        "$stream `,` $buffer `[` $indices `]` attr-dict `:` type($stream) `->` type($buffer) "
        "`[` type($indices) `]`"
    )

    def __init__(
        self,
        stream: SSAValue | Operation,
        buffer: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
    ) -> None:
        super().__init__(operands=[stream, buffer, indices])

    @override
    def verify_(self) -> None:
        element = verify_row("element of the buffer", head_type(self.buffer.type))
        shape = vector_shape(head_type(self.stream.type))
        lanes, found = shape if shape is not None else (None, head_type(self.stream.type))
        if found != element:
            reject("element put into the buffer", f"the buffer's element type {element}", found)
        if len(self.indices) != 1:
            reject("number of indices", "the buffer's rank 1", len(self.indices))
        index = IndexType() if lanes is None else VectorType(IndexType(), [lanes])
        if self.indices[0].type != StreamType(index):
            reject("type of the index", str(StreamType(index)), self.indices[0].type)


@irdl_op_definition
class FromBufferOp(IRDLOperation):
    """
    A vector (or one element) of a row, in a callback; lanes beyond the row read 0.

    ```mlir
    %w = slcvec.from_buffer %r[%i] : memref<?xf32>[index] -> vector<4xf32>
    ```
    """

    name = "slcvec.from_buffer"

    memref = operand_def(MemRefType)
    """The row."""
    indices = var_operand_def(IndexType)
    """First lane, one index."""
    nontemporal = opt_prop_def(BoolAttr)
    """Whether the data isn't expected to be read again soon; absent means false."""
    result = result_def()
    """Vector of the row's element type, or one element."""

    traits = traits_def(MemoryReadEffect())
    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = (
        "$memref `[` $indices `]` attr-dict `:` type($memref) `[` type($indices) `]` "
        "`->` type($result)"
    )

    def __init__(
        self, memref: SSAValue | Operation, index: SSAValue | Operation, result_type: Attribute
    ) -> None:
        super().__init__(operands=[memref, [index]], result_types=[result_type])

    @override
    def verify_(self) -> None:
        element = verify_row("buffer", self.memref.type)
        if len(self.indices) != 1:
            reject("number of indices", "the buffer's rank 1", len(self.indices))
        shape = vector_shape(self.result.type)
        if (shape[1] if shape is not None else self.result.type) != element:
            rule = f"the buffer's element type {element} or a vector of it"
            reject("type of the result", rule, self.result.type)


class _LaneOp(IRDLOperation):
    """Base of the two ops that derive a vector from a chunk's scalar position."""

    LANE_TYPE: ClassVar[Attribute]

    induction_variable = operand_def(IndexType)
    """Value of lane 0."""
    lower_bound = operand_def(IndexType)
    """First value of the loop."""
    upper_bound = operand_def(IndexType)
    """Exclusive end of the loop."""
    element_step = operand_def(IndexType)
    """Distance of two lanes."""
    result = result_def(VectorType)
    """One value a lane."""

    traits = traits_def(Pure())

    assembly_format = (
        "$induction_variable $lower_bound $upper_bound $element_step attr-dict `:` type($result)"
    )

    def __init__(
        self,
        induction_variable: SSAValue | Operation,
        lower_bound: SSAValue | Operation,
        upper_bound: SSAValue | Operation,
        element_step: SSAValue | Operation,
        vector_length: int,
    ) -> None:
        super().__init__(
            operands=[induction_variable, lower_bound, upper_bound, element_step],
            result_types=[VectorType(self.LANE_TYPE, [vector_length])],
        )

    @override
    def verify_(self) -> None:
        _, element = verify_vector("type of the result", self.result.type)
        if element != self.LANE_TYPE:
            reject("element of the result", str(self.LANE_TYPE), element)


@irdl_op_definition
class VecIndvarOp(_LaneOp):
    """
    The lanes' values `iv + k * e`.

    ```mlir
    %v = slcvec.vec_indvar %iv %lb %ub %e : vector<8xindex>
    ```
    """

    name = "slcvec.vec_indvar"

    LANE_TYPE: ClassVar[Attribute] = IndexType()


@irdl_op_definition
class MaskOp(_LaneOp):
    """
    The lanes that lie inside the loop: `lb <= iv + k * e < ub`.

    ```mlir
    %m = slcvec.mask %iv %lb %ub %e : vector<8xi1>
    ```
    """

    name = "slcvec.mask"

    LANE_TYPE: ClassVar[Attribute] = i1
