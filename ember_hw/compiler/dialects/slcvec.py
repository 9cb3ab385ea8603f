"""
`slcvec`, vectorised `slc`: loops that advance by a vector of lanes, row buffers, masks.

A vector of VL lanes (2, 3, 4, 8 or 16) is one head of a stream. Only the `bcast` loop form, a vector
loop inside scalar loops, is lowered; the others are read so that reference text can be.

Ref: the published Ember implementation, op definitions of its SLCVEC dialect (spelling of its parser).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    BoolAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    VectorType,
    i1,
    i64,
)
from xdsl.dialects.utils import AbstractYieldOperation, EnumAttribute
from xdsl.ir import (
    Attribute,
    BlockArgument,
    Dialect,
    Operation,
    Region,
    SpacedOpaqueSyntaxAttribute,
    SSAValue,
)
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsTerminator,
    MemoryAllocEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    Pure,
    RecursiveMemoryEffect,
    SingleBlockImplicitTerminator,
    ensure_terminator,
)
from xdsl.utils.str_enum import StrEnum

from ember_hw.compiler.dialects.slc import (
    new_body,
    parse_init_args,
    print_init_args,
    verify_carried,
    verify_index_count,
)
from ember_hw.compiler.dialects.stream_types import (
    VECTOR_LENGTHS,
    StreamType,
    head_type,
    reject,
    row_type,
    stream_element,
    vector_shape,
)


class LoopConfig(StrEnum):
    """How a vector loop stands among the loops around it; `none` is unset."""

    NONE = "none"
    SCALAR = "scl"
    BROADCAST = "bcast"
    VECTOR = "vec"


@irdl_attr_definition
class LoopConfigAttr(EnumAttribute[LoopConfig], SpacedOpaqueSyntaxAttribute):
    """Form of a vector loop. Text: `#slcvec<loop_config bcast>`."""

    name = "slcvec.loop_config"


def vector_stream(lanes: int, element_type: Attribute) -> StreamType:
    """The type `!slc.stream<vector<lanes x element_type>>`."""
    return StreamType(VectorType(element_type, [lanes]))


def _verify_vector(what: str, type_: Attribute) -> tuple[int, Attribute]:
    """Lanes and element type of a vector; raise unless its length is legal."""
    shape = vector_shape(type_)
    if shape is None:
        lengths = ", ".join(str(length) for length in VECTOR_LENGTHS)
        reject(what, f"a vector of {lengths} lanes", type_)
    return shape


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """
    Ends the body of an `slcvec.for`.

    ```mlir
    slcvec.yield
    ```
    """

    name = "slcvec.yield"

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(ForOp), Pure()))


@irdl_op_definition
class ForOp(IRDLOperation):
    """
    A loop whose step is a vector of VL lanes.

    ```mlir
    slcvec.for<4>(%iv xx %om) = %lb to %ub step %st mask %im
        : (!slc.stream<index> xx !slc.stream<vector<4xi1>>)
        -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) { ... }
        {loopConfig = #slcvec<loop_config bcast>}
    ```

    With the element step `e = st / VL`, lane k of a step is `iv = head + k*e`, and it is active iff
    `iv < ub` and `im[k]`. Scalar meaning: `for (i = lb; i < ub; i += e) body`.
    """

    name = "slcvec.for"

    lower_bound = operand_def()
    """First value: index, stream of index, or (per lane) stream of vector of index."""
    upper_bound = operand_def()
    """Exclusive end, of the same type."""
    step = operand_def()
    """Distance of two vectors, of the same type: VL element steps."""
    in_mask = operand_def()
    """Lanes that may run: vector of i1 or stream of it."""
    init_args = var_operand_def()
    """Initial execute values."""
    vector_length = prop_def(IntegerAttr[IndexType], prop_name="vectorLength")
    """VL, the number of lanes."""
    loop_config = prop_def(LoopConfigAttr, prop_name="loopConfig")
    """Form of the loop."""
    res = var_result_def()
    """Final execute values, one per initial value."""
    body = region_def("single_block")
    """Block arguments: induction vector, mask of active lanes, then the execute values."""

    traits = traits_def(SingleBlockImplicitTerminator(YieldOp), RecursiveMemoryEffect())

    def __init__(
        self,
        lower_bound: SSAValue | Operation,
        upper_bound: SSAValue | Operation,
        step: SSAValue | Operation,
        in_mask: SSAValue | Operation,
        vector_length: int,
        loop_config: LoopConfig = LoopConfig.BROADCAST,
        init_args: Sequence[SSAValue | Operation] = (),
        body: Region | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        types = [SSAValue.get(value).type for value in init_args]
        if body is None:
            lanes = [vector_stream(vector_length, IndexType()), vector_stream(vector_length, i1)]
            body = new_body([*lanes, *types], terminator=None if types else YieldOp)
        super().__init__(
            operands=[lower_bound, upper_bound, step, in_mask, init_args],
            result_types=[types],
            regions=[body],
            properties={
                "vectorLength": IntegerAttr(vector_length, IndexType()),
                "loopConfig": LoopConfigAttr(loop_config),
            },
            attributes=attributes or {},
        )

    @property
    def lanes(self) -> int:
        """VL as a number."""
        return self.vector_length.value.data

    @property
    def induction_variable(self) -> BlockArgument:
        """The stream of the loop's current vector of values."""
        return self.body.block.args[0]

    @property
    def out_mask(self) -> BlockArgument:
        """The stream of the current vector's active lanes."""
        return self.body.block.args[1]

    @property
    def execute_args(self) -> tuple[BlockArgument, ...]:
        """The body's view of the execute values."""
        return self.body.block.args[2:]

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """The execute values that the body hands to the next iteration."""
        terminator = self.body.block.last_op
        return tuple(terminator.operands) if isinstance(terminator, YieldOp) else ()

    def verify_(self) -> None:
        if self.lanes not in VECTOR_LENGTHS:
            lengths = ", ".join(str(length) for length in VECTOR_LENGTHS)
            reject("vectorLength", f"one of {lengths}", self.lanes)
        index_vector = VectorType(IndexType(), [self.lanes])
        mask_vector = VectorType(i1, [self.lanes])
        bound = self.lower_bound.type
        if head_type(bound) != IndexType() and stream_element(bound) != index_vector:
            rule = f"index, !slc.stream<index> or {StreamType(index_vector)}"
            reject("type of the bounds", rule, bound)
        for which, value in (("upper bound", self.upper_bound), ("step", self.step)):
            if value.type != bound:
                reject(f"type of the {which}", f"the lower bound's type {bound}", value.type)
        if head_type(self.in_mask.type) != mask_vector:
            rule = f"{mask_vector} or {StreamType(mask_vector)}"
            reject("type of the mask", rule, self.in_mask.type)
        expected = (StreamType(index_vector), StreamType(mask_vector))
        args = tuple(arg.type for arg in self.body.block.args)
        if args[:2] != expected:
            found = f"({', '.join(str(type_) for type_ in args[:2])})"
            rule = f"the vector and mask streams ({expected[0]}, {expected[1]})"
            reject("first body arguments of the loop", rule, found)
        verify_carried(self.init_args, self.execute_args, self.res, self.yielded)

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        with parser.in_angle_brackets():
            lanes = parser.parse_integer(allow_boolean=False, allow_negative=False)
        with parser.in_parens():
            indvar = parser.parse_argument(expect_type=False)
            parser.parse_keyword("xx")
            out_mask = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        lower = parser.parse_unresolved_operand()
        parser.parse_keyword("to")
        upper = parser.parse_unresolved_operand()
        parser.parse_keyword("step")
        step = parser.parse_unresolved_operand()
        parser.parse_keyword("mask")
        in_mask = parser.parse_unresolved_operand()
        carried, inits = parse_init_args(parser)
        parser.parse_punctuation(":")
        bound_type, in_mask_type = _parse_type_pair(parser)
        parser.parse_punctuation("->")
        indvar_type, out_mask_type = _parse_type_pair(parser)
        bounds = [parser.resolve_operand(value, bound_type) for value in (lower, upper, step)]
        mask = parser.resolve_operand(in_mask, in_mask_type)
        arguments = [indvar.resolve(indvar_type), out_mask.resolve(out_mask_type), *carried]
        body = parser.parse_region(arguments)
        position = parser.pos
        attributes = parser.parse_optional_attr_dict()
        if "vectorLength" in attributes:
            parser.raise_error(
                "vectorLength must be given once, in '<' '>' after the name of slcvec.for, "
                "not again in the attribute dictionary",
                position,
            )
        config = attributes.pop("loopConfig", LoopConfigAttr(LoopConfig.NONE))
        if not isinstance(config, LoopConfigAttr):
            parser.raise_error(f"loopConfig must be #slcvec<loop_config ..>, not {config}", position)
        op = cls(*bounds, mask, lanes, config.data, inits, body, attributes)
        ensure_terminator(op, SingleBlockImplicitTerminator(YieldOp))
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f"<{self.lanes}>(")
        printer.print_ssa_value(self.induction_variable)
        printer.print_string(" xx ")
        printer.print_ssa_value(self.out_mask)
        printer.print_string(") = ")
        printer.print_ssa_value(self.lower_bound)
        printer.print_string(" to ")
        printer.print_ssa_value(self.upper_bound)
        printer.print_string(" step ")
        printer.print_ssa_value(self.step)
        printer.print_string(" mask ")
        printer.print_ssa_value(self.in_mask)
        print_init_args(printer, self.execute_args, self.init_args)
        printer.print_string(" : ")
        _print_type_pair(printer, self.lower_bound, self.in_mask)
        printer.print_string(" -> ")
        _print_type_pair(printer, self.induction_variable, self.out_mask)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_op_attributes({"loopConfig": self.loop_config, **self.attributes})


