"""Compiles the access unit's Verilog and the harness into a shared library, once per content."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from ember_hw.errors import ToolError

from .cache import build_once, cache_folder
from .memory_library import ARCHIVE_NAME, build_memories
from .options import TraceFormat
from .pins import pins_header
from .top import TOP_NAME as _TOP
from .top import top_verilog
from .verilator import Verilator, find_verilator

LIBRARY_NAME = "model.so"

_SOURCES = Path(__file__).resolve().parent
_COVERAGE = _SOURCES / "coverage" / "write_coverage.cpp"
_VERILOG = "access_unit.v"
_MAKE = ("make", "-C", "objects", "-f", f"V{_TOP}.mk")
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
    memory_ports : int
        Memory read ports, 1 to 64: one of one unit is `m_axi_*`, else they are `m_axi0_*`,
        `m_axi1_*`, ..
    index_port_bytes : int
        Bytes of a beat of the index lines' own port of each unit, `m_axi_index_*`; 0: there is
        none.
    index_id_bits : int
        Bits of its AXI4 ID, 1 to 12; 0 without that port.
    length_bits : int
        Bits of ARLEN: 8, or 4 with AXI3.
    units : int
        Access units, 1 to 64. One is the module `access_unit`; more are `access_cluster`, where the
        unit's number follows the names of its queues and index port, `m_axis_bundle0_*`, .., where
        `irq` and `m_axis_aresetn` have a bit for each, and registers lie at the unit's number times
        4096.
    input_bytes : int
        Bytes of a beat of the index stream `s_axis_index_*`, 4 to 64; 0: there is none.
    input_dest_bits : int
        Bits of its TDEST, 1 to 32; 0 without it.
    reduces : int
        1: each unit has a reduce unit: `m_axis_result_*` in place of `m_axis_row_*`, no bundles. A
        run's row beats are those of results then.
    writes : int
        1: the reduce unit of the one unit writes its results through `m_axi_result_*`; it has no
        `m_axis_result_*` then, and a run has no row beats.
    probed_streams : int
        Memory streams of the one access unit, into whose counters the simulation looks; 0: it
        doesn't look inside.
    """

    bus_bytes: int
    bundle_bytes: int
    event_bits: int
    id_bits: int
    address_bits: int
    memory_ports: int = 1
    index_port_bytes: int = 0
    index_id_bits: int = 0
    length_bits: int = 8
    units: int = 1
    input_bytes: int = 0
    input_dest_bits: int = 0
    reduces: int = 0
    writes: int = 0
    probed_streams: int = 0

    def __post_init__(self) -> None:
        """Check each width."""
        if self.bus_bytes not in (4, 8, 16, 32, 64):
            raise ValueError(f"bus_bytes must be 4, 8, 16, 32 or 64, not {self.bus_bytes!r}")
        for name in ("index_port_bytes", "input_bytes"):
            value = getattr(self, name)
            if value not in (0, 4, 8, 16, 32, 64):
                raise ValueError(f"{name} must be 0, 4, 8, 16, 32 or 64, not {value!r}")
        for name, low, high in (
            ("event_bits", 1, 63),
            ("id_bits", 1, 12),
            ("address_bits", 12, 64),
            ("memory_ports", 1, 64),
            ("units", 1, 64),
            ("reduces", 0, 1),
            ("writes", 0, self.reduces if self.units == 1 else 0),
            ("probed_streams", 0, 32 if self.units == 1 else 0),
            ("index_id_bits", min(1, self.index_port_bytes), 12 * min(1, self.index_port_bytes)),
            ("input_dest_bits", min(1, self.input_bytes), 32 * min(1, self.input_bytes)),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name} must be {low} to {high}, not {value!r}")
        if self.length_bits not in (4, 8):
            raise ValueError(f"length_bits must be 4 or 8, not {self.length_bits!r}")
        if self.bundle_bytes * 8 < self.event_bits:
            raise ValueError(
                f"bundle_bytes must be enough for {self.event_bits} event bits, "
                f"not {self.bundle_bytes!r}"
            )

    @property
    def channels(self) -> tuple[tuple[str, int, int], ...]:
        """Read ports, index ports last: prefix, bytes of a beat, bits of an ID."""
        is_single = self.units == 1 and self.memory_ports == 1
        numbers = [""] if is_single else [str(n) for n in range(self.memory_ports)]
        ports = [(f"m_axi{number}", self.bus_bytes, self.id_bits) for number in numbers]
        if self.index_port_bytes:
            ports += [
                (f"m_axi_index{number}", self.index_port_bytes, self.index_id_bits)
                for number in self.unit_numbers
            ]
        return tuple(ports)

    @property
    def unit_module(self) -> str:
        """Name of the module that the simulation holds."""
        return "access_unit" if self.units == 1 else "access_cluster"

    @property
    def unit_numbers(self) -> tuple[str, ...]:
        """What the names of a unit's queues have behind them."""
        return ("",) if self.units == 1 else tuple(str(n) for n in range(self.units))

    @property
    def register_address_bits(self) -> int:
        """Bits of a register's address: 12, and the unit's number above them."""
        return 12 + (self.units - 1).bit_length()


