"""`ember-hw`: the command line.

Each command imports what it needs when it runs, so that `--help` and errors of usage come at once.
Results go to standard output, progress and errors to standard error. The order of the imports below
is that of the commands in `--help`.
"""

from ember_hw.cli import first_steps, programs, report, hardware, boards, bench  # isort: skip
from ember_hw.cli.application import app, main, sentence

__all__ = [
    "app",
    "bench",
    "boards",
    "first_steps",
    "hardware",
    "main",
    "programs",
    "report",
    "sentence",
]
