"""Index arithmetic as sums: what an address takes over from the ALU of a unit."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from ember_hw.compiler.dialects import slc
from ember_hw.compiler.transforms.ir_facts import constant


@dataclass(frozen=True)
class Address:
    """
    An index as a sum of streams times constants, and a constant.

    Parameters
    ----------
    terms : tuple of (SSAValue, int)
        Streams or host values that aren't constants, each with its factor.
    offset : int
        What is added.
    """

    terms: tuple[tuple[SSAValue, int], ...]
    offset: int = 0

    def moved(self, distance: int) -> Address:
        """Return the address so many elements further on."""
        return Address(self.terms, self.offset + distance)

    def factor(self, stream: SSAValue) -> int:
        """Return the factor of a stream; 0 if it isn't a term."""
        return next((factor for term, factor in self.terms if term is stream), 0)


def linear(index: SSAValue) -> Address:
    """Return an index as the sum of what its additions and constant factors take apart."""
    terms: dict[SSAValue, int] = {}
    offset = _add(index, 1, terms)
    return Address(tuple((term, factor) for term, factor in terms.items() if factor), offset)


def single(index: SSAValue) -> Address:
    """Return an index as one stream times a constant and a constant, peeled as far as that goes."""
    scale, offset = 1, 0
    while isinstance(alu := index.owner, slc.AluStreamOp):
        left, right = constant(alu.lhs), constant(alu.rhs)
        match alu.alu_op.data:
            case slc.AluKind.ADD if right is not None:
                index, offset = alu.lhs, offset + scale * right
            case slc.AluKind.ADD if left is not None:
                index, offset = alu.rhs, offset + scale * left
            case slc.AluKind.SUB if right is not None:
                index, offset = alu.lhs, offset - scale * right
            case slc.AluKind.MUL if right is not None:
                index, scale = alu.lhs, scale * right
            case slc.AluKind.MUL if left is not None:
                index, scale = alu.rhs, scale * left
            case _:
                break
    return Address(((index, scale),), offset)


def _add(index: SSAValue, factor: int, terms: dict[SSAValue, int]) -> int:
    """Add factor times the index to the terms; its constant part."""
    number = constant(index)
    if number is not None:
        return factor * number
    alu = index.owner
    if isinstance(alu, slc.AluStreamOp):
        left, right = constant(alu.lhs), constant(alu.rhs)
        match alu.alu_op.data:
            case slc.AluKind.ADD:
                return _add(alu.lhs, factor, terms) + _add(alu.rhs, factor, terms)
            case slc.AluKind.SUB:
                return _add(alu.lhs, factor, terms) + _add(alu.rhs, -factor, terms)
            case slc.AluKind.MUL if right is not None:
                return _add(alu.lhs, factor * right, terms)
            case slc.AluKind.MUL if left is not None:
                return _add(alu.rhs, factor * left, terms)
            case _:
                pass
    terms[index] = terms.get(index, 0) + factor
    return 0
