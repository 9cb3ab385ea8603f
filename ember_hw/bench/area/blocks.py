"""Cells of a flat netlist by the block of hardware that they come from.

Yosys flattens the design before it optimises, so the blocks are gone from its netlist. What is left
of them: registers, carries and multipliers name the line of Verilog that they were made of,
memories keep their names, and a look-up table belongs to what its output is or feeds.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

#: Names that yosys gives to cells and nets it made: that of a neighbour, then cell type and port.
_MADE = re.compile(r"_(LUT4|TRELLIS_FF|CCU2C|PFUMX|L6MUX21|DP16KD|MULT18X18D|TRELLIS_DPR16X4)_")
_SOURCE_LINE = re.compile(r"([^|:]+):(\d+)\.")


class Modules:
    """The modules of a Verilog file, by line and by name.

    Parameters
    ----------
    verilog : str
        Text as Amaranth writes it: each instance has a module of its own, whose name is its path.
    file_name : str
        What netlists call the file.
    """

    def __init__(self, verilog: str, file_name: str) -> None:
        self._file_name = file_name
        self._lines: list[int] = []
        self._names: list[str] = []
        for number, line in enumerate(verilog.splitlines(), 1):
            found = re.match(r"module \\?([^\s(]+)", line)
            if found:
                self._lines.append(number)
                self._names.append(found[1])
        self._known = set(self._names)

    def of_source(self, attributes: Mapping[str, str]) -> str | None:
        """Return the module that a `src` attribute points into; None if into no line of it."""
        for name, line in _SOURCE_LINE.findall(attributes.get("src", "")):
            if name == self._file_name:
                place = bisect.bisect_right(self._lines, int(line)) - 1
                return self._names[place] if place >= 0 else None
        return None

    def of_name(self, name: str, top: str) -> str | None:
        """Return the module that a flat name begins with; None if with no instance of one.

        Parameters
        ----------
        name : str
            Of a cell or net: instances below the top, joined by dots.
        top : str
            Module whose netlist it is.
        """
        parts = [top, *_MADE.split(name)[0].split(".")[:-1]]
        for length in range(len(parts), 0, -1):
            if (candidate := ".".join(parts[:length])) in self._known:
                return candidate
        return None


def owners(netlist: Mapping[str, Any], modules: Modules, top: str) -> dict[str, str]:
    """Return the module of each cell of a flat netlist.

    Parameters
    ----------
    netlist : mapping
        A module of yosys's JSON: `cells` and `netnames`.
    modules : Modules
        Of the Verilog that it was made of.
    top : str
        Its name.
    """
    cells: Mapping[str, Any] = netlist["cells"]
    declared = _declared_nets(netlist, modules)
    found: dict[str, str] = {}
    for name, cell in cells.items():
        owner = modules.of_source(cell["attributes"])
        if owner is None and cell["type"] not in ("LUT4", "PFUMX", "L6MUX21"):
            owner = modules.of_name(name, top)
        if owner is None:
            nets = (declared[bit] for bit in _bits(cell, "output") if bit in declared)
            owner = next(nets, None)
        if owner is not None:
            found[name] = owner
    _spread_to_drivers(cells, found)
    for name in cells:
        if name not in found:
            found[name] = modules.of_name(name, top) or top
    return found


def count_by_block(
    netlist: Mapping[str, Any], owner_of: Mapping[str, str], depth: int
) -> dict[str, Counter[str]]:
    """Count the types of cells of each block.

    Parameters
    ----------
    netlist : mapping
        As `owners` takes it.
    owner_of : mapping of str to str
        What `owners` returned.
    depth : int
        Parts of a path that are told apart; deeper blocks count for the one they lie in.
    """
    counts: dict[str, Counter[str]] = {}
    for name, cell in netlist["cells"].items():
        if not cell["type"].startswith("$"):
            # Amaranth makes names unique by a number behind "$".
            parts = [part.partition("$")[0] for part in owner_of[name].split(".")]
            block = ".".join(parts[:depth])
            counts.setdefault(block, Counter())[cell["type"]] += 1
    return counts


def _declared_nets(netlist: Mapping[str, Any], modules: Modules) -> dict[int, str]:
    """Return, by bit, the module that declares the net; nets that yosys made are left out."""
    declared: dict[int, str] = {}
    for name, net in netlist["netnames"].items():
        if _MADE.search(name):
            continue
        owner = modules.of_source(net["attributes"])
        if owner is not None:
            for bit in net["bits"]:
                if isinstance(bit, int):
                    declared[bit] = owner
    return declared


def _bits(cell: Mapping[str, Any], direction: str) -> Iterable[int]:
    for port, bits in cell["connections"].items():
        if cell["port_directions"][port] == direction:
            yield from (bit for bit in bits if isinstance(bit, int))


def _spread_to_drivers(cells: Mapping[str, Any], found: dict[str, str]) -> None:
    """Give cells without an owner that of most cells they feed, from the registers backwards."""
    driver = {bit: name for name, cell in cells.items() for bit in _bits(cell, "output")}
    sinks: dict[str, set[str]] = {}
    sources: dict[str, set[str]] = {}
    for name, cell in cells.items():
        for bit in _bits(cell, "input"):
            source = driver.get(bit)
            if source is not None and source not in found:
                sinks.setdefault(source, set()).add(name)
                sources.setdefault(name, set()).add(source)
    waiting = {name: sum(sink not in found for sink in some) for name, some in sinks.items()}
    ready = [name for name, count in waiting.items() if count == 0]
    while ready:
        name = ready.pop()
        votes = Counter(found[sink] for sink in sorted(sinks[name]))
        found[name] = votes.most_common(1)[0][0]
        for source in sources.get(name, ()):
            waiting[source] -= 1
            if waiting[source] == 0:
                ready.append(source)
