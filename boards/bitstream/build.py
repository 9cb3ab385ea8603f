"""Builds a board's gateware: bitstream and report.

Each step's result is kept in the cache under all that it depends on, so a build that is repeated,
or that goes on after a failure, starts where there is something new.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import ember_hw.isa
from ember_hw.boards.bitstream.fit import (
    Usage,
    check_fit,
    count_resources,
    routed_resources,
)
from ember_hw.boards.bitstream.target import BoardTarget
from ember_hw.boards.bitstream.timing import check_timing, read_clocks
from ember_hw.boards.bitstream.tools import content_key, find_tool, run_tool, tool_version
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import ToolError
from ember_hw.isa import ISA_VERSION
from ember_hw.sim.cache import build_once, cache_folder

TOP = "top"
BITSTREAM_NAME, REPORT_NAME = "top.bit", "report.json"
#: Version of report.json.
SCHEMA = 1
_NEEDED_FOR, _EXTRA = "ember-hw build", "boards"
_PACKAGE = Path(ember_hw.isa.__file__).resolve().parent.parent
#: What the gateware is made of, beside its config; and folders in there that it isn't made of.
_SOURCES = ("rtl", "isa", "boards", "config.py", "registers.py")
_NOT_SOURCES = {"tests", "host", "simulated", "ip_package"}
_RESOURCES_SHOWN = ("LUT", "FF", "EBR", "DSP")

_SYNTHESIS = f"synth_ecp5 -top {TOP}; write_json {TOP}.json"
#: nextpnr's own choice for an ECP5, `heap` and `router1`, takes some three times as long for a
#: design of this size.
_ROUTE = ("--placer", "static", "--router", "router2", "--timing-allow-fail")


class Watcher(Protocol):
    """Who is told how far a build is; `ember_hw.cli.progress.Steps` is one."""

    def __call__(self, text: str) -> None:
        """Take note that a step begins."""

    def detail(self, text: str) -> None:
        """Take note of what the step does next."""


@dataclass(frozen=True, kw_only=True)
class Gateware:
    """What a build made.

    Attributes
    ----------
    folder : Path
        Holds the bitstream and the report.
    report : dict
        Content of `report.json`.
    """

    folder: Path
    report: Mapping[str, Any]

    @property
    def bitstream(self) -> Path:
        """The bitstream."""
        return self.folder / BITSTREAM_NAME


def build(
    target: BoardTarget,
    output: Path,
    *,
    config: AcceleratorConfig | None = None,
    memory: str | None = None,
    seed: int = 1,
    watcher: Watcher,
) -> Gateware:
    """Build a board's gateware into a folder.

    The same target, config, memory, seed, sources and tools give the same bits.

    Parameters
    ----------
    target : BoardTarget
    output : Path
        Folder for ``top.bit`` and ``report.json``; it is made.
    config : AcceleratorConfig, optional
        The target's own, if there is nothing to say.
    memory : str, optional
        A key of the target's memories; its first, if there is nothing to say.
    seed : int
        Of the placer.
    watcher : Watcher

    Raises
    ------
    ToolError
        A tool is missing or fails, the design doesn't fit, or a clock is too slow. The report is
        written in the last case, but no bitstream.
    ValueError
        The target has no such memory, or the config isn't one for it.
    """
    config = config or target.config
    memory = memory or next(iter(target.memories))
    tools = _Tools.find(target.packages)
    gateware_id = gateware_id_of(target, config, memory, seed, tools.versions)
    description = target.describe(config, memory, gateware_id)
    seconds: dict[str, float] = {}

    def step(name: str, text: str) -> _Timer:
        watcher(text)
        return _Timer(seconds, name)

    base = cache_folder() / "boards"
    key = content_key(
        str(gateware_id), target.name, json.dumps(config.to_dict()), memory, str(seed)
    )
    with step("elaboration", "elaborating Amaranth"):
        sources = build_once(
            base / f"rtl-{key}", lambda draft: _elaborate(draft, target, description, memory)
        )
    with step("synthesis", "synthesis (yosys)"):
        files = sorted(sources.iterdir())
        key = content_key(
            *(text for path in files for text in (path.name, path.read_text())), _SYNTHESIS
        )
        netlist = build_once(
            base / f"netlist-{key}",
            lambda draft: tools.synthesise(draft, sources, watcher.detail),
        )
        usage = count_resources(
            json.loads((netlist / f"{TOP}.json").read_text()), TOP, target.device
        )
        check_fit(usage, config, target.device, memory=description.memory)
        watcher.detail(", ".join(f"{one.used:,} {name}" for name, one in usage.items()))
    with step("route", "place and route (nextpnr)"):
        key = content_key(
            netlist.name, tools.versions["nextpnr"], *target.device.nextpnr, *_ROUTE, str(seed)
        )
        routed = build_once(
            base / f"route-{key}",
            lambda draft: tools.route(draft, sources, netlist, target, seed, watcher.detail),
        )
    route_report = json.loads((routed / "report.json").read_text())
    usage = routed_resources(route_report, target.device)
    clocks = read_clocks(route_report, target.clock_mhz)
    report = {
        "schema": SCHEMA,
        "board": target.name,
        "device": target.device.name,
        "memory": memory,
        "config": config.to_dict(),
        "config_hash": f"{config.hash():08x}",
        "isa_version": ISA_VERSION,
        "gateware_id": f"{gateware_id:08x}",
        "seed": seed,
        "tools": tools.versions,
        "resources": _resources(usage),
        "clocks": {
            name: {
                "fmax_mhz": one.fmax_mhz,
                "target_mhz": one.target_mhz,
                "critical_path": list(one.critical_path),
            }
            for name, one in clocks.items()
        },
        "seconds": seconds,
    }
    output.mkdir(parents=True, exist_ok=True)
    (output / BITSTREAM_NAME).unlink(missing_ok=True)
    try:
        check_fit(usage, config, target.device, memory=description.memory)
        check_timing(clocks, seed)
        with step("pack", "bitstream (ecppack)"):
            packed = build_once(
                base / f"bits-{content_key(routed.name, tools.versions['ecppack'])}",
                lambda draft: tools.pack(draft, routed, watcher.detail),
            )
            shutil.copy(packed / BITSTREAM_NAME, output)
        bits = (output / BITSTREAM_NAME).read_bytes()
        report["bitstream"] = {
            "file": BITSTREAM_NAME,
            "bytes": len(bits),
            "sha256": sha256(bits).hexdigest(),
        }
    finally:
        (output / REPORT_NAME).write_text(json.dumps(report, indent=2) + "\n")
    return Gateware(folder=output, report=report)


def gateware_id_of(
    target: BoardTarget,
    config: AcceleratorConfig,
    memory: str,
    seed: int,
    versions: Mapping[str, str],
) -> int:
    """Return 32 bits that depend on everything that the bits of a gateware do.

    Parameters
    ----------
    target, config, memory, seed
        See `build`.
    versions : mapping of str to str
        Of the tools.
    """
    digest = sha256()
    for name in _SOURCES:
        top = _PACKAGE / name
        files = [top] if top.is_file() else sorted(top.rglob("*.py"))
        for path in files:
            inside = path.relative_to(_PACKAGE)
            if not _NOT_SOURCES.intersection(inside.parts):
                digest.update(f"{inside}\0".encode())
                digest.update(sha256(path.read_bytes()).digest())
    facts = [target.name, config.to_dict(), memory, seed, dict(versions)]
    digest.update(json.dumps(facts, sort_keys=True).encode())
    return int.from_bytes(digest.digest()[:4], "big")


def _resources(usage: Mapping[str, Usage]) -> dict[str, dict[str, float]]:
    return {
        name: {
            "used": usage[name].used,
            "available": usage[name].available,
            "share": round(usage[name].share, 4),
        }
        for name in _RESOURCES_SHOWN
    }


def _elaborate(draft: Path, target: BoardTarget, description: Any, memory: str) -> None:
    """Write RTLIL, pin constraints, and the design's further files: no paths of this machine."""
    try:
        platform = target.platform()
    except ModuleNotFoundError as error:
        raise ToolError(
            f"{error.name} must be there for `{_NEEDED_FOR}`, and isn't: "
            f"pip install 'ember-hw[{_EXTRA}]'"
        ) from error
    plan = platform.prepare(target.top(description, memory), TOP, emit_src=False)
    for name in (f"{TOP}.il", f"{TOP}.lpf", *platform.extra_files):
        content = plan.files[name]
        (draft / name).write_bytes(content if isinstance(content, bytes) else content.encode())


