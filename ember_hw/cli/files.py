"""The files that commands read: configs, models, arrays."""

from __future__ import annotations

import json
import runpy
import sys
import zipfile
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
        try:
            return AcceleratorConfig.from_dict(json.loads(path.read_text()))
        except json.JSONDecodeError as error:
            raise ValueError(f"config file {name} must be JSON, not text with: {error}") from None
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
    return path.read_text()


def read_arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of an .npz file by name, in their order.

    Raises
    ------
    ValueError
        The file is another one, or holds Python objects.
    """
    import numpy as np

    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"inputs must be an .npz file, as numpy.savez writes it, not {str(path)!r}"
        )
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def read_report(path: Path) -> Report:
    """Return the report in a JSON file.

    Raises
    ------
    ValueError
        The file is no JSON, or other JSON than a report.
    """
    from ember_hw.host.report import Report

    try:
        values = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"report {path} must be JSON, not text with: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"report {path} must be a JSON object, not {type(values).__name__}")
    return Report.from_dict(values)
