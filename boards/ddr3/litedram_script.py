"""Runs LiteDRAM's generator in a process of its own: `generate` starts it.

    python -m ember_hw.boards.ddr3.litedram_script ORDER FOLDER

ORDER is a file of JSON: the fields of `generate.Order`. The Verilog and what it needs are written
into FOLDER. What can't be done ends with status 2 and the reason in the file `refused`.
"""

from __future__ import annotations

import json
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from ember_hw.boards.ddr3.registers import REGISTERS

MODULE = "ember_ddr3"
REFUSED = "refused"
#: What compiles the init CPU's program, beside a C compiler: Python package by its module.
_CPU_PACKAGES = {
    "pythondata_cpu_vexriscv": "pythondata-cpu-vexriscv",
    "pythondata_software_picolibc": "pythondata-software-picolibc",
    "pythondata_software_compiler_rt": "pythondata-software-compiler-rt",
}
_CPU_TOOLS = ("meson", "ninja")


class Refusal(Exception):
    """Something that the order needs is missing or is not as it must be."""


def main(order_path: str, folder: str) -> None:
    """Carry out an order."""
    order = json.loads(Path(order_path).read_text())
    target = Path(folder)
    try:
        if order["kind"] == "controller":
            write_controller(order, target)
        else:
            write_core(order, target)
    except Refusal as refusal:
        (target / REFUSED).write_text(str(refusal))
        sys.exit(2)


def memory_module(chip: dict[str, Any]) -> Any:
    """Return LiteDRAM's class of a chip, its limits in nanoseconds.

    LiteDRAM's own class has tRFC in clocks of the fastest speed, so that a slow controller would
    refresh for five times as long as the chip needs.
    """
    from litedram.modules import (  # pyright: ignore[reportMissingImports]  # the extra `ddr3`
        DDR3Module,
        _SpeedgradeTimings,
        _TechnologyTimings,
    )

    technology = _TechnologyTimings(
        tREFI=chip["trefi_ns"],
        tWTR=(chip["twtr_clocks"], chip["twtr_ns"]),
        tCCD=(chip["tccd_clocks"], None),
        tRRD=(chip["trrd_clocks"], chip["trrd_ns"]),
        tZQCS=(chip["tzqcs_clocks"], None),
    )
    grade = _SpeedgradeTimings(
        tRP=chip["trp_ns"],
        tRCD=chip["trcd_ns"],
        tWR=chip["twr_ns"],
        tRFC=(None, chip["trfc_ns"]),
        tFAW=(None, chip["tfaw_ns"]),
        tRAS=chip["tras_ns"],
    )
    return type(
        chip["name"],
        (DDR3Module,),
        {
            "nbanks": 1 << chip["bank_bits"],
            "nrows": 1 << chip["row_bits"],
            "ncols": 1 << chip["column_bits"],
            "technology_timings": technology,
            "speedgrade_timings": {"default": grade},
        },
    )


def write_core(order: dict[str, Any], folder: Path) -> None:
    """Write the whole core: PLL, PHY, controller, registers, and an init CPU if one is wanted."""
    from litedram import gen  # pyright: ignore[reportMissingImports]  # the extra `ddr3`
    from litedram.phy import ECP5DDRPHY  # pyright: ignore[reportMissingImports]
    from litex.build import tools  # pyright: ignore[reportMissingImports]
    from litex.build.lattice import LatticePlatform  # pyright: ignore[reportMissingImports]
    from litex.soc.integration.builder import Builder  # pyright: ignore[reportMissingImports]

    cpu = order["cpu"]
    config = {
        "cpu": cpu,
        "device": order["device"],
        "memtype": "DDR3",
        "sdram_module": memory_module(order["chip"]),
        "sdram_module_nb": 2,  # bytes of a word
        "sdram_rank_nb": 1,
        "sdram_phy": ECP5DDRPHY,
        "input_clk_freq": 1e6 * order["input_mhz"],
        "sys_clk_freq": 1e6 * order["clock_mhz"],
        "init_clk_freq": 25e6,
        # `DdrMemory` holds requests back itself: a port that closed would lose answers.
        "user_ports": {
            str(number): {"type": "native", "block_until_ready": False}
            for number in range(order["ports"])
        },
    }
    sizes: dict[str, int] = {}
    if cpu is not None:
        _check_cpu(cpu)
        # Its program would tell the commit of whatever repository Python's packages lie in.
        tools.get_litex_git_revision = lambda: "unknown"
        config |= {"cpu_variant": "minimal", "uart": "fifo"}
        sizes["integrated_rom_size"] = 0xC000
    platform = LatticePlatform(order["device"], io=[], toolchain="trellis")
    soc = gen.LiteDRAMCore(platform, config, **sizes)
    work = folder / "work"
    builder = Builder(
        soc, output_dir=str(work), compile_gateware=False, compile_software=cpu is not None
    )
    builder.build(build_name=MODULE, regular_comb=False)
    if cpu is None:
        _check_registers(json.loads((work / "csr.json").read_text())["csr_registers"])
    for source, *_ in platform.sources:
        shutil.copy(source, folder)
    for path in (work / "gateware").iterdir():
        if path.suffix in (".v", ".init"):
            shutil.copy(path, folder)
    shutil.rmtree(work)


