"""What the generator knows of a program's values before it runs: enough to keep it legal."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ember_hw.isa import AluOperation

LEAST, MOST = -(1 << 31), (1 << 31) - 1


@dataclass(frozen=True)
class Known:
    """A value that an export carries.

    Attributes
    ----------
    low, high : int
        Least and greatest.
    level : int
        Unit that defines it; -1 for an argument.
    align : int
        A power of two that divides it.
    pair : int, optional
        Number of the pair of bounds it belongs to.
    is_upper : bool
        Whether it is the pair's upper bound.
    gap : int
        Greatest distance of the pair.
    """

    low: int
    high: int
    level: int = -1
    align: int = 1
    pair: int | None = None
    is_upper: bool = False
    gap: int = 0

    @property
    def span(self) -> int:
        """Distance of least and greatest."""
        return self.high - self.low

    def at(self, level: int) -> Known:
        """Return the same value, defined by a unit."""
        return replace(self, level=level)


#: A value of which nothing is known but that it is defined.
ANY = Known(LEAST, MOST)


def within(low: int, high: int, align: int = 1) -> Known:
    """Return what is known of a value in a range; where it may wrap around, that is nothing."""
    return Known(low, high, align=align) if LEAST <= low <= high <= MOST else ANY


def computed(operation: AluOperation, a: Known, b: Known) -> Known:
    """Return what is known of an ALU's result."""
    match operation:
        case AluOperation.ADD:
            return within(a.low + b.low, a.high + b.high, min(a.align, b.align))
        case AluOperation.SUB:
            return within(a.low - b.high, a.high - b.low, min(a.align, b.align))
        case AluOperation.RSUB:
            return within(b.low - a.high, b.high - a.low, min(a.align, b.align))
        case AluOperation.MUL:
            corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            return within(min(corners), max(corners), a.align * b.align)


def alignment(value: int) -> int:
    """Return the greatest power of two, at most 4096, that divides a value."""
    return min(4096, value & -value) if value else 4096
