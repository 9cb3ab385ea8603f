"""The ops of `dlc` inside an access program: units, rows, and what is pushed on which event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from typing_extensions import override
from xdsl.dialects.builtin import I64, BoolAttr, IndexType, IntegerAttr, MemRefType, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import (
    Operation,
    ParametrizedAttribute,
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
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, Pure
from xdsl.utils.str_enum import StrEnum

from ember_hw.compiler.dialects.slc_streams import verify_index_count
from ember_hw.compiler.dialects.stream_types import (
    StreamType,
    head_type,
    hint_properties,
    is_index_or_stream,
    is_set,
    memref_type,
    reject,
    row_type,
    verify_hints,
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
    length = operand_def()
    """Elements of a row: index or stream of index."""
    nontemporal = opt_prop_def(BoolAttr)
    """Whether the data isn't expected to be read again soon; absent means false."""
    keep = opt_prop_def(BoolAttr)
    """Whether it is expected to be read again soon; absent means false."""
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
        keep: bool = False,
    ) -> None:
        element = memref_type(SSAValue.get(memref)).element_type
        super().__init__(
            operands=[memref, indices, length],
            result_types=[StreamType(row_type(element))],
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
        verify_index_count(memref_type(self.memref), len(self.indices), missing=1)
        verify_hints(self.nontemporal, self.keep)
        for index in self.indices:
            if not is_index_or_stream(index.type):
                reject("type of an index", "index or !slc.stream<index>", index.type)
        if not is_index_or_stream(self.length.type):
            reject("type of the length", "index or !slc.stream<index>", self.length.type)
        row = StreamType(row_type(memref_type(self.memref).element_type))
        if self.result.type != row:
            reject("type of the result", f"the row stream {row}", self.result.type)
