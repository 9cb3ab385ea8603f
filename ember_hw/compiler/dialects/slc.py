"""
`slc`, structured lookup-compute: loops of the access side with callbacks of the execute side in place.

Streams are values of the access unit. Everything that the execute side runs stands in an
`slc.callback`, at the place of the loop nest where it happens, so the text still reads as the
sequential program. *Execute values* are callback results, `init_args` block arguments and loop
results; `check-dae` holds the rules that a single op can't see.

Ref: the published Ember implementation, op definitions of its SLC dialect (spelling of its parser).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import BoolAttr, IndexType, IntegerType, MemRefType, i1
from xdsl.dialects.utils import (
    AbstractYieldOperation,
    EnumAttribute,
    parse_assignment,
    print_assignment,
)
from xdsl.ir import (
    Attribute,
    Block,
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
    MemoryReadEffect,
    Pure,
    RecursiveMemoryEffect,
    SingleBlockImplicitTerminator,
    ensure_terminator,
)
from xdsl.utils.str_enum import StrEnum

from ember_hw.compiler.dialects.stream_types import (
    StreamType,
    head_type,
    is_index_or_stream,
    reject,
)

__all__ = [
    "SLC",
    "AccelerateForOp",
    "AluKind",
    "AluKindAttr",
    "AluStreamOp",
    "CallbackOp",
    "CastStreamOp",
    "ConfigureOp",
    "ForOp",
    "FromStreamOp",
    "MemStreamOp",
    "StreamType",
    "ToStreamOp",
    "YieldOp",
]


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

    def verify_(self) -> None:
        source = head_type(self.stream.type)
        if not isinstance(source, IntegerType) or source == i1:
            reject("element of the stream to cast", "an integer wider than i1", source)
        target = head_type(self.result.type)
        if not isinstance(target, IndexType):
            reject("element of the cast stream", "index", target)


@irdl_op_definition
class MemStreamOp(IRDLOperation):
    """
    The stream of `memref[heads of the indices]`.

    ```mlir
    %v = slc.mem_stream %m[%i] {nontemporal = true} : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
    ```
    """

    name = "slc.mem_stream"

    memref = operand_def(MemRefType)
    """The memory that is read."""
    indices = var_operand_def()
    """One per dimension, each index or stream of index."""
    nontemporal = opt_prop_def(BoolAttr)
    """Whether the data isn't expected to be read again soon; absent means false."""
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
    ) -> None:
        memref = SSAValue.get(memref, type=MemRefType)
        super().__init__(
            operands=[memref, indices],
            result_types=[StreamType(memref.type.element_type)],
            properties={"nontemporal": BoolAttr.from_bool(True) if nontemporal else None},
        )

    @property
    def is_nontemporal(self) -> bool:
        """Whether `nontemporal` is present and true."""
        return self.nontemporal is not None and bool(self.nontemporal)

    def verify_(self) -> None:
        verify_index_count(self.memref.type, len(self.indices))
        for index in self.indices:
            if not is_index_or_stream(index.type):
                reject("type of an index", "index or !slc.stream<index>", index.type)
        element = head_type(self.result.type)
        if element != self.memref.type.element_type:
            reject(
                "element of the result stream",
                f"the memref's element type {self.memref.type.element_type}",
                element,
            )


def verify_index_count(memref: MemRefType, count: int, *, missing: int = 0) -> None:
    """Raise unless `count` indices fit the memref, of whose dimensions the last `missing` have none."""
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

    def verify_(self) -> None:
        for side, operand in (("left", self.lhs), ("right", self.rhs)):
            if not is_index_or_stream(operand.type):
                reject(f"type of the {side} operand", "index or !slc.stream<index>", operand.type)
        if not isinstance(head_type(self.result.type), IndexType):
            reject("type of the result", "!slc.stream<index>", self.result.type)


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """
    Ends the body of an `slc.for` or `slc.callback` with the execute values that leave it.

    ```mlir
    slc.yield %a : f32
    ```
    """

    name = "slc.yield"

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(ForOp, CallbackOp), Pure()))


def new_body(argument_types: Sequence[Attribute], terminator: type[Operation] | None) -> Region:
    """A region of one block with these arguments, ended by `terminator` if there is one."""
    block = Block(arg_types=argument_types)
    if terminator is not None:
        block.add_op(terminator())
    return Region(block)


