"""Whether a netlist fits a device, told before place and route, with what to do if it doesn't."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ember_hw.boards.bitstream.target import Device
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import ToolError

#: Share of each resource that a design may take. Beyond 60 % of the LUTs routing takes long and
#: timing suffers.
MOST_SHARE = {"LUT": 0.60, "FF": 0.60, "EBR": 0.95, "DSP": 0.95}

#: Look-up tables of a cell: a carry cell has two, a LUT memory four and two that write it.
_CELLS = {
    "LUT4": {"LUT": 1},
    "CCU2C": {"LUT": 2},
    "TRELLIS_DPR16X4": {"LUT": 6},
    "TRELLIS_FF": {"FF": 1},
    "DP16KD": {"EBR": 1},
    "PDPW16KD": {"EBR": 1},
    "MULT18X18D": {"DSP": 1},
}

#: What nextpnr calls them.
_NEXTPNR = {"LUT": "TRELLIS_COMB", "FF": "TRELLIS_FF", "EBR": "DP16KD", "DSP": "MULT18X18D"}

#: By resource: parameters that take much of it, the most first; each with the least value that is
#: of use. The area suite measured them.
_TAKES = {
    "LUT": (
        ("execute", "queues"),
        ("traversal_units", 2),
        ("streams_per_unit", 2),
        ("row_entries", 2),
        ("exports", 4),
        ("data_width_bits", 128),
        ("descriptor_entries", 8),
    ),
    "EBR": (
        ("lines_per_stream", 4),
        ("streams_per_unit", 2),
        ("traversal_units", 2),
        ("reorder_buffer_beats", 128),
        ("bundle_entries", 64),
        ("token_entries", 64),
    ),
    "DSP": (("execute", "queues"), ("data_width_bits", 128), ("row_entries", 2)),
}
_TAKES["FF"] = _TAKES["LUT"]
_MOST_NAMED = 3


@dataclass(frozen=True)
class Usage:
    """What a design takes of one resource.

    Attributes
    ----------
    used, available : int
    """

    used: int
    available: int

    @property
    def share(self) -> float:
        """Part of the device's."""
        return self.used / self.available


def count_resources(netlist: Mapping[str, Any], top: str, device: Device) -> dict[str, Usage]:
    """Return what a flat netlist takes of a device; nextpnr adds to it where carry chains end.

    Parameters
    ----------
    netlist : mapping
        yosys's JSON.
    top : str
        Its top module.
    device : Device
    """
    used: Counter[str] = Counter()
    for cell in netlist["modules"][top]["cells"].values():
        used.update(_CELLS.get(cell["type"], {}))
    return {name: Usage(used[name], have) for name, have in device.capacity.items()}


def routed_resources(report: Mapping[str, Any], device: Device) -> dict[str, Usage]:
    """Return what a routed design takes of a device: cells that nextpnr added are among them.

    Parameters
    ----------
    report : mapping
        Content of the file that nextpnr's ``--report`` writes.
    device : Device
    """
    utilisation = report["utilization"]
    return {
        name: Usage(utilisation[_NEXTPNR[name]]["used"], have)
        for name, have in device.capacity.items()
    }


def check_fit(
    usage: Mapping[str, Usage], config: AcceleratorConfig, device: Device, *, memory: str
) -> None:
    """Refuse a design that is too large.

    Parameters
    ----------
    usage : mapping of str to Usage
    config : AcceleratorConfig
        What it was built for.
    device : Device
    memory : str
        Kind of the board's memory.

    Raises
    ------
    ToolError
        It takes more of a resource than `MOST_SHARE`; the message says which parameters to lower.
    """
    problems: list[str] = []
    for name, one in usage.items():
        most = int(MOST_SHARE[name] * one.available)
        if one.used > most:
            problems.append(
                f"{name} must be at most {most:,} of {one.available:,} "
                f"({100 * MOST_SHARE[name]:.0f} %), not {one.used:,} ({100 * one.share:.0f} %); "
                f"{_remedy(name, config, memory)}"
            )
    if problems:
        raise ToolError(f"config {config.name!r} doesn't fit {device.name}: " + "\n".join(problems))


def _remedy(resource: str, config: AcceleratorConfig, memory: str) -> str:
    """Return what to lower, in order of what it brings."""
    if resource == "EBR" and memory == "block RAM":
        return "use the board's other memory"
    found: list[str] = []
    for parameter, least in _TAKES[resource]:
        value = getattr(config, parameter)
        if isinstance(least, str):
            if value != least:
                found.append(f"set {parameter} to {least} (now {value})")
        elif value > least:
            found.append(f"lower {parameter} (now {value})")
    if not found:
        return "no parameter takes much of it: use a larger device"
    return " or ".join(found[:_MOST_NAMED])
