"""What nextpnr's report says of a design's clocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ember_hw.errors import ToolError

#: What nextpnr puts before the name of a net on the global network.
_GLOBAL = "$glbnet$"


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
    """Return what nextpnr's report says of the clocks: every one of the design.

    Parameters
    ----------
    report : mapping
        Content of the file that ``--report`` writes.
    target_mhz : mapping of str to float
        What each domain must reach; any other clock must reach what nextpnr derived for it.

    Returns
    -------
    dict of str to Clock
        By domain, or by net where a clock is of none.

    Raises
    ------
    ToolError
        The report has no clock of the first domain.
    """
    nets = {domain: clock_net(domain) for domain in target_mhz}
    clocks: dict[str, Clock] = {}
    for net, found in report["fmax"].items():
        bare = str(net).removeprefix(_GLOBAL)
        # yosys may name the net after the module that drives it: `clocks.sdram_clk`.
        names = [domain for domain, own in nets.items() if bare in (own, f"clocks.{own}")]
        (name,) = names or [bare]
        clocks[name] = Clock(
            fmax_mhz=round(found["achieved"], 2),
            target_mhz=target_mhz[name] if name in target_mhz else found["constraint"],
            critical_path=_critical_path(report["critical_paths"], net),
        )
    first = next(iter(target_mhz))
    if first not in clocks:
        raise ToolError(
            f"nextpnr must report a clock of the domain {first!r}, net {clock_net(first)!r}, "
            f"and reports {', '.join(clocks) or 'none'}"
        )
    return clocks


def clock_net(domain: str) -> str:
    """Return the net of a domain of the top module, as Amaranth names it."""
    return "clk" if domain == "sync" else f"{domain}_clk"


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
