"""What no test can reach, each with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cocotb_tests.coverage.points import Point

FILE = Path(__file__).with_name("waivers.txt")


@dataclass
class Waiver:
    """Points that need not be reached.

    Attributes
    ----------
    kind, block, name : str
        Which: regular expressions, of which all match whole.
    reason : str
    matched : list of Point
        Points that it was asked about and matched.
    """

    kind: str
    block: str
    name: str
    reason: str
    matched: list[Point] = field(default_factory=list[Point])

    def matches(self, point: Point) -> bool:
        """Whether it waives a point."""
        pairs = ((self.kind, point.kind), (self.block, point.block), (self.name, point.name))
        return all(re.fullmatch(pattern, text) for pattern, text in pairs)


def read_waivers(text: str) -> list[Waiver]:
    """Return the waivers of a file.

    A waiver is a line of kind, block and name, separated by spaces (``-`` is the flat top), and
    below it the reason, indented. ``#`` begins a comment.

    Raises
    ------
    ValueError
        A line has not three parts, or a waiver has no reason.
    """
    waivers: list[Waiver] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace():
            if not waivers:
                raise ValueError(f"line {number} must be a waiver, not a reason")
            waivers[-1].reason = f"{waivers[-1].reason} {line.strip()}".strip()
            continue
        parts = line.split(None, 2)
        if len(parts) != 3:
            raise ValueError(f"line {number} must be kind, block and name, not {line!r}")
        kind, block, name = parts
        waivers.append(Waiver(kind, "" if block == "-" else block, name, ""))
    for waiver in waivers:
        if not waiver.reason:
            raise ValueError(f"waiver of {waiver.name!r} in {waiver.block!r} must have a reason")
    return waivers


def apply(waivers: Iterable[Waiver], missed: Iterable[Point]) -> list[Point]:
    """Return the points that are not waived; note the others at their waivers."""
    left: list[Point] = []
    for point in missed:
        found = next((waiver for waiver in waivers if waiver.matches(point)), None)
        if found is None:
            left.append(point)
        else:
            found.matched.append(point)
    return left
