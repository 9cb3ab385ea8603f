"""Index arithmetic as sums: what an address takes over from the ALU of a unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ember_hw.compiler.dialects import dlc, slc
from ember_hw.compiler.transforms.ir_facts import constant

#: Distance of two outer elements of a memory stream at most.
_MOST_PITCH = (1 << 17) - 1
#: Forms after which none is taken apart any more: sums of many terms have very many.
_MOST_FORMS = 64


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


def forms(index: SSAValue) -> Iterator[Address]:
    """
    Yield the forms of an index: the index itself, then with more and more of it taken apart.

    Each takes one more addition, subtraction or multiplication with a constant apart than one
    before; a form that is a constant alone isn't among them.
    """
    waiting = [_sum({index: 1}, 0)]
    seen = set(waiting)
    for form in waiting:
        if form.terms:
            yield form
        if len(waiting) > _MOST_FORMS:
            continue
        for term, factor in form.terms:
            parts = _apart(term)
            if parts is None:
                continue
            terms = {other: scale for other, scale in form.terms if other is not term}
            for part, scale in parts.terms:
                terms[part] = terms.get(part, 0) + factor * scale
            further = _sum(terms, form.offset + factor * parts.offset)
            if further not in seen:
                seen.add(further)
                waiting.append(further)


def choose(op: slc.MemStreamOp, needed: set[SSAValue], depths: Mapping[SSAValue, int]) -> Address:
    """
    Return the form in which a memory stream takes its last index.

    That which needs no relay is preferred, then that which needs fewer ALUs, then the shorter. Of
    several indices the last is one value and a constant.

    Parameters
    ----------
    op : MemStreamOp
        Has at least one index.
    needed : set of SSAValue
        ALU streams that are computed anyway.
    depths : mapping of SSAValue to int
        How deep the unit lies that advances each stream.
    """
    index = op.indices[-1]
    costs: list[tuple[tuple[int, int, int], Address]] = []
    for form in forms(index):
        relays = _relays(form, depths)
        if len(op.indices) > 1:
            relays = 0 if [factor for _, factor in form.terms] == [1] else None
        if relays is not None:
            alus = sum(
                isinstance(term.owner, slc.AluStreamOp) and term not in needed
                for term, _ in form.terms
            )
            costs.append(((relays, alus, len(form.terms)), form))
    if not costs:
        return Address(((index, 1),))
    return min(costs, key=lambda cost: cost[0])[1]


def _relays(form: Address, depths: Mapping[SSAValue, int]) -> int | None:
    """Return the relays that an address needs, 0 or 1; None if it has no place."""
    streams = [(term, factor) for term, factor in form.terms if term in depths]
    if len(form.terms) > 2 or len(form.terms) - len(streams) > 1:
        return None
    if len(form.terms) == 2 and 1 not in (factor for _, factor in form.terms):
        return None
    depth = max((depths[term] for term, _ in streams), default=0)
    own = [(term, factor) for term, factor in streams if depths[term] == depth]
    scaled = [factor for term, factor in streams if depths[term] < depth]
    if len(own) == 1 and isinstance(own[0][0].owner, dlc.GetIndVarOp) and own[0][1] == 1:
        return 0 if all(0 <= factor <= _MOST_PITCH for factor in scaled) else None
    # On a relay one value of factor 1 is its own.
    factors = sorted((factor for _, factor in streams), key=lambda factor: factor == 1)
    rest = factors[:1]
    return 1 if all(0 <= factor <= _MOST_PITCH for factor in rest) else None


def _sum(terms: dict[SSAValue, int], offset: int) -> Address:
    """Return a sum whose constants are in the offset."""
    rest: list[tuple[SSAValue, int]] = []
    for term, factor in terms.items():
        number = constant(term)
        if number is not None:
            offset += factor * number
        elif factor:
            rest.append((term, factor))
    return Address(tuple(rest), offset)


def _apart(stream: SSAValue) -> Address | None:
    """Return what an ALU stream adds up; None if it is something else."""
    alu = stream.owner
    if not isinstance(alu, slc.AluStreamOp):
        return None
    left, right = constant(alu.lhs), constant(alu.rhs)
    match alu.alu_op.data:
        case slc.AluKind.ADD:
            return Address(((alu.lhs, 1), (alu.rhs, 1)))
        case slc.AluKind.SUB:
            return Address(((alu.lhs, 1), (alu.rhs, -1)))
        case slc.AluKind.MUL if right is not None:
            return Address(((alu.lhs, right),))
        case slc.AluKind.MUL if left is not None:
            return Address(((alu.rhs, left),))
        case _:
            return None


def unit_depths(ops: Sequence[Operation]) -> dict[SSAValue, int]:
    """Return how deep the unit lies that advances each stream; units form a chain."""
    depths: dict[SSAValue, int] = {}
    units: dict[SSAValue, int] = {}
    for op in ops:
        if isinstance(op, dlc.NewTuOp):
            units[op.result] = len(units)
        elif isinstance(op, dlc.GetIndVarOp):
            depths[op.result] = units[op.tu]
        elif op.results:
            above = [depths[operand] for operand in op.operands if operand in depths]
            depths[op.results[0]] = max(above, default=0)
    return depths
