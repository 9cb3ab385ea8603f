"""Compiles a soft core, the access unit and `softcore.cpp` into a program, once per content."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from ember_hw.errors import ToolError

from ..build import ModelShape
from ..cache import build_once, cache_folder
from ..verilator import Verilator, find_verilator
from .packages import Core, core_verilog

_FOLDER = Path(__file__).resolve().parent
_PROGRAM = "softcore"
_TOP = "softcore_top"
#: Headers of this project that the simulation includes, in the folder above.
HEADERS = (
    "memories/address_map.hpp",
    "memories/ideal_memory.hpp",
    "memories/memory.hpp",
    "ports.hpp",
)
#: What of a unit's shape the top module and the program depend on.
WIDTHS = ("bus_bytes", "bundle_bytes", "event_bits", "id_bits", "address_bits")
_LOG_LINES_SHOWN = 40


def build_softcore(
    core: Core,
    verilog_text: str,
    shape: ModelShape,
    *,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Return the simulation of a core beside an access unit, from the cache or freshly compiled.

    Parameters
    ----------
    core : Core
        Its Verilog is read from its installed package.
    verilog_text : str
        Verilog of the access unit, with the flat ports.
    shape : ModelShape
        Widths of its ports.
    progress : callable, optional
        Told in a sentence what a cold build does next.

    Returns
    -------
    Path
        Program for `run_softcore`.

    Raises
    ------
    ToolError
        A package or tool is missing, or the Verilog or the generated C++ doesn't compile; the
        message holds the end of the log.
    """
    cpu = core_verilog(core)
    verilator = find_verilator()
    sources = {
        "access_unit.v": verilog_text,
        "cpu.v": cpu.read_text(),
        "adapter.v": (_FOLDER / core.adapter).read_text(),
        f"{_TOP}.v": (_FOLDER / f"{_TOP}.v").read_text(),
        "softcore.cpp": (_FOLDER / "softcore.cpp").read_text(),
        **{name: (_FOLDER.parent / name).read_text() for name in HEADERS},
    }
    widths = {name.upper(): getattr(shape, name) for name in WIDTHS}
    verilate = [
        str(verilator.path),
        *("--cc", "--exe", "--top-module", _TOP, "--prefix", f"V{_TOP}", "-Mdir", "objects"),
        # Strangers' Verilog: its style warnings are none of ours.
        *("-O3", "--x-assign", "fast", "--output-split", "15000"),
        *("-Wno-fatal", "-Wno-lint", "-Wno-TIMESCALEMOD"),
        *("-CFLAGS", " ".join(["-I..", *(f"-DEMBER_{name}={n}" for name, n in widths.items())])),
        *(f"-G{name}={n}" for name, n in widths.items()),
        *(name for name in sources if name.endswith((".v", ".cpp"))),
        *("-o", f"../{_PROGRAM}"),
    ]
    make = ["make", "-C", "objects", "-f", f"V{_TOP}.mk", f"-j{os.cpu_count()}"]
    make += ["OPT_FAST=-O2", "OPT_SLOW=-O0", "OPT_GLOBAL=-O1"]

    def build(draft: Path) -> None:
        report = progress or (lambda _: None)
        for name, text in sources.items():
            (draft / name).parent.mkdir(exist_ok=True)
            (draft / name).write_text(text)
        report(f"translating {core.name} and the access unit to C++")
        _run(verilate, draft, verilator)
        report(f"compiling {core.name} and the access unit")
        _run(make, draft, verilator)
        shutil.rmtree(draft / "objects")

    key = sha256()
    for part in (str(verilator.root), verilator.version, platform.machine(), *verilate, *make):
        key.update(f"{len(part)}\n{part}".encode())
    for name, text in sources.items():
        key.update(f"{name} {len(text)}\n{text}".encode())
    target = cache_folder() / "softcore" / f"{core.name}-{key.hexdigest()[:32]}"
    return build_once(target, build) / _PROGRAM


def _run(command: list[str], folder: Path, verilator: Verilator) -> None:
    environment = {**os.environ, "VERILATOR_ROOT": str(verilator.root)}
    # A make that started us mustn't lend its flags and job server.
    for variable in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
        environment.pop(variable, None)
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.strip().splitlines()[-_LOG_LINES_SHOWN:])
        raise ToolError(
            f"{Path(command[0]).name} must compile the soft-core simulation, but ended with status "
            f"{done.returncode}; the end of its log:\n{tail}"
        )