def _parse_type_pair(parser: Parser) -> tuple[Attribute, Attribute]:
    with parser.in_parens():
        first = parser.parse_type()
        parser.parse_keyword("xx")
        return first, parser.parse_type()


def _print_type_pair(printer: Printer, first: SSAValue, second: SSAValue) -> None:
    with printer.in_parens():
        printer.print_attribute(first.type)
        printer.print_string(" xx ")
        printer.print_attribute(second.type)


@irdl_op_definition
class MemStreamOp(IRDLOperation):
    """
    A vector of memory elements: a gather. An inactive lane reads nothing and gives 0.

    ```mlir
    %v = slcvec.mem_stream %x[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>]
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
    ) -> None:
        memref = SSAValue.get(memref, type=MemRefType)
        super().__init__(
            operands=[memref, indices],
            result_types=[vector_stream(vector_length, memref.type.element_type)],
            properties={"nontemporal": BoolAttr.from_bool(True) if nontemporal else None},
        )

    @property
    def is_nontemporal(self) -> bool:
        """Whether `nontemporal` is present and true."""
        return self.nontemporal is not None and bool(self.nontemporal)

    def verify_(self) -> None:
        verify_index_count(self.memref.type, len(self.indices))
        lanes, element = _verify_vector("element of the result stream", head_type(self.result.type))
        if element != self.memref.type.element_type:
            rule = f"the memref's element type {self.memref.type.element_type}"
            reject("element of the result vectors", rule, element)
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

    def verify_(self) -> None:
        _verify_lane(self.result.type.element_type, self.stream.type.element_type)


def _verify_lane(vector: Attribute, scalar: Attribute) -> None:
    """Raise unless `vector` is a legal vector whose element type is `scalar`."""
    _, element = _verify_vector("vector side of the op", vector)
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

    def verify_(self) -> None:
        _verify_lane(self.stream.type.element_type, self.result.type.element_type)
        lanes, _ = _verify_vector("vector side of the op", self.stream.type.element_type)
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

    def verify_(self) -> None:
        _verify_lane(self.source.type.element_type, self.result.type.element_type)


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

    def verify_(self) -> None:
        _verify_row("element of the buffer", self.result.type.element_type)


def _verify_row(what: str, type_: Attribute) -> Attribute:
    """Element type of a row; raise unless the type is a memref of one dimension."""
    if not isinstance(type_, MemRefType) or type_.get_num_dims() != 1:
        reject(what, "a memref of one dimension", type_)
    return type_.element_type


@irdl_op_definition
class ToBufferOp(IRDLOperation):
    """
    Put the active lanes of a vector into a row: `buffer[lanes of the index] = lanes of the stream`.

    ```mlir
    slcvec.to_buffer %v, %b[%d] : !slc.stream<vector<4xf32>> -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>]
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

    def verify_(self) -> None:
        element = _verify_row("element of the buffer", self.buffer.type.element_type)
        shape = vector_shape(self.stream.type.element_type)
        lanes, found = shape if shape is not None else (None, self.stream.type.element_type)
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

    def verify_(self) -> None:
        element = _verify_row("buffer", self.memref.type)
        if len(self.indices) != 1:
            reject("number of indices", "the buffer's rank 1", len(self.indices))
        shape = vector_shape(self.result.type)
        if (shape[1] if shape is not None else self.result.type) != element:
            rule = f"the buffer's element type {element} or a vector of it"
            reject("type of the result", rule, self.result.type)


class _LaneOp(IRDLOperation):
    """Base of the two ops that derive a vector from a chunk's scalar position."""

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
            result_types=[VectorType(self.lane_type(), [vector_length])],
        )

    @classmethod
    def lane_type(cls) -> Attribute:
        """Element type of the result."""
        raise NotImplementedError

    def verify_(self) -> None:
        _, element = _verify_vector("type of the result", self.result.type)
        if element != self.lane_type():
            reject("element of the result", str(self.lane_type()), element)


@irdl_op_definition
class VecIndvarOp(_LaneOp):
    """
    The lanes' values `iv + k * e`.

    ```mlir
    %v = slcvec.vec_indvar %iv %lb %ub %e : vector<8xindex>
    ```
    """

    name = "slcvec.vec_indvar"

    @classmethod
    def lane_type(cls) -> Attribute:
        return IndexType()


@irdl_op_definition
class MaskOp(_LaneOp):
    """
    The lanes that lie inside the loop: `lb <= iv + k * e < ub`.

    ```mlir
    %m = slcvec.mask %iv %lb %ub %e : vector<8xi1>
    ```
    """

    name = "slcvec.mask"

    @classmethod
    def lane_type(cls) -> Attribute:
        return i1


@irdl_op_definition
class VectorizeForOp(IRDLOperation):
    """Marker of reference text that asks to vectorise the enclosing loop; read, never produced."""

    name = "slcvec.vectorize_for"

    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


SLCVEC = Dialect(
    "slcvec",
    [
        ForOp,
        YieldOp,
        MemStreamOp,
        BroadcastOp,
        ExtractOp,
        TmpVecStreamCastOp,
        TmpVecCastOp,
        BufStreamOp,
        ToBufferOp,
        FromBufferOp,
        VecIndvarOp,
        MaskOp,
        VectorizeForOp,
    ],
    [LoopConfigAttr],
)
