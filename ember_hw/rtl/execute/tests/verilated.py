"""Compiles a Verilog module `top` and a C++ harness around it into a library for `ctypes`."""

from __future__ import annotations

import ctypes
import os
import subprocess
from hashlib import sha256
from pathlib import Path

from ember_hw.sim.cache import build_once, cache_folder
from ember_hw.sim.verilator import find_verilator


def verilated(name: str, text: str, harness: str, *, optimise: str) -> ctypes.CDLL:
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
    """
    verilator = find_verilator()

    def build(draft: Path) -> None:
        (draft / "top.v").write_text(text)
        (draft / "harness.cpp").write_text(harness)
        environment = {**os.environ, "VERILATOR_ROOT": str(verilator.root)}
        command = [
            *(str(verilator.path), "--cc", "--top-module", "top", "--prefix", "Vtop", "-O3"),
            *("-Wno-fatal", "--assert", "-Mdir", "objects", "top.v"),
        ]
        subprocess.run(command, cwd=draft, env=environment, check=True, capture_output=True)
        include = verilator.root / "include"
        sources = [*map(str, (draft / "objects").glob("*.cpp")), str(include / "verilated.cpp")]
        sources.append(str(include / "verilated_threads.cpp"))
        flags = ["-std=gnu++20", optimise, "-shared", "-fPIC", "-pthread", "-latomic"]
        folders = [f"-I{draft / 'objects'}", f"-I{include}", f"-I{include / 'vltstd'}"]
        compiler = ["c++", *flags, *folders, "harness.cpp", *sources, "-o", "top.so"]
        subprocess.run(compiler, cwd=draft, check=True, capture_output=True)

    parts = (verilator.version, text, harness, optimise)
    key = sha256("\n".join(parts).encode()).hexdigest()[:32]
    return ctypes.CDLL(str(build_once(cache_folder() / name / key, build) / "top.so"))
