"""
`slc`, structured lookup-compute: loops of the access side, callbacks of the execute side.

Streams are values of the access unit. Everything that the execute side runs stands in an
`slc.callback`, at the place of the loop nest where it happens, so the text still reads as the
sequential program. *Execute values* are callback results, `init_args` block arguments and loop
results; `check-dae` holds the rules that a single op can't see.

Ref: the published Ember implementation, op definitions of its SLC dialect (spelling of its parser).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import override
from xdsl.dialects.builtin import IndexType
from xdsl.dialects.utils import AbstractYieldOperation, parse_assignment, print_assignment
from xdsl.ir import Attribute, Block, BlockArgument, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsTerminator,
    Pure,
    RecursiveMemoryEffect,
    SingleBlockImplicitTerminator,
    ensure_terminator,
)

from ember_hw.compiler.dialects.slc_streams import (
    AluKind,
    AluKindAttr,
    AluStreamOp,
    CastStreamOp,
    FromStreamOp,
    MemStreamOp,
    ToStreamOp,
    ViewOp,
)
from ember_hw.compiler.dialects.stream_types import StreamType, is_index_or_stream, reject

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
    "ViewOp",
    "YieldOp",
]


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
    """Return a region of one block with these arguments, ended by `terminator` if given."""
    block = Block(arg_types=argument_types)
    if terminator is not None:
        block.add_op(terminator())
    return Region(block)


def yielded_values(body: Region) -> tuple[SSAValue, ...]:
    """Return the execute values that a body's terminator takes out."""
    terminator = body.block.last_op
    return tuple(terminator.operands) if isinstance(terminator, AbstractYieldOperation) else ()


def verify_same_type(lower_bound: Attribute, upper_bound: SSAValue, step: SSAValue) -> None:
    """Raise unless upper bound and step have the lower bound's type."""
    for which, value in (("upper bound", upper_bound), ("step", step)):
        if value.type != lower_bound:
            reject(f"type of the {which}", f"the lower bound's type {lower_bound}", value.type)


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
            reject(
                f"types of the loop's {place}",
                f"those of init_args {_types(expected)}",
                _types(found),
            )


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
        return yielded_values(self.body)

    @override
    def verify_(self) -> None:
        bound = self.lower_bound.type
        if not is_index_or_stream(bound):
            reject("type of the bounds", "index or !slc.stream<index>", bound)
        verify_same_type(bound, self.upper_bound, self.step)
        args = self.body.block.args
        if not args or args[0].type != StreamType(IndexType()):
            reject(
                "first body argument of the loop",
                "the induction variable of type !slc.stream<index>",
                args[0].type if args else "absent",
            )
        verify_carried(self.init_args, self.execute_args, self.res, self.yielded)

    @override
    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        indvar = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        bounds = parse_bounds(parser)
        carried, inits = parse_init_args(parser)
        parser.parse_punctuation(":")
        bound_type = parser.parse_type()
        parser.parse_punctuation("->")
        indvar_type = parser.parse_type()
        body = parser.parse_region([indvar.resolve(indvar_type), *carried])
        lower, upper, step = (parser.resolve_operand(bound, bound_type) for bound in bounds)
        op = cls(
            lower,
            upper,
            step,
            inits,
            body,
            parser.parse_optional_attr_dict(),
        )
        ensure_terminator(op, SingleBlockImplicitTerminator(YieldOp))
        return op

    @override
    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.induction_variable)
        printer.print_string(" = ")
        print_bounds(printer, self.lower_bound, self.upper_bound, self.step)
        print_init_args(printer, self.execute_args, self.init_args)
        printer.print_string(" : ")
        printer.print_attribute(self.lower_bound.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.induction_variable.type)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_op_attributes(self.attributes)


def parse_bounds(parser: Parser) -> list[UnresolvedOperand]:
    """Parse `%lb to %ub step %st`."""
    bounds = [parser.parse_unresolved_operand()]
    for keyword in ("to", "step"):
        parser.parse_keyword(keyword)
        bounds.append(parser.parse_unresolved_operand())
    return bounds


def print_bounds(
    printer: Printer, lower_bound: SSAValue, upper_bound: SSAValue, step: SSAValue
) -> None:
    """Print `%lb to %ub step %st`."""
    printer.print_ssa_value(lower_bound)
    for keyword, value in (("to", upper_bound), ("step", step)):
        printer.print_string(f" {keyword} ")
        printer.print_ssa_value(value)


def parse_init_args(parser: Parser) -> tuple[list[Parser.Argument], list[SSAValue]]:
    """Parse `init_args(%x = %x0, ..) -> (T, ..)`, if present: block arguments and operands."""
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
        return yielded_values(self.body)

    @override
    def verify_(self) -> None:
        if self.body.block.args:
            reject("number of body arguments of a callback", "0", len(self.body.block.args))
        yielded = tuple(value.type for value in self.yielded)
        results = tuple(value.type for value in self.res)
        if yielded != results:
            reject(
                "types yielded by the callback",
                f"its result types {_types(results)}",
                _types(yielded),
            )

    @override
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

    @override
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
        ViewOp,
        ForOp,
        CallbackOp,
        YieldOp,
        AccelerateForOp,
        ConfigureOp,
    ],
    [StreamType, AluKindAttr],
)