def verify_carried(
    init_args: Sequence[SSAValue],
    block_args: Sequence[BlockArgument],
    results: Sequence[SSAValue],
    yielded: Sequence[SSAValue],
) -> None:
    """Raise unless the carried values of a loop agree in count and types at all four places."""
    expected = tuple(value.type for value in init_args)
    for place, values in (
        ("body arguments", block_args),
        ("results", results),
        ("yielded values", yielded),
    ):
        found = tuple(value.type for value in values)
        if found != expected:
            reject(f"types of the loop's {place}", f"those of init_args {_types(expected)}", _types(found))


def _types(types: Sequence[Attribute]) -> str:
    return f"({', '.join(str(t) for t in types)})"


@irdl_op_definition
class ForOp(IRDLOperation):
    """
    A loop of the access side.

    ```mlir
    %r = slc.for %i = %lb to %ub step %st init_args(%x = %x0) -> (f32)
        : !slc.stream<index> -> !slc.stream<index> { ... }
    ```

    Scalar meaning: `for (i = lb; i < ub; i += step) body`; `%x` and `%r` are execute values.
    """

    name = "slc.for"

    lower_bound = operand_def()
    """First value: index or stream of index."""
    upper_bound = operand_def()
    """Exclusive end, of the same type."""
    step = operand_def()
    """Distance of two iterations, of the same type."""
    init_args = var_operand_def()
    """Initial execute values."""
    res = var_result_def()
    """Final execute values, one per initial value."""
    body = region_def("single_block")
    """Block arguments: the induction variable (stream of index), then the execute values."""

    traits = traits_def(SingleBlockImplicitTerminator(YieldOp), RecursiveMemoryEffect())

    def __init__(
        self,
        lower_bound: SSAValue | Operation,
        upper_bound: SSAValue | Operation,
        step: SSAValue | Operation,
        init_args: Sequence[SSAValue | Operation] = (),
        body: Region | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        types = [SSAValue.get(value).type for value in init_args]
        if body is None:
            body = new_body(
                [StreamType(IndexType()), *types], terminator=None if types else YieldOp
            )
        super().__init__(
            operands=[lower_bound, upper_bound, step, init_args],
            result_types=[types],
            regions=[body],
            attributes=attributes or {},
        )

    @property
    def induction_variable(self) -> BlockArgument:
        """The stream of the loop's current value."""
        return self.body.block.args[0]

    @property
    def execute_args(self) -> tuple[BlockArgument, ...]:
        """The body's view of the execute values."""
        return self.body.block.args[1:]

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """The execute values that the body hands to the next iteration."""
        terminator = self.body.block.last_op
        return tuple(terminator.operands) if isinstance(terminator, YieldOp) else ()

    def verify_(self) -> None:
        bound = self.lower_bound.type
        if not is_index_or_stream(bound):
            reject("type of the bounds", "index or !slc.stream<index>", bound)
        for which, value in (("upper bound", self.upper_bound), ("step", self.step)):
            if value.type != bound:
                reject(f"type of the {which}", f"the lower bound's type {bound}", value.type)
        args = self.body.block.args
        if not args or args[0].type != StreamType(IndexType()):
            reject(
                "first body argument of the loop",
                "the induction variable of type !slc.stream<index>",
                args[0].type if args else "absent",
            )
        verify_carried(self.init_args, self.execute_args, self.res, self.yielded)

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        indvar = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        lower = parser.parse_unresolved_operand()
        parser.parse_keyword("to")
        upper = parser.parse_unresolved_operand()
        parser.parse_keyword("step")
        step = parser.parse_unresolved_operand()
        carried, inits = parse_init_args(parser)
        parser.parse_punctuation(":")
        bound_type = parser.parse_type()
        parser.parse_punctuation("->")
        indvar_type = parser.parse_type()
        bounds = [parser.resolve_operand(value, bound_type) for value in (lower, upper, step)]
        body = parser.parse_region([indvar.resolve(indvar_type), *carried])
        op = cls(*bounds, inits, body, parser.parse_optional_attr_dict())
        ensure_terminator(op, SingleBlockImplicitTerminator(YieldOp))
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.induction_variable)
        printer.print_string(" = ")
        printer.print_ssa_value(self.lower_bound)
        printer.print_string(" to ")
        printer.print_ssa_value(self.upper_bound)
        printer.print_string(" step ")
        printer.print_ssa_value(self.step)
        print_init_args(printer, self.execute_args, self.init_args)
        printer.print_string(" : ")
        printer.print_attribute(self.lower_bound.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.induction_variable.type)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_op_attributes(self.attributes)


