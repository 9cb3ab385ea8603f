"""
The meaning of each level of IR and of the microcode, in Python and NumPy.

`interpret` runs a function at any level above `au`; `run_au` runs access-unit text against the
compute loop of its dlc module. They are the oracle of the passes, made for small inputs.
"""

from ember_hw.compiler.interpreters.au import run_au
from ember_hw.compiler.interpreters.function import InterpreterResult, interpret
from ember_hw.compiler.interpreters.queues import Counts, Schedule

__all__ = ["Counts", "InterpreterResult", "Schedule", "interpret", "run_au"]
