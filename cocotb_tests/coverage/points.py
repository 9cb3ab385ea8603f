"""Reads what Verilator counted: a point for each branch, and two for each bit of a signal."""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

TOP = "access_unit"

# What Yosys writes so that simulators run each block once at the start, with an empty body, and
# conditions that are constant.
_NO_BRANCH = re.compile(r"if \((\\\$auto\$verilog_backend.*|1'h1)\)")
_RECORD = re.compile(r"^C '(.*)' (\d+)$")
_EDGES = (":0->1", ":1->0")
# Verilator's way to write what is no letter.
_ESCAPED = re.compile(r"__0([0-9a-fA-F]{2})")
_NUMBER_OF_NAME = re.compile(r"\$\d+(?=$|[.\[])")


@dataclass(frozen=True, order=True)
class Point:
    """Something that a test may reach.

    Attributes
    ----------
    kind : "line" or "toggle"
        A branch of the Verilog; a bit that has risen and fallen.
    block : str
        Path of the block within the access unit; empty for the flat top.
    name : str
        Line, what begins there and its text, such as ``12 else: if (moves) begin``; or the bit,
        such as ``beat[3]``.
    """

    kind: Literal["line", "toggle"]
    block: str
    name: str


def read_counts(path: Path) -> Tally[tuple[str, str, str, str]]:
    """Return how often each record was hit: type, module, line and comment.

    Raises
    ------
    ValueError
        The file is none of Verilator's.
    """
    counts: Tally[tuple[str, str, str, str]] = Tally()
    for number, line in enumerate(path.read_text().splitlines()):
        if not number or not line:
            if number == 0 and not line.startswith("# SystemC::Coverage"):
                raise ValueError(f"{path} must be a coverage file of Verilator, not {line[:40]!r}")
            continue
        match = _RECORD.match(line)
        if match is None:
            raise ValueError(f"{path}, line {number + 1} must be a record, not {line[:40]!r}")
        fields = dict(part.split("\2", 1) for part in match[1].split("\1") if part)
        kind, module = fields["page"].split("/", 1)
        counts[kind, module, fields["l"], fields["o"]] += int(match[2])
    return counts


def block_of(module: str) -> str | None:
    """Return the path of a module of the Verilog, without the numbers that Amaranth appends.

    None for what is not the access unit.

    Examples
    --------
    >>> block_of("access_unit.unit.datapath.unit0$248.join")
    'unit.datapath.unit0.join'
    """
    path = _NUMBER_OF_NAME.sub("", module)
    if path != TOP and not path.startswith(f"{TOP}."):
        return None
    return path[len(TOP) + 1 :]


def bit_name(name: str) -> str | None:
    """Return a bit's name as the Verilog has it; None of what Yosys named.

    That are parts of expressions, next values of registers, and second names of signals that a
    block inside has under its own name: ``$17``, ``beat$17``.

    Examples
    --------
    >>> bit_name("lines___05F0__02evalid[3]")
    'lines__0.valid[3]'
    """
    plain = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), name)
    return None if "$" in plain else plain


def points_of(
    counts: Tally[tuple[str, str, str, str]], verilog: Iterable[str]
) -> Iterator[tuple[Point, bool]]:
    """Yield each point and whether it was hit.

    Parameters
    ----------
    counts : tally
        Sum of what `read_counts` returned.
    verilog : iterable of str
        The Verilog's lines.
    """
    lines = list(verilog)
    edges: dict[Point, list[int]] = {}
    for (page, module, line, comment), count in counts.items():
        block = block_of(module)
        if block is None:
            continue
        if not page.startswith("v_toggle"):
            text = lines[int(line) - 1].strip()
            if not _NO_BRANCH.match(text):
                yield Point("line", block, f"{line} {comment}: {text}"), count > 0
            continue
        name, edge = comment[: -len(_EDGES[0])], comment[-len(_EDGES[0]) :]
        if edge not in _EDGES:
            raise ValueError(f"a toggle must end with one of {', '.join(_EDGES)}, not {comment!r}")
        if (plain := bit_name(name)) is not None:
            edges.setdefault(Point("toggle", block, plain), []).append(count)
    for point, both in edges.items():
        yield point, all(both)
