"""What lies beside a trace: a map of its names to blocks and streams, and a save file for GTKWave.

Amaranth and Yosys keep the hierarchy of the source, but a name that stands for several signals may
get a number behind it, and a stream's payload is one vector. The map says, for each block of the
source, under which scope it is found, and for each of its streams which signals carry it and which
bits of the payload are which field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcd.gtkw import GTKWSave

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.block_names import Block, StreamPort, blocks
from ember_hw.sim.options import Trace
from ember_hw.sim.top import TOP_NAME

#: Of the map; raised when a name or a meaning changes.
SCHEMA = 1
#: The scope of the unit with flat ports in every trace.
UNIT_SCOPE = f"TOP.{TOP_NAME}.access_unit"
#: Blocks at this depth or above are shown open in GTKWave, deeper ones closed.
_OPEN_DEPTH = 3
_LINE = re.compile(
    r"^module (?P<module>\\?\S+)"
    r"|^ +(?:input|output|wire|reg) +(?:\[(?P<high>\d+):0\] +)?(?P<signal>\\?[^\s;,=]+)"
    r"|^  (?P<kind>\\?[\w.$]+) +(?P<instance>\\?[\w$]+) +\($",
    re.MULTILINE,
)


@dataclass(frozen=True)
class _Module:
    """A module of the Verilog: its signals with their widths, its instances with their modules."""

    signals: dict[str, int]
    instances: dict[str, str]


def names_path(trace: Path) -> Path:
    """Return where the map of a trace lies.

    Examples
    --------
    >>> names_path(Path("run.vcd")).name, save_path(Path("run.vcd")).name
    ('run.names.json', 'run.gtkw')
    """
    return trace.with_suffix(".names.json")


def save_path(trace: Path) -> Path:
    """Return where the save file of a trace lies."""
    return trace.with_suffix(".gtkw")


def write_companions(trace: Trace, verilog: str, config: AcceleratorConfig) -> None:
    """Write the map and the save file of a trace.

    Parameters
    ----------
    trace : Trace
        Its file needn't exist yet.
    verilog : str
        Of the access unit.
    config : AcceleratorConfig
        It was written for.
    """
    found = [named(block, scope, module) for block, scope, module in _located(verilog, config)]
    names = {
        "schema": SCHEMA,
        "trace": trace.path.name,
        "config": config.to_dict(),
        "time_units_a_cycle": 2,
        "blocks": found,
    }
    names_path(trace.path).write_text(json.dumps(names, indent=1) + "\n")
    with save_path(trace.path).open("w") as file:
        _write_save(GTKWSave(file), trace.path, found)


def named(block: Block, scope: str, module: _Module) -> dict[str, Any]:
    """Return what the map says of a block."""
    streams = (_stream(port, scope, module) for port in block.streams)
    return {
        "scope": scope,
        "block": block.name,
        "source": f"ember_hw/{block.source}",
        "purpose": block.purpose,
        "streams": [stream for stream in streams if stream is not None],
    }


def _stream(port: StreamPort, scope: str, module: _Module) -> dict[str, Any] | None:
    """Return a stream's signals; None where Yosys has left none of a name, as of unused ones."""
    signals: dict[str, str] = {}
    for part in ("valid", "ready", "payload"):
        wanted = f"{port.name}__{part}"
        name = next((n for n in module.signals if n.partition("$")[0] == wanted), None)
        if name is None:
            return None
        width = module.signals[name]
        signals[part] = f"{scope}.{name}" + (f"[{width - 1}:0]" if width > 1 else "")
    fields = {name: list(bits) for name, bits in port.fields.items()}
    return {
        "name": port.name,
        "direction": "out" if port.is_output else "in",
        **signals,
        "payload_bits": fields,
    }


def _located(verilog: str, config: AcceleratorConfig) -> Iterator[tuple[Block, str, _Module]]:
    """Yield each block that the Verilog has as a module of its own, with its scope."""
    modules = read_modules(verilog)
    places: dict[tuple[str, ...], tuple[str, _Module]] = {(): (UNIT_SCOPE, modules["access_unit"])}
    for block in blocks(config):
        if block.path:
            above = places.get(block.path[:-1])
            if above is None:
                continue
            scope, module = above
            wanted = block.path[-1]
            instance = next((n for n in module.instances if n.partition("$")[0] == wanted), None)
            if instance is None:
                continue
            places[block.path] = f"{scope}.{instance}", modules[module.instances[instance]]
        yield (block, *places[block.path])


def read_modules(verilog: str) -> dict[str, _Module]:
    r"""Return the modules of Verilog that Yosys wrote, by name.

    Examples
    --------
    >>> text = "module top(o);\n  output [7:0] o;\n  \\top.a  \\a$1  (\n  );\nendmodule\n"
    >>> read_modules(text)["top"]
    _Module(signals={'o': 8}, instances={'a$1': 'top.a'})
    """
    found: dict[str, _Module] = {}
    module = _Module({}, {})
    for match in _LINE.finditer(verilog):
        name = match["module"] or match["signal"] or match["instance"]
        name = name.removeprefix("\\")
        if match["module"]:
            module = found[name.partition("(")[0]] = _Module({}, {})
        elif match["signal"]:
            module.signals[name] = int(match["high"] or 0) + 1
        else:
            module.instances[name] = match["kind"].removeprefix("\\")
    return found


def _write_save(save: GTKWSave, trace: Path, found: list[dict[str, Any]]) -> None:
    save.dumpfile(str(trace.resolve()))
    save.dumpfile_size(0)
    save.size(1600, 1000)
    save.treeopen(f"TOP.{TOP_NAME}.")
    save.signals_width(280)
    save.trace(f"TOP.{TOP_NAME}.clk")
    for one in found:
        streams = one["streams"]
        if not streams:
            continue
        place = one["scope"].removeprefix(f"{UNIT_SCOPE}.")
        is_closed = place.count(".") >= _OPEN_DEPTH
        with save.group(f"{place} ({one['block']})", closed=is_closed):
            for stream in streams:
                arrow = "->" if stream["direction"] == "out" else "<-"
                save.trace(stream["valid"], alias=f"{arrow} {stream['name']} valid")
                save.trace(stream["ready"], alias=f"   {stream['name']} ready")
                save.trace(stream["payload"], alias=f"   {stream['name']} payload", datafmt="hex")
