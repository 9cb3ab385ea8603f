"""
`slcvec`, vectorised `slc`: loops that advance by a vector of lanes, row buffers, masks.

A vector of VL lanes (a power of two up to 64, or 3) is one head of a stream. Only the `bcast` loop
form, a vector loop inside scalar loops, is lowered; the others are read so that reference text can
be.

Ref: the published Ember implementation, op definitions of its SLCVEC dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import override
from xdsl.dialects.builtin import IndexType, IntegerAttr, VectorType, i1
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
    irdl_attr_definition,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsTerminator,
    Pure,
    RecursiveMemoryEffect,
    SingleBlockImplicitTerminator,
    ensure_terminator,
)
from xdsl.utils.str_enum import StrEnum

from ember_hw.compiler.dialects.slc import (
    new_body,
    parse_bounds,
    parse_init_args,
    print_bounds,
    print_init_args,
    verify_carried,
    verify_same_type,
    yielded_values,
)
from ember_hw.compiler.dialects.slcvec_lanes import (
    CompareOp,
    FoldKind,
    FoldKindAttr,
    FoldOp,
    SelectOp,
)
from ember_hw.compiler.dialects.slcvec_streams import (
    BroadcastOp,
    BufStreamOp,
    ExtractOp,
    FromBufferOp,
    MaskOp,
    MemStreamOp,
    TmpVecCastOp,
    TmpVecStreamCastOp,
    ToBufferOp,
    VecIndvarOp,
)
from ember_hw.compiler.dialects.stream_types import (
    VECTOR_LENGTHS,
    StreamType,
    head_type,
    reject,
    stream_element,
    vector_stream,
)

__all__ = [
    "SLCVEC",
    "BroadcastOp",
    "BufStreamOp",
    "CompareOp",
    "ExtractOp",
    "FoldKind",
    "FoldKindAttr",
    "FoldOp",
    "ForOp",
    "FromBufferOp",
    "LoopConfig",
    "LoopConfigAttr",
    "MaskOp",
    "MemStreamOp",
    "SelectOp",
    "TmpVecCastOp",
    "TmpVecStreamCastOp",
    "ToBufferOp",
    "VecIndvarOp",
    "VectorizeForOp",
    "YieldOp",
    "vector_stream",
]


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
        return yielded_values(self.body)

    @override
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
        verify_same_type(bound, self.upper_bound, self.step)
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

    @override
    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        with parser.in_angle_brackets():
            lanes = parser.parse_integer(allow_boolean=False, allow_negative=False)
        with parser.in_parens():
            indvar = parser.parse_argument(expect_type=False)
            parser.parse_keyword("xx")
            out_mask = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        bounds = parse_bounds(parser)
        parser.parse_keyword("mask")
        in_mask = parser.parse_unresolved_operand()
        carried, inits = parse_init_args(parser)
        parser.parse_punctuation(":")
        bound_type, in_mask_type = _parse_type_pair(parser)
        parser.parse_punctuation("->")
        indvar_type, out_mask_type = _parse_type_pair(parser)
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
            parser.raise_error(
                f"loopConfig must be #slcvec<loop_config ..>, not {config}", position
            )
        lower, upper, step = (parser.resolve_operand(bound, bound_type) for bound in bounds)
        op = cls(
            lower,
            upper,
            step,
            parser.resolve_operand(in_mask, in_mask_type),
            lanes,
            config.data,
            inits,
            body,
            attributes,
        )
        ensure_terminator(op, SingleBlockImplicitTerminator(YieldOp))
        return op

    @override
    def print(self, printer: Printer) -> None:
        printer.print_string(f"<{self.lanes}>(")
        printer.print_ssa_value(self.induction_variable)
        printer.print_string(" xx ")
        printer.print_ssa_value(self.out_mask)
        printer.print_string(") = ")
        print_bounds(printer, self.lower_bound, self.upper_bound, self.step)
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
        FoldOp,
        CompareOp,
        SelectOp,
        VectorizeForOp,
    ],
    [LoopConfigAttr, FoldKindAttr],
)
