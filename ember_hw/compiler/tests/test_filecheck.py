# pyright: basic
"""Runs the IR text tests of `filecheck/` under pytest."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_ir_text_files_pass_under_lit(tmp_path):
    folder = Path(__file__).parent / "filecheck"
    lit = Path(sys.executable).parent / "lit"
    command = [str(lit), "-v", "--param", f"exec_root={tmp_path}", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert result.returncode == 0, result.stdout + result.stderr
