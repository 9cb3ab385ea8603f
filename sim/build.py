"""Compiles the access unit's Verilog and the C++ harness into one shared library, once per content."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from ember_hw.errors import ToolError

from .cache import build_once, cache_folder
from .verilator import Verilator, find_verilator

TOP_MODULE = "access_unit"
LIBRARY_NAME = "model.so"

_HARNESS = Path(__file__).resolve().with_name("harness.cpp")
_LOG_LINES_SHOWN = 40


@dataclass(frozen=True, kw_only=True)
class ModelShape:
    """The widths of the flat top's ports that depend on its configuration.

    Attributes
    ----------
    bus_bytes : int
        Bytes of an AXI4 read beat and of a row beat: a power of two, 4 to 64.
    bundle_bytes : int
        Bytes of a bundle: `event_bits` and the scalars, padded to whole bytes.
    event_bits : int
        Event bits at the bottom of a bundle, 1 to 63.
    id_bits : int
        Bits of an AXI4 ID, 1 to 12.
    address_bits : int
        Bits of an AXI4 address, 12 to 64.
    """

    bus_bytes: int
    bundle_bytes: int
    event_bits: int
    id_bits: int
    address_bits: int

    def __post_init__(self) -> None:
        """Check each width."""
        if self.bus_bytes not in (4, 8, 16, 32, 64):
            raise ValueError(f"bus_bytes must be 4, 8, 16, 32 or 64, not {self.bus_bytes!r}")
        for name, low, high in (("event_bits", 1, 63), ("id_bits", 1, 12), ("address_bits", 12, 64)):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name} must be {low} to {high}, not {value!r}")
        if self.bundle_bytes * 8 < self.event_bits:
            raise ValueError(
                f"bundle_bytes must be enough for {self.event_bits} event bits, "
                f"not {self.bundle_bytes!r}"
            )


def build_model(
    verilog_text: str,
    shape: ModelShape,
    *,
    optimise: bool = True,
    trace: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Return the shared library of this Verilog, from the cache or freshly compiled.

    Parameters
    ----------
    verilog_text : str
        Verilog with the top module `access_unit` and the flat ports.
    shape : ModelShape
        Widths of its ports.
    optimise : bool
        Spend the C++ compiler's time on a fast model; without it a model builds in about half the
        time and runs several times slower.
    trace : bool
        Build in VCD tracing, which costs speed even while no trace is open.
    progress : callable, optional
        Told in a sentence what a cold build does next.

    Returns
    -------
    Path
        Library for `VerilatorModel`.

    Raises
    ------
    ToolError
        No usable Verilator, or the Verilog or the generated C++ doesn't compile; the message holds
        the end of the log.
    """
    verilator = find_verilator()
    verilate, make = _commands(verilator, shape, optimise=optimise, trace=trace)
    key = sha256()
    for part in (
        verilog_text,
        *(source.read_text() for source in sorted(_HARNESS.parent.glob("*.[ch]*"))),
        str(verilator.root),
        shlex.join(verilate + make),
        platform.machine(),
    ):
        key.update(f"{len(part)}\n{part}".encode())

    def build(draft: Path) -> None:
        report = progress or (lambda _: None)
        (draft / f"{TOP_MODULE}.v").write_text(verilog_text)
        report("translating the access unit to C++")
        _run(verilate, draft, verilator)
        report("compiling the model")
        _run([*make, f"-j{len(os.sched_getaffinity(0))}"], draft, verilator)
        shutil.rmtree(draft / "objects")

    return build_once(cache_folder() / "models" / key.hexdigest()[:32], build) / LIBRARY_NAME


def _commands(
    verilator: Verilator, shape: ModelShape, *, optimise: bool, trace: bool
) -> tuple[list[str], list[str]]:
    """Return the commands for `verilator` and `make`, to run in the folder that holds the Verilog."""
    defines = [f"-DEMBER_{name.upper()}={value}" for name, value in asdict(shape).items()]
    overrides = [f"-DVL_USER_{name}" for name in ("FINISH", "STOP", "FATAL")]
    verilate = [
        str(verilator.path),
        *("--cc", "--exe", "--top-module", TOP_MODULE, "--prefix", f"V{TOP_MODULE}"),
        *("-Mdir", "objects", "-o", f"../{LIBRARY_NAME}"),
        *("--x-initial", "unique", "--assert", "-O3", "--output-split", "15000"),
        # Machine-made Verilog trips style warnings; errors still end the build.
        *("-Wno-fatal", "-Wno-lint", "-Wno-style"),
        *("-CFLAGS", shlex.join(["-fPIC", "-fvisibility=hidden", *defines, *overrides])),
        *("-LDFLAGS", "-shared"),
        *(("--trace-vcd",) if trace else ()),
        f"{TOP_MODULE}.v",
        str(_HARNESS),
    ]
    # OPT_SLOW is constructors, reset and tracing: run once, compiled without optimisation.
    levels = {"OPT_FAST": "-O3" if optimise else "-O1", "OPT_GLOBAL": "-O2", "OPT_SLOW": "-O0"}
    make = ["make", "-C", "objects", "-f", f"V{TOP_MODULE}.mk"]
    return verilate, make + [f"{name}={level}" for name, level in levels.items()]


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
            f"{Path(command[0]).name} must compile the access unit's model, but ended with status "
            f"{done.returncode}; the end of its log:\n{tail}"
        )
