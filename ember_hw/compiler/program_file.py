"""The program file: one zip archive of JSON, microcode words, IR text and arrays; never a pickle.

| member | content |
| --- | --- |
| `manifest.json` | versions, config, arguments, patches and code of each nest, model, digests |
| `microcode/<nest>.bin` | the 32-bit words of each nest, little-endian |
| `microcode/<nest>.host.bin` | those of the host's walk, where a reduce unit takes the rows |
| `ir/<level>.mlir` | IR text |
| `tables/<symbol>.npy` | weights |
| `tables/<symbol>.bf16.npy` | weights of bfloat16, which .npy has no name for, as uint16 |

The manifest holds the SHA-256 of each member, the archive's comment that of the manifest. The same
program gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zipfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.backend.execute_code import ExecuteCode
from ember_hw.compiler.element_dtypes import BFLOAT16
from ember_hw.compiler.nest import FabricPart, ResultRow, replay_config
from ember_hw.compiler.program import Argument, Callback, Nest, Operand, Patch, Program
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import AssemblyError, ProgramError
from ember_hw.isa import ISA_VERSION, Event, Microcode

FORMAT = "ember_hw program"
#: Raised by every change to the manifest.
FORMAT_VERSION = 3

_MANIFEST = "manifest.json"
_DATE = (1980, 1, 1, 0, 0, 0)
_BLOCK_BYTES = 1 << 20


class _HashingWriter:
    """Passes writes on and keeps their digest."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._target.write(data)


