"""
`dlc`, decoupled lookup-compute: an access program and an execute program that talk through queues.

`dlc.configure_access_engine` declares traversal units (loops) and what they push on their events;
its streams are `slc` and `slcvec` stream ops. `dlc.compute_loop` runs the case of each token it pops
until token 0 ("done"), which the root unit's end pushes. On an event the access unit pushes the
token first, then its operands in text order.

Ref: the published Ember implementation, op definitions of its DLC dialect (spelling of its parser).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from typing_extensions import override
from xdsl.dialects.builtin import (
    I64,
    BoolAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    i64,
)
from xdsl.dialects.utils import AbstractYieldOperation, EnumAttribute
from xdsl.ir import (
    Attribute,
    Dialect,
    Operation,
    ParametrizedAttribute,
    Region,
    SpacedOpaqueSyntaxAttribute,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
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
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsTerminator,
    MemoryReadEffect,
    Pure,
    SingleBlockImplicitTerminator,
    ensure_terminator,
)
from xdsl.utils.str_enum import StrEnum

from ember_hw.compiler.dialects.slc import new_body, parse_optional_types, verify_index_count
from ember_hw.compiler.dialects.stream_types import (
    StreamType,
    head_type,
    is_index_or_stream,
    reject,
    row_type,
)


class Event(StrEnum):
    """
    When a traversal unit pushes.

    `beg` and `end` once per entry of the loop, also when it has no iteration; `ite` once per
    iteration, before any unit below it starts.
    """

    BEGIN = "beg"
    ITERATE = "ite"
    END = "end"


@irdl_attr_definition
class EventAttr(EnumAttribute[Event], SpacedOpaqueSyntaxAttribute):
    """Event of a traversal unit. Text: `#dlc<op_type ite>`."""

    name = "dlc.op_type"


@irdl_attr_definition
class TuType(ParametrizedAttribute, TypeAttribute):
    """A traversal unit. Text: `!dlc.tu`."""

    name = "dlc.tu"


@irdl_op_definition
class ConfigureOp(IRDLOperation):
    """Marker of reference text without a meaning; read, never produced."""

    name = "dlc.configure"

    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """
    Ends an access program and each case of a compute loop.

    ```mlir
    dlc.yield
    ```
    """

    name = "dlc.yield"

    traits = lazy_traits_def(
        lambda: (IsTerminator(), HasParent(ConfigureAccessEngineOp, ComputeLoopOp), Pure())
    )


@irdl_op_definition
class ConfigureAccessEngineOp(IRDLOperation):
    """
    The access program: units, streams and what is pushed when.

    ```mlir
    dlc.configure_access_engine { ... } :
    ```
    """

    name = "dlc.configure_access_engine"

    res = var_result_def()
    """None in IR of ours; reference text may declare some."""
    body = region_def("single_block")
    """Stream ops and the ops of this dialect that declare and register."""

    traits = traits_def(SingleBlockImplicitTerminator(YieldOp))

    def __init__(
        self,
        body: Region | None = None,
        result_types: Sequence[Attribute] = (),
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        if body is None:
            body = new_body([], YieldOp)
        super().__init__(
            result_types=[list(result_types)], regions=[body], attributes=attributes or {}
        )

    @property
    def units(self) -> tuple[NewTuOp, ...]:
        """The traversal units; the position of one is its number."""
        return tuple(op for op in self.body.block.ops if isinstance(op, NewTuOp))

    @override
    def verify_(self) -> None:
        if self.body.block.args:
            reject("number of body arguments of the access program", "0", len(self.body.block.args))

    @override
    @classmethod
    def parse(cls, parser: Parser) -> ConfigureAccessEngineOp:
        body = parser.parse_region()
        types = parse_optional_types(parser) if parser.parse_optional_punctuation(":") else []
        op = cls(body, types, parser.parse_optional_attr_dict())
        ensure_terminator(op, SingleBlockImplicitTerminator(YieldOp))
        return op

    @override
    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_string(" :")
        if self.res:
            printer.print_string(" ")
            printer.print_list(self.res.types, printer.print_attribute)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class NewTuOp(IRDLOperation):
    """
    A traversal unit: one loop of the access program, below the unit of number `under`.

    ```mlir
    %t1 = dlc.new_tu %s to %e step %one {under = 0 : i64} : !slc.stream<index> into !dlc.tu
    ```

    Absent, as in reference text, `under` means the unit before this one.
    """

    name = "dlc.new_tu"

    BOUND: ClassVar = VarConstraint("bound", AnyAttr())

    lower_bound = operand_def(BOUND)
    """First value: index or stream of index."""
    upper_bound = operand_def(BOUND)
    """Exclusive end, of the same type."""
    step = operand_def(BOUND)
    """Distance of two iterations, of the same type."""
    under = opt_prop_def(IntegerAttr[I64])
    """Number of the parent unit, counted from 0 in the order of the ops."""
    result = result_def(TuType)
    """The unit."""

    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = (
        "$lower_bound `to` $upper_bound `step` $step attr-dict `:` type($step) `into` type($result)"
    )

    def __init__(
        self,
        lower_bound: SSAValue | Operation,
        upper_bound: SSAValue | Operation,
        step: SSAValue | Operation,
        under: int | None = None,
    ) -> None:
        super().__init__(
            operands=[lower_bound, upper_bound, step],
            result_types=[TuType()],
            properties={"under": None if under is None else IntegerAttr(under, i64)},
        )

    @override
    def verify_(self) -> None:
        bound = self.lower_bound.type
        if not is_index_or_stream(bound):
            reject("type of the bounds", "index or !slc.stream<index>", bound)


@irdl_op_definition
class GetIndVarOp(IRDLOperation):
    """
    The stream of a unit's current value.

    ```mlir
    %i = dlc.get_ind_var %t : !slc.stream<index>
    ```
    """

    name = "dlc.get_ind_var"

    tu = operand_def(TuType)
    """The unit."""
    result = result_def(StreamType)
    """Stream of index."""

    traits = traits_def(Pure())

    assembly_format = "$tu attr-dict `:` type($result)"

    def __init__(self, tu: SSAValue | Operation) -> None:
        super().__init__(operands=[tu], result_types=[StreamType(IndexType())])

    @override
    def verify_(self) -> None:
        if not isinstance(head_type(self.result.type), IndexType):
            reject("type of the induction variable", "!slc.stream<index>", self.result.type)


@irdl_op_definition
class RegisterCallbackOp(IRDLOperation):
    """
    Push token `id` on an event of a unit.

    ```mlir
    dlc.register_callback %t, ite {id = 1 : i64} : !dlc.tu
    ```
    """

    name = "dlc.register_callback"

    tu = operand_def(TuType)
    """The unit."""
    event = prop_def(EventAttr)
    """The event."""
    id = prop_def(IntegerAttr[I64])
    """The token, at least 1."""

    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = "$tu `,` $event attr-dict `:` type($tu)"

    def __init__(self, tu: SSAValue | Operation, event: Event, id: int) -> None:
        super().__init__(
            operands=[tu], properties={"event": EventAttr(event), "id": IntegerAttr(id, i64)}
        )


@irdl_op_definition
class RegisterOperandOp(IRDLOperation):
    """
    Push the head of a stream on an event of a unit, after the token and the operands above.

    ```mlir
    dlc.register_operand %t, ite, %s : !dlc.tu, !slc.stream<f32>
    ```
    """

    name = "dlc.register_operand"

    tu = operand_def(TuType)
    """The unit."""
    event = prop_def(EventAttr)
    """The event."""
    value = operand_def(StreamType)
    """The stream."""

    assembly_format = "$tu `,` $event `,` $value attr-dict `:` type($tu) `,` type($value)"

    def __init__(self, tu: SSAValue | Operation, event: Event, value: SSAValue | Operation) -> None:
        super().__init__(operands=[tu, value], properties={"event": EventAttr(event)})


@irdl_op_definition
class RowStreamOp(IRDLOperation):
    """
    The stream of rows: `length` contiguous elements of the last dimension.

    ```mlir
    %row = dlc.row_stream %tab[%r] len %D : memref<?x?xf32>[!slc.stream<index>], index
        into !slc.stream<memref<?xf32>>
    ```
    """

    name = "dlc.row_stream"

    memref = operand_def(MemRefType)
    """The memory that is read."""
    indices = var_operand_def()
    """One per dimension but the last, each index or stream of index."""
    length = operand_def(IndexType)
    """Elements of a row, a host value."""
    nontemporal = opt_prop_def(BoolAttr)
    """Whether the data isn't expected to be read again soon; absent means false."""
    result = result_def(StreamType)
    """Stream of memref of one dynamic dimension and the same element type."""

    traits = traits_def(MemoryReadEffect())
    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = (
        "$memref `[` $indices `]` `len` $length attr-dict `:` type($memref) "
        "`[` type($indices) `]` `,` type($length) `into` type($result)"
    )

    def __init__(
        self,
        memref: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        length: SSAValue | Operation,
        *,
        nontemporal: bool = False,
    ) -> None:
        memref = SSAValue.get(memref, type=MemRefType)
        super().__init__(
            operands=[memref, indices, length],
            result_types=[StreamType(row_type(memref.type.element_type))],
            properties={"nontemporal": BoolAttr.from_bool(True) if nontemporal else None},
        )

    @property
    def is_nontemporal(self) -> bool:
        """Whether `nontemporal` is present and true."""
        return self.nontemporal is not None and bool(self.nontemporal)

    @override
    def verify_(self) -> None:
        verify_index_count(self.memref.type, len(self.indices), missing=1)
        for index in self.indices:
            if not is_index_or_stream(index.type):
                reject("type of an index", "index or !slc.stream<index>", index.type)
        row = StreamType(row_type(self.memref.type.element_type))
        if self.result.type != row:
            reject("type of the result", f"the row stream {row}", self.result.type)


