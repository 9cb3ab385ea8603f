"""Compiles a Verilog module `top` and a C++ harness around it into a library for `ctypes`."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from ember_hw.errors import ToolError

from .cache import build_once, cache_folder
from .verilator import find_verilator


def verilated(
    name: str,
    text: str,
    harness: str,
    *,
    optimise: str,
    headers: Mapping[str, str] | None = None,
) -> ctypes.CDLL:
    """Return the library, from the cache or freshly compiled.

    Parameters
    ----------
    name : str
        Folder of the cache.
    text : str
        Verilog with the top module `top`; its assertions count.
    harness : str
        C++ that includes ``Vtop.h`` and exports C functions.
    optimise : str
        Option of the C++ compiler: -O1 compiles faster, -O2 runs faster.
    headers : mapping of str to str, optional
        Text, by name, of further files that the harness includes.

    Raises
    ------
    ToolError
        Verilator or the C++ compiler is missing or fails; the message holds what it said.
    """
    verilator = find_verilator()
    files = {"top.v": text, "harness.cpp": harness, **(headers or {})}

    def build(draft: Path) -> None:
        for file_name, content in files.items():
            (draft / file_name).write_text(content)
        environment = {**os.environ, "VERILATOR_ROOT": str(verilator.root)}
        command = [
            *(str(verilator.path), "--cc", "--top-module", "top", "--prefix", "Vtop", "-O3"),
            *("-Wno-fatal", "--assert", "-Mdir", "objects", "top.v"),
        ]
        _run(command, draft, environment)
        include = verilator.root / "include"
        sources = [*map(str, (draft / "objects").glob("*.cpp")), str(include / "verilated.cpp")]
        sources.append(str(include / "verilated_threads.cpp"))
        flags = ["-std=gnu++20", optimise, "-shared", "-fPIC", "-pthread", "-latomic"]
        folders = [f"-I{draft / 'objects'}", f"-I{include}", f"-I{include / 'vltstd'}"]
        compiler = ["c++", *flags, *folders, "harness.cpp", *sources, "-o", "top.so"]
        _run(compiler, draft, environment)

    parts = [verilator.version, optimise, *(part for item in files.items() for part in item)]
    key = sha256("\n".join(parts).encode()).hexdigest()[:32]
    return ctypes.CDLL(str(build_once(cache_folder() / name / key, build) / "top.so"))


def _run(command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ToolError(
            f"{Path(command[0]).name} must end with status 0, not {done.returncode}:\n{done.stderr}"
        )
