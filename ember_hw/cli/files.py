"""The files that commands read: configs, models, arrays."""

from __future__ import annotations

import json
import os
import runpy
import sys
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ember_hw.errors import CompileError

if TYPE_CHECKING:
    from ember_hw.config import AcceleratorConfig
    from ember_hw.host.report import Report


def read_config(name: str) -> AcceleratorConfig:
    """Return the preset of that name, or the config in the JSON file of that path."""
    from ember_hw.config import AcceleratorConfig

    path = Path(name)
    if path.suffix == ".json":
        return AcceleratorConfig.from_dict(_read_object(path, "config file"))
    return AcceleratorConfig.preset(name)


def load_model(model: str, seed: int | None = None) -> tuple[Any, Any]:
    """Run FILE.py and return what NAME is there, and its `example_inputs` (None without).

    Parameters
    ----------
    model : str
        FILE.py:NAME.
    seed : int, optional
        Seed of torch's random numbers for the file.

    Raises
    ------
    ValueError
        `model` isn't FILE.py:NAME, or the file has no such name.
    CompileError
        The file raises an exception.
    """
    file, colon, name = model.rpartition(":")
    if not colon or not name.isidentifier():
        raise ValueError(f"model must be FILE.py:NAME, not {model!r}")
    if not Path(file).is_file():
        raise ValueError(f"model must name a file that exists, not {file!r}")
    if seed is not None:
        import torch

        torch.manual_seed(seed)
    sys.path.insert(0, str(Path(file).resolve().parent))  # as `python FILE.py` does
    try:
        names = runpy.run_path(file)
    except Exception as error:
        raise CompileError(
            f"{file} must run without an exception, not end with {type(error).__name__}: {error}"
        ) from error
    if name not in names:
        known = [one for one in names if not one.startswith("_")]
        raise ValueError(f"{file} must define {name!r}; it defines {', '.join(known) or 'nothing'}")
    return names[name], names.get("example_inputs")


def read_text(file: str) -> str:
    """Return the text of a file.

    Raises
    ------
    ValueError
        There is no such file.
    """
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"model must name a file that exists, not {file!r}")
    return read_utf8(path)


def read_utf8(path: Path) -> str:
    """Return the text of a file.

    Raises
    ------
    ValueError
        Its bytes are no UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be text in UTF-8, not bytes with: {error}") from None


def check_output(path: Path) -> None:
    """Refuse a file that can't be written, before there is something to write.

    Raises
    ------
    ValueError
        It is a folder, or its folder doesn't exist or can't be written.
    """
    if path.is_dir():
        raise ValueError(f"output must be a file, not the folder {str(path)!r}")
    if not path.parent.is_dir():
        raise ValueError(f"output must go to a folder that exists, not {str(path.parent)!r}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"output must be a file that may be written, not {str(path)!r}")


def read_arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of an .npz file by name, in their order.

    Raises
    ------
    ValueError
        The file is another one or damaged, or holds something else than arrays of numbers.
    """
    import numpy as np

    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"inputs must be an .npz file, as numpy.savez writes it, not {str(path)!r}"
        )
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: _array(arrays, name, path) for name in arrays.files}
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(
            f"inputs {path} must be a whole .npz file, not one with: {error}"
        ) from None


def _array(arrays: Any, name: str, path: Path) -> Any:
    try:
        array = arrays[name]
    except ValueError as error:  # Python objects, or a header that isn't numpy's
        raise ValueError(f"array {name!r} of {path} must hold numbers: {error}") from None
    if isinstance(array, bytes):  # what numpy returns for a file that isn't its own
        raise ValueError(f"array {name!r} of {path} must be one of numpy's, not other bytes")
    return array


def read_report(path: Path) -> Report:
    """Return the report in a JSON file.

    Raises
    ------
    ValueError
        The file is no JSON, or other JSON than a report.
    """
    from ember_hw.host.report import Report

    return Report.from_dict(_read_object(path, "report"))


def _read_object(path: Path, what: str) -> dict[str, Any]:
    """Return the JSON object in a file; `what` is the file in messages.

    Raises
    ------
    ValueError
        The file is no JSON, or other JSON than an object.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{what} {path} must be JSON, not text with: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{what} {path} must be a JSON object, not {type(values).__name__}")
    return values