def parse_init_args(parser: Parser) -> tuple[list[Parser.Argument], list[SSAValue]]:
    """Parse `init_args(%x = %x0, ..) -> (T, ..)` if it stands here: block arguments and operands."""
    if not parser.parse_optional_keyword("init_args"):
        return [], []
    position = parser.pos
    pairs = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: parse_assignment(parser)
    )
    parser.parse_punctuation("->")
    types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    operands = parser.resolve_operands([operand for _, operand in pairs], types, position)
    arguments = [arg.resolve(type_) for (arg, _), type_ in zip(pairs, types, strict=True)]
    return arguments, list(operands)


def print_init_args(
    printer: Printer, block_args: Sequence[BlockArgument], init_args: Sequence[SSAValue]
) -> None:
    """Print ` init_args(%x = %x0, ..) -> (T, ..)`, or nothing for a loop without execute values."""
    if not init_args:
        return
    printer.print_string(" init_args(")
    printer.print_list(
        zip(block_args, init_args, strict=True), lambda pair: print_assignment(printer, *pair)
    )
    printer.print_string(") -> (")
    printer.print_list([value.type for value in init_args], printer.print_attribute)
    printer.print_string(")")


@irdl_op_definition
class CallbackOp(IRDLOperation):
    """
    Code of the execute side, run where it stands.

    ```mlir
    %r = slc.callback { ... slc.yield %a : f32 } : f32
    ```

    Result types after a body that yields nothing are dropped on reading: reference text declares
    them without a value to give.
    """

    name = "slc.callback"

    res = var_result_def()
    """Execute values that leave the body."""
    body = region_def("single_block")
    """The code; no arguments."""

    traits = traits_def(SingleBlockImplicitTerminator(YieldOp), RecursiveMemoryEffect())

    def __init__(
        self,
        result_types: Sequence[Attribute] = (),
        body: Region | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        if body is None:
            body = new_body([], terminator=None if result_types else YieldOp)
        super().__init__(
            result_types=[list(result_types)], regions=[body], attributes=attributes or {}
        )

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """The values that the body gives to the results."""
        terminator = self.body.block.last_op
        return tuple(terminator.operands) if isinstance(terminator, YieldOp) else ()

    def verify_(self) -> None:
        if self.body.block.args:
            reject("number of body arguments of a callback", "0", len(self.body.block.args))
        yielded = tuple(value.type for value in self.yielded)
        results = tuple(value.type for value in self.res)
        if yielded != results:
            reject("types yielded by the callback", f"its result types {_types(results)}", _types(yielded))

    @classmethod
    def parse(cls, parser: Parser) -> CallbackOp:
        body = parser.parse_region()
        types = parse_optional_types(parser) if parser.parse_optional_punctuation(":") else []
        attributes = parser.parse_optional_attr_dict()
        last = body.blocks.last.last_op if body.blocks.last is not None else None
        yields_nothing = not isinstance(last, YieldOp) or not last.operands
        op = cls([] if yields_nothing else types, body, attributes)
        ensure_terminator(op, SingleBlockImplicitTerminator(YieldOp))
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        if self.res:
            printer.print_string(" : ")
            printer.print_list(self.res.types, printer.print_attribute)
        printer.print_op_attributes(self.attributes)


def parse_optional_types(parser: Parser) -> list[Attribute]:
    """Parse a possibly empty list of types without brackets."""
    return list(
        parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_type, parser.parse_type
        )
        or []
    )


@irdl_op_definition
class AccelerateForOp(IRDLOperation):
    """Marker of reference text that asks to offload the enclosing loop; read, never produced."""

    name = "slc.accelerate_for"

    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class ConfigureOp(IRDLOperation):
    """Marker of reference text without a meaning; read, never produced."""

    name = "slc.configure"

    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


SLC = Dialect(
    "slc",
    [
        ToStreamOp,
        FromStreamOp,
        CastStreamOp,
        MemStreamOp,
        AluStreamOp,
        ForOp,
        CallbackOp,
        YieldOp,
        AccelerateForOp,
        ConfigureOp,
    ],
    [StreamType, AluKindAttr],
)
