# pyright: basic, reportUndefinedVariable=false
# ruff: noqa: F821  (lit defines config)
"""Configuration of lit for the IR text tests; `test_filecheck.py` runs them under pytest."""

import os
import sys
from pathlib import Path

import lit.formats

here = Path(__file__).parent

config.name = "ember_hw IR text"
config.test_format = lit.formats.ShTest(False)
config.suffixes = [".mlir"]
config.test_source_root = str(here)
config.test_exec_root = str(Path(lit_config.params.get("exec_root", here)))
config.environment["PYTHONPATH"] = str(here.parents[3])
config.environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
config.substitutions.append(("%ember-opt", f"{sys.executable} -m ember_hw.compiler.ember_opt"))
