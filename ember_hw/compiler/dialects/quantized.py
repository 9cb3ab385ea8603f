"""`ember`: elements of quantised rows, and the numbers that they stand for.

An element has its row's scale and bias with it, whatever way it takes: as an element of a memref,
of a stream or of a row. In memory a row is codes, scale and bias, see
`ember_hw.compiler.quantized_rows`, so that only whole rows can be read.
"""

from __future__ import annotations

from typing import cast

from typing_extensions import override
from xdsl.dialects.builtin import StringAttr, VectorType, f32
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    result_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ember_hw.compiler.dialects.stream_types import QUANTIZED, reject
from ember_hw.compiler.quantized_rows import FORMATS, RowFormat

__all__ = ["EMBER", "DequantizeOp", "QuantizedType"]


@irdl_attr_definition
class QuantizedType(ParametrizedAttribute, TypeAttribute):
    """
    An element of a quantised row. Text: `!ember.quantized<q8f32>`.

    Parameters
    ----------
    format_name : StringAttr
        q8f32, q8f16, q4f32 or q4f16: bits of a code, and what scale and bias are.
    """

    name = QUANTIZED

    format_name: StringAttr

    def __init__(self, format_name: str | StringAttr) -> None:
        super().__init__(StringAttr(format_name) if isinstance(format_name, str) else format_name)

    @property
    def format(self) -> RowFormat:
        """How its row lies in memory."""
        return FORMATS[self.format_name.data]

    @override
    def verify(self) -> None:
        if self.format_name.data not in FORMATS:
            reject("format of a quantised row", ", ".join(FORMATS), self.format_name.data)

    @override
    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[Attribute]:
        with parser.in_angle_brackets():
            return (StringAttr(parser.parse_identifier()),)

    @override
    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.format_name.data)


def _quantized(type_: Attribute) -> Attribute:
    """Return the type itself, or that of the lanes of a vector."""
    if isinstance(type_, VectorType):
        return cast("VectorType[Attribute]", type_).element_type
    return type_


@irdl_op_definition
class DequantizeOp(IRDLOperation):
    """
    The number that an element of a quantised row is, or each lane of a vector of them.

    ```mlir
    %x = ember.dequantize %q : !ember.quantized<q8f32> to f32
    ```

    As a scalar: `scale * code + bias` in f32, the product rounded and then the sum.
    """

    name = "ember.dequantize"

    quantized = operand_def(Attribute)
    """The element, or a vector of elements."""
    result = result_def(Attribute)
    """The number, an f32, or a vector of as many."""

    assembly_format = "$quantized attr-dict `:` type($quantized) `to` type($result)"

    def __init__(self, quantized: SSAValue, result_type: Attribute = f32) -> None:
        super().__init__(operands=[quantized], result_types=[result_type])

    @override
    def verify_(self) -> None:
        source, result = self.quantized.type, self.result.type
        if not isinstance(_quantized(source), QuantizedType):
            reject("operand of the op", "an element of a quantised row", source)
        expected: Attribute = f32
        if isinstance(source, VectorType):
            expected = VectorType(f32, cast("VectorType[Attribute]", source).get_shape())
        if result != expected:
            reject("result of the op", str(expected), result)


EMBER = Dialect("ember", [DequantizeOp], [QuantizedType])
"""What quantised tables need besides the dialects of xDSL."""