def save(program: Program, path: str | Path) -> None:
    """Write a program to one file; a file of that name is replaced once the new one is complete."""
    path = Path(path)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            digests: dict[str, str] = {}
            texts: dict[str, bytes] = {}
            for number, nest in enumerate(program.nests):
                texts[_microcode(number)] = _packed(nest)
                if nest.fabric is not None:
                    texts[_host_microcode(number)] = _packed(nest.fabric.host)
            texts |= {f"ir/{level}.mlir": text.encode() for level, text in program.ir.items()}
            for name, data in texts.items():
                archive.writestr(_member(name), data, zipfile.ZIP_DEFLATED)
                digests[name] = hashlib.sha256(data).hexdigest()
            for symbol, table in program.tables.items():
                name, stored = _stored(symbol, table)
                # Stored, not deflated: weights hardly shrink.
                with archive.open(_member(name), "w", force_zip64=True) as member:
                    writer = _HashingWriter(member)
                    np.lib.format.write_array(
                        cast(IO[bytes], writer), np.ascontiguousarray(stored), allow_pickle=False
                    )
                digests[name] = writer.digest.hexdigest()
            manifest = json.dumps(_manifest(program, digests), indent=1, sort_keys=True).encode()
            archive.writestr(_member(_MANIFEST), manifest, zipfile.ZIP_DEFLATED)
            archive.comment = hashlib.sha256(manifest).hexdigest().encode()
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def load(path: str | Path, config: AcceleratorConfig | None = None) -> Program:
    """Read a program from a file; `config` is that of the device it shall run on.

    Raises
    ------
    ProgramError
        The file is damaged, was made for another ISA version, or for another config than the one
        given.
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = _read_manifest(archive, path)
            _check_versions(manifest, path, config)
            return _read(archive, manifest, path)
    except (zipfile.BadZipFile, EOFError, zipfile.LargeZipFile) as error:
        raise ProgramError(
            f"program file {str(path)!r} must be a complete zip archive: {error}"
        ) from error


def _member(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, _DATE)


def _microcode(number: int) -> str:
    return f"microcode/{number}.bin"


def _host_microcode(number: int) -> str:
    return f"microcode/{number}.host.bin"


def _packed(nest: Nest) -> bytes:
    words = nest.microcode.encode()
    return struct.pack(f"<{len(words)}I", *words)


def _manifest(program: Program, digests: dict[str, str]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "isa_version": ISA_VERSION,
        "config": program.config.to_dict(),
        "config_hash": program.config.hash(),
        "name": program.name,
        "opt_level": program.opt_level,
        "arguments": [asdict(argument) for argument in program.arguments],
        "host_code": program.host_code and program.host_code.to_json(),
        "nests": [_nest_to_json(nest) for nest in program.nests],
        "ir": list(program.ir),
        "model": dict(program.model),
        "tables": list(program.tables),
        "seed": program.seed,
        "versions": dict(program.versions),
        "sha256": digests,
    }


def _nest_to_json(nest: Nest) -> dict[str, Any]:
    return {
        "name": nest.name,
        "patches": [asdict(patch) for patch in nest.patches],
        "registers": dict(nest.registers),
        "callbacks": [_callback_to_json(callback) for callback in nest.callbacks],
        "code": nest.code and nest.code.to_json(),
        "fabric": nest.fabric and _fabric_to_json(nest.fabric),
        "reason": nest.reason,
    }


def _fabric_to_json(part: FabricPart) -> dict[str, Any]:
    return {
        "operation": part.operation,
        "host": _nest_to_json(part.host),
        "results": [asdict(result) for result in part.results],
        "begins": {symbol: str(value) for symbol, value in part.begins.items()},
        "turned": dict(part.turned),
    }


def _read_nest(
    archive: zipfile.ZipFile, number: int, values: dict[str, Any], config: AcceleratorConfig
) -> Nest:
    nest = _nest_from_json(values, archive.read(_microcode(number)), config)
    fabric = values["fabric"]
    if fabric is None:
        return nest
    data = archive.read(_host_microcode(number))
    part = FabricPart(
        operation=fabric["operation"],
        host=_nest_from_json(fabric["host"], data, replay_config(config)),
        results=tuple(ResultRow(**result) for result in fabric["results"]),
        begins={symbol: float(value) for symbol, value in fabric["begins"].items()},
        turned=fabric["turned"],
    )
    return replace(nest, fabric=part)


def _nest_from_json(values: dict[str, Any], data: bytes, config: AcceleratorConfig) -> Nest:
    words = list(struct.unpack(f"<{len(data) // 4}I", data))
    return Nest(
        name=values["name"],
        microcode=Microcode.decode(words, config),
        patches=tuple(Patch(**patch) for patch in values["patches"]),
        registers=values["registers"],
        callbacks=tuple(_callback_from_json(callback) for callback in values["callbacks"]),
        code=_code_from_json(values["code"]),
        reason=values["reason"],
    )


def _code_from_json(values: Any) -> ExecuteCode | None:
    try:
        return None if values is None else ExecuteCode.from_json(values)
    except ProgramError as error:
        raise ValueError(str(error)) from error  # `_read` says of which file


def _argument_from_json(values: dict[str, Any]) -> Argument:
    symbol, type_, role, shape = (values[key] for key in ("symbol", "type", "role", "shape"))
    return Argument(symbol, type_, role, tuple(shape))


def _callback_to_json(callback: Callback) -> dict[str, Any]:
    return {
        "id": callback.id,
        "level": callback.level,
        "event": callback.event.name.lower(),
        "operands": [asdict(operand) for operand in callback.operands],
    }


def _callback_from_json(values: dict[str, Any]) -> Callback:
    return Callback(
        id=values["id"],
        level=values["level"],
        event=Event[values["event"].upper()],
        operands=tuple(Operand(**operand) for operand in values["operands"]),
    )


def _read_manifest(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    if _MANIFEST not in archive.namelist():
        raise ProgramError(f"program file {str(path)!r} must hold {_MANIFEST}; it does not")
    data = archive.read(_MANIFEST)
    if hashlib.sha256(data).hexdigest().encode() != archive.comment:
        raise ProgramError(
            f"{_MANIFEST} of program file {str(path)!r} must have the digest that the file states; "
            "it was changed"
        )
    return cast("dict[str, Any]", json.loads(data))


def _check_versions(manifest: dict[str, Any], path: Path, config: AcceleratorConfig | None) -> None:
    if (manifest["format"], manifest["format_version"]) != (FORMAT, FORMAT_VERSION):
        raise ProgramError(
            f"format of program file {str(path)!r} must be {FORMAT!r} version {FORMAT_VERSION}, "
            f"not {manifest['format']!r} version {manifest['format_version']!r}: compile again"
        )
    if manifest["isa_version"] != ISA_VERSION:
        raise ProgramError(
            f"ISA version of program file {str(path)!r} must be {ISA_VERSION}, "
            f"not {manifest['isa_version']!r}: compile again"
        )
    stored = manifest["config_hash"]
    if config is not None and config.hash() != stored:
        raise ProgramError(
            f"config of program file {str(path)!r} must be {config.name!r} "
            f"(hash {config.hash():#010x}), not {manifest['config']['name']!r} "
            f"(hash {stored:#010x}): compile for the device's config"
        )


def _read(archive: zipfile.ZipFile, manifest: dict[str, Any], path: Path) -> Program:
    digests: dict[str, str] = manifest["sha256"]
    for name, digest in digests.items():
        _check_digest(archive, name, digest, path)
    try:
        config = AcceleratorConfig.from_dict(manifest["config"])
        if config.hash() != manifest["config_hash"]:
            raise ProgramError(
                f"config of program file {str(path)!r} must have hash "
                f"{manifest['config_hash']:#010x}, not {config.hash():#010x}: compile again"
            )
        return Program(
            name=manifest["name"],
            config=config,
            opt_level=manifest["opt_level"],
            nests=tuple(
                _read_nest(archive, number, values, config)
                for number, values in enumerate(manifest["nests"])
            ),
            arguments=tuple(_argument_from_json(values) for values in manifest["arguments"]),
            host_code=_code_from_json(manifest["host_code"]),
            ir={level: archive.read(f"ir/{level}.mlir").decode() for level in manifest["ir"]},
            model=manifest["model"],
            tables={name: _read_table(archive, name) for name in manifest["tables"]},
            seed=manifest["seed"],
            versions=manifest["versions"],
        )
    except (KeyError, TypeError, ValueError, AssemblyError, struct.error) as error:
        raise ProgramError(
            f"program file {str(path)!r} must hold a legal program: {error}"
        ) from error


def _check_digest(archive: zipfile.ZipFile, name: str, digest: str, path: Path) -> None:
    if name not in archive.namelist():
        raise ProgramError(f"program file {str(path)!r} must hold {name}; it does not")
    found = hashlib.sha256()
    with archive.open(name) as member:
        while block := member.read(_BLOCK_BYTES):
            found.update(block)
    if found.hexdigest() != digest:
        raise ProgramError(
            f"{name} of program file {str(path)!r} must have the digest that the manifest states; "
            "it was changed"
        )


def _read_table(archive: zipfile.ZipFile, symbol: str) -> NDArray[Any]:
    name = _bfloat16_name(symbol)
    is_bfloat16 = name in archive.namelist()
    with archive.open(name if is_bfloat16 else f"tables/{symbol}.npy") as member:
        table: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
    return table.view(BFLOAT16) if is_bfloat16 else table


def _bfloat16_name(symbol: str) -> str:
    return f"tables/{symbol}.bf16.npy"


def _stored(symbol: str, table: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """Return the member that a table is written to, and what is written."""
    if table.dtype == BFLOAT16:
        return _bfloat16_name(symbol), table.view(np.uint16)
    return f"tables/{symbol}.npy", table