def build_model(
    verilog_text: str,
    shape: ModelShape,
    *,
    optimise: bool = True,
    trace: TraceFormat = "",
    coverage: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Return the shared library of this Verilog, from the cache or freshly compiled.

    Parameters
    ----------
    verilog_text : str
        Verilog with the top module `access_unit`, or `access_cluster`, and the flat ports.
    shape : ModelShape
        Widths of its ports.
    optimise : bool
        Compile with -O2 instead of -O1: a seventh more speed for twice the compiler's time. (-O3
        costs a third more again, and its gain is too small to measure.)
    trace : "", "vcd" or "fst"
        Build in tracing, which costs speed even while no trace is open. FST files are a tenth of
        VCD's, and need the headers of lz4 and zlib to build.
    coverage : bool
        Build in the counting of lines and toggles, which costs much speed; the library then has
        ``ember_write_coverage(path)``, for the model that was called last.
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
    if trace:
        verilog_text = traceable(verilog_text)
    verilator = find_verilator()
    harness = {
        str(file.relative_to(_SOURCES)): file.read_text()
        for folder in (_SOURCES, _SOURCES / "memories")
        for file in sorted(folder.iterdir())
        if file.suffix in (".cpp", ".hpp", ".h", ".vlt")
    }
    harness |= {f"{_TOP}.v": top_verilog(shape), "pins.hpp": pins_header(shape)}
    memories = build_memories(progress) / ARCHIVE_NAME
    if coverage:
        harness[_COVERAGE.name] = _COVERAGE.read_text()
    verilate = _verilate(verilator, trace=trace, coverage=coverage, shape=shape)
    make = [*_MAKE, f"OPT_FAST={'-O2' if optimise else '-O1'}", "OPT_SLOW=-O0"]

    def build(draft: Path) -> None:
        if trace == "fst":
            check_fst()
        report = progress or (lambda _: None)
        runtime = _build_runtime(verilator, trace=trace, coverage=coverage, report=report)
        (draft / _VERILOG).write_text(verilog_text)
        (draft / "harness" / "memories").mkdir(parents=True)
        for name, text in harness.items():
            (draft / "harness" / name).write_text(text)
        report("translating the access unit's Verilog to C++")
        _run(verilate, draft, verilator)
        report("compiling the access unit's model")
        # The runtime is compiled already; as a library it links after the objects.
        _run(
            [
                *make,
                f"-j{os.cpu_count()}",
                "VK_GLOBAL_OBJS=",
                f"USER_LDLIBS={memories} {runtime}",
            ],
            draft,
            verilator,
        )
        shutil.rmtree(draft / "objects")
        shutil.rmtree(draft / "harness")

    parts = (part for item in harness.items() for part in item)
    key = _key(verilator, verilog_text, *verilate, *make, *parts)
    return build_once(cache_folder() / "models" / key, build) / LIBRARY_NAME