class _Timer:
    """Notes how long a step took."""

    def __init__(self, seconds: dict[str, float], name: str) -> None:
        self._seconds = seconds
        self._name = name

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._seconds[self._name] = round(time.monotonic() - self._began, 1)


@dataclass(frozen=True)
class _Tools:
    """The commands, and what they say of their versions."""

    yosys: str
    nextpnr: str
    ecppack: str
    versions: Mapping[str, str]

    @staticmethod
    def find(packages: tuple[str, ...]) -> _Tools:
        def tool(name: str) -> str:
            return find_tool(f"yowasp-{name}", name, needed_for=_NEEDED_FOR, extra=_EXTRA)

        yosys, nextpnr, ecppack = tool("yosys"), tool("nextpnr-ecp5"), tool("ecppack")
        versions = {
            "yosys": tool_version(yosys, "-V"),
            "nextpnr": tool_version(nextpnr, "--version"),
            "ecppack": tool_version(ecppack, "--version"),
        }
        for package in ("amaranth", "amaranth-boards", *packages):
            try:
                versions[package] = version(package)
            except PackageNotFoundError:
                versions[package] = "not installed"
        return _Tools(yosys, nextpnr, ecppack, versions)

    def synthesise(self, draft: Path, sources: Path, progress: Callable[[str], None]) -> None:
        files = [path for path in sorted(sources.iterdir()) if path.suffix != ".lpf"]
        for path in files:
            shutil.copy(path, draft)
        reads = [f"read_verilog {path.name}" for path in files if path.suffix == ".v"]
        script = "; ".join([f"read_rtlil {TOP}.il", *reads, _SYNTHESIS])
        command = [self.yosys, "-q", "-l", "yosys.log", "-p", script]
        run_tool(command, draft, "yosys.log", progress)
        for path in files:
            (draft / path.name).unlink()

    def route(
        self,
        draft: Path,
        sources: Path,
        netlist: Path,
        target: BoardTarget,
        seed: int,
        progress: Callable[[str], None],
    ) -> None:
        shutil.copy(sources / f"{TOP}.lpf", draft)
        shutil.copy(netlist / f"{TOP}.json", draft)
        command = [
            *(self.nextpnr, *target.device.nextpnr, *_ROUTE, "--seed", str(seed)),
            *("--json", f"{TOP}.json", "--lpf", f"{TOP}.lpf", "--textcfg", f"{TOP}.config"),
            *("--report", "report.json", "-q", "-l", "nextpnr.log"),
        ]
        run_tool(command, draft, "nextpnr.log", progress)
        (draft / f"{TOP}.json").unlink()

    def pack(self, draft: Path, routed: Path, progress: Callable[[str], None]) -> None:
        shutil.copy(routed / f"{TOP}.config", draft)
        command = [
            *(self.ecppack, "--compress", "--input", f"{TOP}.config"),
            *("--bit", BITSTREAM_NAME),
        ]
        run_tool(command, draft, "no log", progress)
        (draft / f"{TOP}.config").unlink()
