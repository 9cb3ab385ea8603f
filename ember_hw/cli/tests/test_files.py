from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from ember_hw.cli.files import check_output, load_model, read_arrays, read_config
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import CompileError


def test_config_comes_from_a_file(tmp_path: Path) -> None:
    config = AcceleratorConfig.preset("tiny")
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(config.to_dict()))
    assert read_config(str(path)) == config


def test_config_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text("data_width_bits = 64")
    expected = f"config file {path} must be JSON, not text with: "
    with pytest.raises(ValueError, match=re.escape(expected) + r"Expecting value: .*$"):
        read_config(str(path))


def test_model_that_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    def refusal(model: str) -> str:
        with pytest.raises((ValueError, CompileError)) as error:
            load_model(model)
        return str(error.value)

    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text("bag = 1\n")
    bad.write_text("1 / 0\n")
    assert refusal("model.py") == "model must be FILE.py:NAME, not 'model.py'"
    assert refusal("no.py:bag") == "model must name a file that exists, not 'no.py'"
    assert refusal(f"{good}:bug") == f"{good} must define 'bug'; it defines bag"
    assert refusal(f"{bad}:bag") == (
        f"{bad} must run without an exception, not end with ZeroDivisionError: division by zero"
    )


def test_inputs_that_are_no_npz_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "inputs.npy"
    np.save(path, np.arange(3))
    expected = f"inputs must be an .npz file, as numpy.savez writes it, not {str(path)!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        read_arrays(path)


def test_file_that_may_not_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.json"
    check_output(path)
    monkeypatch.setattr(os, "access", lambda target, mode: (target, mode) != (tmp_path, os.W_OK))
    expected = f"output must be a file that may be written, not {str(path)!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        check_output(path)
    path.touch()
    check_output(path)  # one that exists may be written in a folder that may not
