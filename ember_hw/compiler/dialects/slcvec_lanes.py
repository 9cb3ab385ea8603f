"""The ops of `slcvec` that compute with lanes where `arith` and `vector` of xDSL can't."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, VectorType, i1
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Operation, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.str_enum import StrEnum

from ember_hw.compiler.dialects.stream_types import reject, vector_shape, verify_vector


class FoldKind(StrEnum):
    """How two values become one; `add` and `mul` are those of the element type."""

    ADD = "add"
    MUL = "mul"
    MAXIMUMF = "maximumf"
    MINIMUMF = "minimumf"
    MAXNUMF = "maxnumf"
    MINNUMF = "minnumf"
    MAXSI = "maxsi"
    MINSI = "minsi"
    AND = "and"
    OR = "or"
    XOR = "xor"

    @property
    def is_float(self) -> bool:
        """Whether the kind is one of floats only."""
        return self.value.endswith("f")

    @property
    def is_integer(self) -> bool:
        """Whether the kind is one of integers only."""
        return not self.is_float and self not in (FoldKind.ADD, FoldKind.MUL)


@irdl_attr_definition
class FoldKindAttr(EnumAttribute[FoldKind], SpacedOpaqueSyntaxAttribute):
    """Operation of a fold. Text: `#slcvec<fold_kind add>`."""

    name = "slcvec.fold_kind"


@irdl_op_definition
class FoldOp(IRDLOperation):
    """
    Fold the active lanes into a value, one after the other from lane 0 on.

    ```mlir
    %n = slcvec.fold<add> %a, %v mask %m : f32, vector<8xf32>, vector<8xi1>
    ```

    Scalar meaning: `n = a; for k in lanes: if m[k]: n = n + v[k]`.
    """

    name = "slcvec.fold"

    VALUE: ClassVar = VarConstraint("value", AnyAttr())

    kind = prop_def(FoldKindAttr)
    """The operation."""
    initial = operand_def(VALUE)
    """Value to begin with: of the vector's element type."""
    vector = operand_def(VectorType)
    """The lanes."""
    mask = operand_def(VectorType)
    """Lanes that take part; i1 each."""
    result = result_def(VALUE)
    """The value after the last active lane, of the element type."""

    traits = traits_def(Pure())

    assembly_format = (
        "`` `<` $kind `>` $initial `,` $vector `mask` $mask attr-dict `:` type($result) `,` "
        "type($vector) `,` type($mask)"
    )

    def __init__(
        self,
        kind: FoldKind,
        initial: SSAValue | Operation,
        vector: SSAValue | Operation,
        mask: SSAValue | Operation,
    ) -> None:
        initial = SSAValue.get(initial)
        super().__init__(
            operands=[initial, vector, mask],
            result_types=[initial.type],
            properties={"kind": FoldKindAttr(kind)},
        )

    @override
    def verify_(self) -> None:
        lanes, element = verify_vector("type of the lanes", self.vector.type)
        kind = self.kind.data
        fits = (
            isinstance(element, AnyFloat)
            if kind.is_float
            else isinstance(element, IntegerType | IndexType)
            if kind.is_integer
            else isinstance(element, AnyFloat | IntegerType | IndexType)
        )
        if not fits:
            reject("element of the lanes", f"one that {kind.value!r} takes", element)
        if self.result.type != element:
            reject(
                "type of the folded value", f"the lanes' element type {element}", self.result.type
            )
        _verify_mask(self.mask.type, lanes)


def _verify_mask(type_: Attribute, lanes: int) -> None:
    if vector_shape(type_) != (lanes, i1):
        reject("type of the mask", str(VectorType(i1, [lanes])), type_)