@irdl_op_definition
class ComputeLoopOp(IRDLOperation):
    """
    The execute program: pop a token, run its case, until token 0.

    ```mlir
    dlc.compute_loop
    case 1 { ... dlc.yield }
    case 2 { ... dlc.yield }
    ```

    Results are read, because reference text declares them; `check-dae` reports them.
    """

    name = "dlc.compute_loop"

    cases = prop_def(DenseArrayBase[I64])
    """The token of each region."""
    res = var_result_def()
    """None in IR of ours."""
    case_regions = var_region_def("single_block")
    """The code of each token, ended by `dlc.yield`."""

    traits = traits_def(SingleBlockImplicitTerminator(YieldOp))

    def __init__(
        self,
        cases: Sequence[int],
        case_regions: Sequence[Region] | None = None,
        result_types: Sequence[Attribute] = (),
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        if case_regions is None:
            case_regions = [new_body([], YieldOp) for _ in cases]
        super().__init__(
            result_types=[list(result_types)],
            regions=[list(case_regions)],
            properties={"cases": DenseArrayBase.from_list(i64, list(cases))},
            attributes=attributes or {},
        )

    @property
    def case_ids(self) -> tuple[int, ...]:
        """The tokens, in the order of the regions."""
        return tuple(self.cases.get_values())

    def case(self, id: int) -> Region:
        """Return the code of token `id`; a KeyError names the tokens there are."""
        for case_id, region in zip(self.case_ids, self.case_regions, strict=True):
            if case_id == id:
                return region
        known = ", ".join(str(case_id) for case_id in self.case_ids) or "none"
        raise KeyError(f"token must be a case of the compute loop ({known}), not {id}")

    @override
    def verify_(self) -> None:
        if len(self.case_ids) != len(self.case_regions):
            reject("number of cases", f"that of regions {len(self.case_regions)}", len(self.case_ids))
        seen: set[int] = set()
        for case_id in self.case_ids:
            if case_id in seen:
                reject("number of a case", "given once", f"{case_id} again")
            seen.add(case_id)
        for case_id, region in zip(self.case_ids, self.case_regions, strict=True):
            if region.block.args:
                reject(f"number of arguments of case {case_id}", "0", len(region.block.args))

    @override
    @classmethod
    def parse(cls, parser: Parser) -> ComputeLoopOp:
        attributes = parser.parse_optional_attr_dict()
        types = parse_optional_types(parser) if parser.parse_optional_punctuation("->") else []
        cases: list[int] = []
        regions: list[Region] = []
        while parser.parse_optional_keyword("case"):
            cases.append(parser.parse_integer(allow_boolean=False))
            regions.append(parser.parse_region())
        op = cls(cases, regions, types, attributes)
        ensure_terminator(op, SingleBlockImplicitTerminator(YieldOp))
        return op

    @override
    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        if self.res:
            printer.print_string(" -> ")
            printer.print_list(self.res.types, printer.print_attribute)
        for case_id, region in zip(self.case_ids, self.case_regions, strict=True):
            printer.print_string(f"\ncase {case_id} ")
            printer.print_region(region, print_entry_block_args=False, print_empty_block=False)


@irdl_op_definition
class PopOperandOp(IRDLOperation):
    """
    The next entry of the data queue.

    ```mlir
    %v = dlc.pop_operand : memref<?xf32>
    ```
    """

    name = "dlc.pop_operand"

    result = result_def()
    """The operand: a scalar, a vector, or a row."""

    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, result_type: Attribute) -> None:
        super().__init__(result_types=[result_type])


