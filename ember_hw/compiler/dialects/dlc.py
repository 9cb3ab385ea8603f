"""
`dlc`, decoupled lookup-compute: an access program and an execute program that talk through queues.

`dlc.configure_access_engine` declares traversal units (loops) and what they push on their events;
its streams are `slc` and `slcvec` stream ops. `dlc.compute_loop` pops tokens and runs the case of
each until token 0 ("done"), which the root unit's end pushes. On an event the access unit pushes
the token first, then its operands in text order.

Ref: the published Ember implementation, op definitions of its DLC dialect (spelling of its parser).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import override
from xdsl.dialects.builtin import I64, DenseArrayBase, IntegerAttr, i64
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsTerminator,
    Pure,
    SingleBlockImplicitTerminator,
    ensure_terminator,
)

from ember_hw.compiler.dialects.dlc_access import (
    Event,
    EventAttr,
    GetIndVarOp,
    NewTuOp,
    RegisterCallbackOp,
    RegisterOperandOp,
    RowStreamOp,
    TuType,
)
from ember_hw.compiler.dialects.slc import new_body, parse_optional_types
from ember_hw.compiler.dialects.stream_types import reject

__all__ = [
    "DLC",
    "ComputeLoopOp",
    "ConfigureAccessEngineOp",
    "ConfigureOp",
    "Event",
    "EventAttr",
    "GetIndVarOp",
    "GetVarOp",
    "IncrementVarOp",
    "NewTuOp",
    "PopOperandOp",
    "RegisterCallbackOp",
    "RegisterOperandOp",
    "RowStreamOp",
    "SetVarOp",
    "TuType",
    "YieldOp",
]


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
            reject(
                "number of cases", f"that of regions {len(self.case_regions)}", len(self.case_ids)
            )
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
        super().__init__(properties={"id": _optional_i64(id, 0), "step": _optional_i64(step, 1)})

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
