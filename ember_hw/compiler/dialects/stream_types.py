"""The stream type and the small predicates about types that all dialects of the pipeline share."""

from __future__ import annotations

from typing import NoReturn, Protocol, TypedDict, cast

from typing_extensions import override
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    BoolAttr,
    IndexType,
    IntegerType,
    MemRefType,
    VectorType,
)
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

VECTOR_LENGTHS = (2, 3, 4, 8, 16, 32, 64)
"""Lane counts that a vector of the pipeline may have."""


QUANTIZED = "ember.quantized"
"""Name of the type of elements of quantised rows, whose dialect imports this module."""


class Hints(TypedDict):
    """
    What a read tells a memory hierarchy, as the keywords of the ops that read.

    Attributes
    ----------
    nontemporal, keep : bool
        Whether the data isn't, or is, expected to be read again soon.
    """

    nontemporal: bool
    keep: bool


class _Hinted(Protocol):
    @property
    def is_nontemporal(self) -> bool: ...

    @property
    def is_kept(self) -> bool: ...


def hints_of(op: _Hinted) -> Hints:
    """Return the hints of an op that reads."""
    return {"nontemporal": op.is_nontemporal, "keep": op.is_kept}


def hint_properties(nontemporal: bool, keep: bool) -> dict[str, Attribute | None]:
    """Return the properties of an op that reads: a hint is there or it is absent."""
    names = {"nontemporal": nontemporal, "keep": keep}
    return {name: BoolAttr.from_bool(True) if flag else None for name, flag in names.items()}


def is_set(flag: BoolAttr | None) -> bool:
    """Whether a hint is present and true."""
    return flag is not None and bool(flag)


def verify_hints(nontemporal: BoolAttr | None, keep: BoolAttr | None) -> None:
    """Raise if both hints are given."""
    if is_set(nontemporal) and is_set(keep):
        reject("hint of a read", "nontemporal or keep", "both")


def reject(what: str, rule: str, found: object) -> NoReturn:
    """Raise the verifier error "<what> must be <rule>, not <found>"."""
    raise VerifyException(f"{what} must be {rule}, not {found}")


@irdl_attr_definition
class StreamType(ParametrizedAttribute, TypeAttribute):
    """
    The sequence of values that one resource of the access unit produces.

    Reading a stream gives its *head*, which stays constant until the loop that owns the stream
    advances. Text: `!slc.stream<T>`.

    Parameters
    ----------
    element_type : Attribute
        Type of one value: index, integer, float, a vector of one dimension, or a memref (a row).
    """

    name = "slc.stream"

    element_type: Attribute

    def __init__(self, element_type: Attribute) -> None:
        super().__init__(element_type)

    @override
    def verify(self) -> None:
        element = self.element_type
        if isinstance(element, VectorType):
            if len(cast(VectorType[Attribute], element).get_shape()) != 1:
                reject("vector element of a stream", "of one dimension", self.element_type)
        elif not isinstance(element, IndexType | IntegerType | AnyFloat | MemRefType):
            if element.name != QUANTIZED:
                reject("element of a stream", "an index, integer, float, vector or memref", element)

    @override
    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[Attribute]:
        with parser.in_angle_brackets():
            return (parser.parse_type(),)

    @override
    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.element_type)


def stream_element(type_: Attribute) -> Attribute | None:
    """Element type of a stream type; None for any other type."""
    return type_.element_type if isinstance(type_, StreamType) else None


def head_type(type_: Attribute) -> Attribute:
    """Return what reading such a value gives: a stream's element, else the type itself."""
    return type_.element_type if isinstance(type_, StreamType) else type_


def memref_type(value: SSAValue) -> MemRefType[Attribute]:
    """Return the type of a value that the op's definition holds to be a memref."""
    return cast(MemRefType[Attribute], value.type)


def is_index_or_stream(type_: Attribute) -> bool:
    """Whether the type is `index` or `!slc.stream<index>`."""
    return isinstance(head_type(type_), IndexType)


def vector_shape(type_: Attribute) -> tuple[int, Attribute] | None:
    """Lane count and element type of a legal vector of the pipeline; None for any other type."""
    if not isinstance(type_, VectorType):
        return None
    vector = cast(VectorType[Attribute], type_)
    shape = vector.get_shape()
    if len(shape) != 1 or shape[0] not in VECTOR_LENGTHS or vector.get_num_scalable_dims():
        return None
    return shape[0], vector.element_type


def row_type(element_type: Attribute) -> MemRefType:
    """Return the type of a row: a memref of one dimension, its length known at run time."""
    return MemRefType(element_type, [DYNAMIC_INDEX])


def vector_stream(lanes: int, element_type: Attribute) -> StreamType:
    """Return the type `!slc.stream<vector<lanes x element_type>>`."""
    return StreamType(VectorType(element_type, [lanes]))


def verify_vector(what: str, type_: Attribute) -> tuple[int, Attribute]:
    """Lanes and element type of a vector; raise unless its length is legal."""
    shape = vector_shape(type_)
    if shape is None:
        lengths = ", ".join(str(length) for length in VECTOR_LENGTHS)
        reject(what, f"a vector of {lengths} lanes", type_)
    return shape


def verify_row(what: str, type_: Attribute) -> Attribute:
    """Element type of a row; raise unless the type is a memref of one dimension."""
    if isinstance(type_, MemRefType):
        row = cast(MemRefType[Attribute], type_)
        if row.get_num_dims() == 1:
            return row.element_type
    reject(what, "a memref of one dimension", cast(Attribute, type_))
