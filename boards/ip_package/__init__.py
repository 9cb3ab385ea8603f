"""The access unit as a package for other flows: Verilog, IP-XACT, FuseSoC, C driver, simulation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

from ember_hw.boards.ip_package.c_header import c_header
from ember_hw.boards.ip_package.example import is_simulated, make_example
from ember_hw.boards.ip_package.ip_xact import ip_xact
from ember_hw.config import AcceleratorConfig
from ember_hw.host.backends.verilog import model_shape
from ember_hw.rtl.emit_verilog import TOP_NAME, emit_verilog, without_assertions
from ember_hw.sim import softcore
from ember_hw.sim.softcore.build import HEADERS, WIDTHS

__all__ = ["write_package", "write_verilog"]

_FILES = Path(__file__).parent / "files"
_SOFTCORE = Path(softcore.__file__).parent
_SIMULATION_SOURCES = {
    "softcore_top.v": _SOFTCORE / "softcore_top.v",
    "cpu_vexriscv.v": _SOFTCORE / "cpu_vexriscv.v",
    "softcore.cpp": _SOFTCORE / "softcore.cpp",
    "start.S": _SOFTCORE / "firmware" / "start.S",
    "link.ld": _SOFTCORE / "firmware" / "link.ld",
    **{name: _SOFTCORE.parent / name for name in HEADERS},
}


def write_package(
    config: AcceleratorConfig,
    folder: Path,
    progress: Callable[[str], None] = lambda text: None,
) -> list[Path]:
    """Write the package of a config.

    Parameters
    ----------
    config : AcceleratorConfig
        Of the unit. A simulation comes with it where `is_simulated`.
    folder : Path
        Made where it is not there; files of the same names are written over.
    progress : callable, optional
        Told what is done next.

    Returns
    -------
    list of Path
        The files, in the order of README.md.
    """
    progress("converting Amaranth to Verilog")
    texts = _verilog(config) | {
        "component.xml": ip_xact(config, version("ember-hw")),
        f"{TOP_NAME}.core": fusesoc_core(config, version("ember-hw")),
        "driver/ember_hw.h": c_header(config),
        "driver/ember_hw.c": (_FILES / "ember_hw.c").read_text(),
        "lint.vlt": (_FILES / "lint.vlt").read_text(),
    }
    if is_simulated(config):
        progress("compiling the example")
        example = make_example(config)
        texts |= {
            "example/program.h": example.program_header,
            "example/main.c": (_FILES / "main.c").read_text(),
            "simulation/Makefile": (_FILES / "Makefile").read_text(),
            "simulation/config.mk": f"WIDTHS = {' '.join(_widths(config))}\n",
            "simulation/plan.txt": example.plan,
            **{f"simulation/{name}": data for name, data in example.memories.items()},
            **{
                f"simulation/{name}": path.read_text() for name, path in _SIMULATION_SOURCES.items()
            },
        }
    texts["README.md"] = _readme(config)
    return _write(texts, folder)


def write_verilog(config: AcceleratorConfig, folder: Path) -> list[Path]:
    """Write the Verilog of a config and the config itself; arguments as of `write_package`."""
    return _write(_verilog(config), folder)


def _verilog(config: AcceleratorConfig) -> dict[str, str | bytes]:
    return {
        f"{TOP_NAME}.v": without_assertions(emit_verilog(config)),
        "config.json": json.dumps(config.to_dict(), indent=2) + "\n",
    }


def _write(texts: Mapping[str, str | bytes], folder: Path) -> list[Path]:
    written: list[Path] = []
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        written.append(path)
    return written


def fusesoc_core(config: AcceleratorConfig, core_version: str) -> str:
    """Return the core file of FuseSoC: the Verilog, and a lint with Verilator.

    Ref: FuseSoC user guide, CAPI2.
    """
    return f"""\
CAPI=2:
name: ember-hw:accelerators:{TOP_NAME}:{core_version}
description: Access unit of config {config.name!r}, which walks loops, gathers rows, feeds queues

filesets:
  rtl:
    files: [{TOP_NAME}.v]
    file_type: verilogSource-2005
  waivers:
    files: [lint.vlt]
    file_type: vlt

targets:
  default: &default
    filesets: [rtl]
    toplevel: {TOP_NAME}
  lint:
    <<: *default
    filesets: [rtl, waivers]
    flow: lint
    flow_options:
      tool: verilator
"""


def _widths(config: AcceleratorConfig) -> list[str]:
    """Return what `softcore_top.v` and `softcore.cpp` have to know of the unit's ports."""
    shape = model_shape(config)
    return [f"{name.upper()}={getattr(shape, name)}" for name in WIDTHS]


def _readme(config: AcceleratorConfig) -> str:
    text = (_FILES / "README.md").read_text()
    if not is_simulated(config):
        text = re.sub(r"<simulation>\n.*?</simulation>\n", "", text, flags=re.DOTALL)
    text = re.sub(r"</?simulation>\n", "", text)
    return text.format(config=config.name, version=version("ember-hw"))
