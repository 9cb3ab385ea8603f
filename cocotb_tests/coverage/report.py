"""What was reached, block by block, and what is missing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from cocotb_tests.coverage.points import Point

#: What must be reached of what is not waived, as shares.
BARS = {"line": 1.0, "toggle": 0.95}


@dataclass
class Share:
    """Points of one kind in one block.

    Attributes
    ----------
    hit, waived, missed : int
    """

    hit: int = 0
    waived: int = 0
    missed: int = 0

    @property
    def value(self) -> float:
        """What was hit of all that is not waived."""
        wanted = self.hit + self.missed
        return self.hit / wanted if wanted else 1.0

    def add(self, other: Share) -> None:
        """Add the points of another."""
        self.hit += other.hit
        self.waived += other.waived
        self.missed += other.missed

    def __str__(self) -> str:
        waived = f" ({self.waived})" if self.waived else ""
        return f"{100 * self.value:6.2f} % {self.hit:6}/{self.hit + self.missed}{waived}"


@dataclass
class Blocks:
    """Shares of each kind of block: those of a name but for the numbers are one kind.

    Attributes
    ----------
    shares : dict of (block, kind) to Share
    """

    shares: dict[tuple[str, str], Share] = field(default_factory=lambda: defaultdict(Share))

    def count(self, hit: Iterable[Point], waived: Iterable[Point], missed: Iterable[Point]) -> None:
        """Take account of points."""
        for points, name in ((hit, "hit"), (waived, "waived"), (missed, "missed")):
            for point in points:
                share = self.shares[kind_of_block(point.block), point.kind]
                setattr(share, name, getattr(share, name) + 1)

    def total(self, kind: str) -> Share:
        """Return the sum of a kind of points."""
        total = Share()
        for (_, other), share in self.shares.items():
            if other == kind:
                total.add(share)
        return total

    def table(self) -> str:
        """Return a line a block; in brackets what is waived."""
        names = sorted({block for block, _ in self.shares})
        width = max(map(len, [*names, "all"]))
        lines = [f"{'block':{width}}  {'lines':28}  toggles"]
        for name in names:
            line, toggle = (self.shares[name, kind] for kind in BARS)
            lines.append(f"{name:{width}}  {line!s:28}  {toggle}")
        lines.append(f"{'all':{width}}  {self.total('line')!s:28}  {self.total('toggle')}")
        return "\n".join(lines)

    def fails(self) -> list[str]:
        """Return the bars that are not met."""
        totals = {kind: self.total(kind).value for kind in BARS}
        return [
            f"{kind} coverage must be {bar:.0%} or more, not {totals[kind]:.2%}"
            for kind, bar in BARS.items()
            if totals[kind] < bar
        ]


def kind_of_block(block: str) -> str:
    """Return a block's path without its numbers.

    Examples
    --------
    >>> kind_of_block("unit.datapath.unit0.store1.queue")
    'unit.datapath.unit*.store*.queue'
    """
    return re.sub(r"\d+", "*", block) or "(top)"


def listing(points: Iterable[Point]) -> str:
    """Return points, the bits of a signal in one line."""
    lines: list[str] = []
    signals: dict[tuple[str, str], list[str]] = defaultdict(list)
    for point in sorted(points):
        if point.kind == "line":
            lines.append(f"line {point.block} {point.name}")
        else:
            name, *bits = re.split(r"(?=\[\d+\]$)", point.name)
            signals[point.block, name] += bits
    lines += [f"toggle {block} {name}{''.join(bits)}" for (block, name), bits in signals.items()]
    return "\n".join(lines) + "\n"