def traceable(verilog_text: str) -> str:
    r"""Return Verilog of Yosys with its helper signals named as waveform viewers can read them.

    GTKWave takes the colons in their names for the bits of a vector, and ends.

    Examples
    --------
    >>> print(traceable(r"reg \$auto$verilog_backend.cc:2355:dump_module$1  = 0;"))
    reg \$auto$1  = 0;
    """
    return re.sub(r"\$auto\$verilog_backend\.cc:\d+:dump_module\$", "$auto$", verilog_text)


def _build_runtime(
    verilator: Verilator, *, trace: TraceFormat, coverage: bool, report: Callable[[str], None]
) -> Path:
    """Return Verilator's runtime as a library, compiled once for all models of this machine."""
    verilate = _verilate(verilator, trace=trace, coverage=coverage)

    def build(draft: Path) -> None:
        report("compiling Verilator's runtime")
        (draft / _VERILOG).write_text(f"module {_TOP} (input clk); endmodule\n")
        _run(verilate, draft, verilator)
        rule = f"include V{_TOP}.mk\n../runtime.a: $(VK_GLOBAL_OBJS)\n\tar rcs $@ $^\n"
        (draft / "objects" / "runtime.mk").write_text(rule)
        make = [
            "make",
            "-C",
            "objects",
            "-f",
            "runtime.mk",
            "OPT_GLOBAL=-O2",
            f"-j{os.cpu_count()}",
        ]
        _run([*make, "../runtime.a"], draft, verilator)
        shutil.rmtree(draft / "objects")

    return build_once(cache_folder() / "runtime" / _key(verilator, *verilate), build) / "runtime.a"


def _verilate(
    verilator: Verilator, *, trace: TraceFormat, coverage: bool, shape: ModelShape | None = None
) -> list[str]:
    """Return the command that turns the Verilog in the current folder into C++ and a makefile.

    With a shape, the makefile compiles the harness too and links a shared library.
    """
    flags = ["-fPIC", "-fvisibility=hidden"]
    flags += [f"-DVL_USER_{name}" for name in ("FINISH", "STOP", "FATAL")]
    command = [
        str(verilator.path),
        *("--cc", "--top-module", _TOP, "--prefix", f"V{_TOP}", "-Mdir", "objects"),
        *("--x-initial", "unique", "--assert", "-O3", "--output-split", "15000"),
        *((f"--trace-{trace}",) if trace else ()),
        *(("--coverage-line", "--coverage-toggle") if coverage else ()),
        _VERILOG,
    ]
    if shape is not None:
        widths = {name.upper(): value for name, value in asdict(shape).items()}
        flags += [f"-DEMBER_{name}={value}" for name, value in widths.items()]
        command += [f"harness/{name}" for name in ("lint.vlt", f"{_TOP}.v", "harness.cpp")]
        command += ["-Wno-fatal", "-Werror-WIDTHEXPAND", "-Werror-WIDTHTRUNC", "-Werror-PINMISSING"]
        command += [f"harness/{_COVERAGE.name}"] if coverage else []
        command += ["--exe", "-o", f"../{LIBRARY_NAME}", "-LDFLAGS", "-shared"]
    return [*command, "-CFLAGS", " ".join(flags)]


def _key(verilator: Verilator, *parts: str) -> str:
    digest = sha256()
    for part in (str(verilator.root), verilator.version, platform.machine(), *parts):
        digest.update(f"{len(part)}\n{part}".encode())
    return digest.hexdigest()[:32]


def check_fst() -> None:
    """Refuse to build a model that writes FST without the headers of what compresses it.

    Raises
    ------
    ToolError
        The C++ compiler doesn't find them.
    """
    command = [os.environ.get("CXX", "c++"), "-E", "-x", "c++", "-"]
    text = "#include <lz4.h>\n#include <zlib.h>\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolError(
            "an FST trace must have the headers lz4.h and zlib.h, and they are not installed; "
            "install liblz4-dev and zlib1g-dev, or trace to a .vcd file"
        )


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
