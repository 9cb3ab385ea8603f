"""The packages of the extra `softcore`: CPUs in Verilog and a C compiler, found, never copied."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ember_hw.errors import ToolError

COMPILER_PACKAGE = "ziglang"


@dataclass(frozen=True)
class Core:
    """A soft core.

    Attributes
    ----------
    name : str
        What results call it.
    package, module : str
        PyPI package that holds its Verilog, and the module it installs.
    verilog : str
        File in the module's folder `verilog`.
    adapter : str
        Our file that gives it the ports of `softcore_top.v`.
    has_data_cache : bool
        Whether a read outside brings a line of 32 bytes, which can also pop a line of a queue.
    """

    name: str
    package: str
    module: str
    verilog: str
    adapter: str
    has_data_cache: bool


CORES: dict[str, Core] = {
    core.name: core
    for core in (
        Core(
            name="picorv32",
            package="pythondata-cpu-picorv32",
            module="pythondata_cpu_picorv32",
            verilog="picorv32.v",
            adapter="cpu_picorv32.v",
            has_data_cache=False,
        ),
        Core(
            name="vexriscv",
            package="pythondata-cpu-vexriscv",
            module="pythondata_cpu_vexriscv",
            verilog="VexRiscv.v",
            adapter="cpu_vexriscv.v",
            has_data_cache=True,
        ),
    )
}


def missing_packages() -> list[str]:
    """Return which packages of the extra aren't installed, by their names on PyPI."""
    modules = {core.package: core.module for core in CORES.values()}
    modules[COMPILER_PACKAGE] = COMPILER_PACKAGE
    return [package for package, module in modules.items() if find_spec(module) is None]


def check_packages() -> None:
    """Refuse to go on without the extra.

    Raises
    ------
    ToolError
        A package is missing.
    """
    if missing := missing_packages():
        raise ToolError(
            f"the soft-core simulation needs {', '.join(missing)}, which must be installed, and "
            "isn't: pip install 'ember_hw[softcore]'"
        )


def core_verilog(core: Core) -> Path:
    """Return the core's Verilog in its installed package.

    Raises
    ------
    ToolError
        The package is missing, or a version without that file.
    """
    check_packages()
    spec = find_spec(core.module)
    assert spec is not None, "check_packages found it"
    for folder in spec.submodule_search_locations or ():
        path = Path(folder) / "verilog" / core.verilog
        if path.is_file():
            return path
    raise ToolError(
        f"package {core.package} must hold verilog/{core.verilog}, and doesn't; install the "
        "version that ember_hw's constraints.txt names"
    )