def write_controller(order: dict[str, Any], folder: Path) -> None:
    """Write the controller alone, with native ports on one side and DFI on the other."""
    from litedram.core import LiteDRAMCore  # pyright: ignore[reportMissingImports]
    from litedram.init import (  # pyright: ignore[reportMissingImports]  # the extra `ddr3`
        get_sdram_phy_init_sequence,
    )
    from litedram.phy import ECP5DDRPHY  # pyright: ignore[reportMissingImports]
    from migen import Module, Record, Signal  # pyright: ignore[reportMissingImports]
    from migen.fhdl import verilog  # pyright: ignore[reportMissingImports]

    chip = order["chip"]
    frequency = 1e6 * order["clock_mhz"]
    module = memory_module(chip)(frequency, rate="1:2")
    widths = {"a": chip["row_bits"], "ba": chip["bank_bits"], "dq": 16, "dm": 2, "dqs_p": 2}
    pads = Record(
        [*widths.items(), *((name, 1) for name in "clk_p ras_n cas_n we_n cke odt".split())]
    )
    phy = ECP5DDRPHY(pads, sys_clk_freq=frequency)  # for its settings and its interface alone
    interface = type("Phy", (), {"settings": phy.settings, "dfi": phy.dfi})()
    top = cast(Any, Module())
    core = cast(
        Any,
        LiteDRAMCore(
            phy=interface,
            geom_settings=module.geom_settings,
            timing_settings=module.timing_settings,
            clk_freq=frequency,
        ),
    )
    top.submodules.core = core
    signals: set[Any] = set()

    def pin(name: str, inner: Any, *, is_input: bool) -> None:
        outer = Signal(len(inner), name=name)
        top.comb += inner.eq(outer) if is_input else outer.eq(inner)
        signals.add(outer)

    for number in range(order["ports"]):
        port = core.crossbar.get_port()
        name = f"user_port_{number}"
        pin(f"{name}_cmd_valid", port.cmd.valid, is_input=True)
        pin(f"{name}_cmd_ready", port.cmd.ready, is_input=False)
        pin(f"{name}_cmd_we", port.cmd.we, is_input=True)
        pin(f"{name}_cmd_addr", port.cmd.addr, is_input=True)
        pin(f"{name}_wdata_ready", port.wdata.ready, is_input=False)
        pin(f"{name}_wdata_data", port.wdata.data, is_input=True)
        pin(f"{name}_rdata_valid", port.rdata.valid, is_input=False)
        pin(f"{name}_rdata_data", port.rdata.data, is_input=False)
        top.comb += [
            port.wdata.valid.eq(1),
            port.wdata.we.eq((1 << len(port.wdata.we)) - 1),
            port.rdata.ready.eq(1),
        ]
    for number, phase in enumerate(phy.dfi.phases):
        for name, *_ in phase.layout:
            is_input = name in ("rddata", "rddata_valid")
            pin(f"dfi_p{number}_{name}", getattr(phase, name), is_input=is_input)
    text = str(verilog.convert(top, signals, name=MODULE))
    (folder / f"{MODULE}.v").write_text(text)
    settings = phy.settings
    facts = {name: getattr(settings, name) for name in ("cl", "cwl", "read_latency")}
    facts |= {name: getattr(settings, name) for name in ("write_latency", "rdphase", "wrphase")}
    steps, _ = get_sdram_phy_init_sequence(settings, module.timing_settings)
    (folder / "phy.json").write_text(json.dumps({**facts, "steps": steps}))


def _check_registers(found: dict[str, Any]) -> None:
    addresses = {name: one["addr"] for name, one in found.items()}
    if addresses != REGISTERS:
        raise Refusal(
            f"registers of LiteDRAM's core must be those of ember_hw, {REGISTERS}, "
            f"not {addresses}: pip install the versions that the extra `ddr3` names"
        )


def _check_cpu(cpu: str) -> None:
    """Refuse an init CPU for whose program something is missing."""
    from litex.soc.cores.cpu import CPUS  # pyright: ignore[reportMissingImports]

    missing = [name for module, name in _CPU_PACKAGES.items() if find_spec(module) is None]
    missing += [name for name in _CPU_TOOLS if shutil.which(name) is None]
    if missing:
        raise Refusal(
            f"{', '.join(missing)} must be there for the init CPU {cpu}, and isn't: "
            f"pip install {' '.join(missing)}"
        )
    compilers = [f"{triple}-gcc" for triple in CPUS[cpu].gcc_triple]
    if not any(shutil.which(compiler) for compiler in compilers):
        raise Refusal(
            f"riscv64-unknown-elf-gcc, or another C compiler for RISC-V, must be in PATH for the "
            f"init CPU {cpu}, and isn't; on Debian and Ubuntu: apt install gcc-riscv64-unknown-elf"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