def _optional_i64(value: int, default: int) -> IntegerAttr[I64] | None:
    return None if value == default else IntegerAttr(value, i64)


@irdl_op_definition
class GetVarOp(IRDLOperation):
    """
    Read register `id` of the execute side.

    ```mlir
    %b = dlc.get_var {id = 1 : i64} : index
    ```
    """

    name = "dlc.get_var"

    id = opt_prop_def(IntegerAttr[I64])
    """The register; absent means 0."""
    result = result_def()
    """Its value."""

    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, result_type: Attribute, id: int = 0) -> None:
        super().__init__(result_types=[result_type], properties={"id": _optional_i64(id, 0)})

    @property
    def variable(self) -> int:
        """The register's number."""
        return 0 if self.id is None else self.id.value.data


@irdl_op_definition
class SetVarOp(IRDLOperation):
    """
    Write register `id` of the execute side; a row is copied in.

    ```mlir
    dlc.set_var %v {id = 1 : i64} : index
    ```
    """

    name = "dlc.set_var"

    value = operand_def()
    """The value."""
    id = opt_prop_def(IntegerAttr[I64])
    """The register; absent means 0."""

    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue | Operation, id: int = 0) -> None:
        super().__init__(operands=[value], properties={"id": _optional_i64(id, 0)})

    @property
    def variable(self) -> int:
        """The register's number."""
        return 0 if self.id is None else self.id.value.data


