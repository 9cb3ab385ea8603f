"""What nextpnr's report says of a design's clocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ember_hw.errors import ToolError


@dataclass(frozen=True, kw_only=True)
class Clock:
    """One clock of a routed design.

    Attributes
    ----------
    fmax_mhz, target_mhz : float
        What it can run at, and must.
    critical_path : tuple of str
        Cells of its longest path, each with the delay in ns up to its output.
    """

    fmax_mhz: float
    target_mhz: float
    critical_path: tuple[str, ...]


def read_clocks(report: Mapping[str, Any], target_mhz: Mapping[str, float]) -> dict[str, Clock]:
    """Return what nextpnr's report says of the clocks, by domain.

    Parameters
    ----------
    report : mapping
        Content of the file that ``--report`` writes.
    target_mhz : mapping of str to float
        What each domain must reach; one that the design hasn't is left out.
    """
    clocks: dict[str, Clock] = {}
    for domain, mhz in target_mhz.items():
        for net, found in report["fmax"].items():
            if net.endswith(f"{domain}_clock"):
                path = _critical_path(report["critical_paths"], net)
                clocks[domain] = Clock(
                    fmax_mhz=round(found["achieved"], 2), target_mhz=mhz, critical_path=path
                )
    return clocks


def check_timing(clocks: Mapping[str, Clock], seed: int) -> None:
    """Refuse a design with a clock that is too slow.

    Raises
    ------
    ToolError
        One is; the message has its longest path.
    """
    for name, one in clocks.items():
        if one.fmax_mhz < one.target_mhz:
            raise ToolError(
                f"clock {name!r} must reach {one.target_mhz:g} MHz, not {one.fmax_mhz:g}; "
                f"another seed than {seed} may do, or a smaller config. Its longest path, ns:\n"
                + "\n".join(one.critical_path)
            )


def _critical_path(paths: list[dict[str, Any]], net: str) -> tuple[str, ...]:
    lines: list[str] = []
    for one in paths:
        if one["from"] == one["to"] == f"posedge {net}":
            at = 0.0
            for step in one["path"]:
                at += step["delay"]
                if step["type"] in ("clk-to-q", "logic", "setup"):
                    lines.append(f"{at:.2f} {step['to']['cell']}")
    return tuple(lines)