@irdl_op_definition
class IncrementVarOp(IRDLOperation):
    """
    Add a constant to register `id` of the execute side.

    ```mlir
    dlc.increment_var {id = 1 : i64, step = 3 : i64} : index
    ```
    """

    name = "dlc.increment_var"

    id = opt_prop_def(IntegerAttr[I64])
    """The register; absent means 0."""
    step = opt_prop_def(IntegerAttr[I64])
    """What is added; absent means 1."""

    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = "attr-dict"

    def __init__(self, id: int = 0, step: int = 1) -> None:
        super().__init__(
            properties={"id": _optional_i64(id, 0), "step": _optional_i64(step, 1)}
        )

    @property
    def variable(self) -> int:
        """The register's number."""
        return 0 if self.id is None else self.id.value.data

    @property
    def increment(self) -> int:
        """What is added."""
        return 1 if self.step is None else self.step.value.data


DLC = Dialect(
    "dlc",
    [
        ConfigureAccessEngineOp,
        NewTuOp,
        GetIndVarOp,
        RegisterCallbackOp,
        RegisterOperandOp,
        RowStreamOp,
        ComputeLoopOp,
        PopOperandOp,
        GetVarOp,
        SetVarOp,
        IncrementVarOp,
        YieldOp,
        ConfigureOp,
    ],
    [TuType, EventAttr],
)
