"""Programs that the compiler makes of a case, and what their queues carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ember_hw.bench.workload import Workload
from ember_hw.bench.workloads.case import Case
from ember_hw.compiler.backend.lower import lower
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import run_pipeline, vector_length_of
from ember_hw.config import AcceleratorConfig

#: Opt levels whose rows come whole, in the order of the hand-written program's.
_WITH_ROWS = (2, 3)
_FUNCTION = "kernel"


@dataclass(frozen=True)
class Generated:
    """What the compiler makes of a case at one opt level.

    Attributes
    ----------
    case : Case
        The operation and its inputs.
    opt_level : int
        0 to 3.
    lanes : int
        Elements of a vector, and of a data entry from level 1 on.
    module : ModuleOp
        Its dlc.
    programs : tuple of str
        Text of each access program, in the order in which they run; none where the passes alone
        have lowered it.
    """

    case: Case
    opt_level: int
    lanes: int
    module: ModuleOp
    programs: tuple[str, ...]

    def workloads(self) -> list[Workload]:
        """Return each access program with the arrays that it reads."""
        case = self.case
        values = dict(case.values)
        for symbol, array in case.arrays.items():
            if array.ndim == 2:
                values[f"{symbol}.dim1"] = array.shape[1]
        has_rows = self.opt_level in _WITH_ROWS and len(self.programs) == 1
        return [
            Workload(
                name=f"{case.name}, level {self.opt_level}",
                text=text,
                arrays=case.arrays,
                values=values,
                index_bytes=sum(a.nbytes for a in case.arrays.values() if a.dtype == np.int32),
                rows=case.rows if has_rows else None,
                params=case.params,
            )
            for text in self.programs
        ]

    def traffic(self) -> Traffic:
        """Run the dlc on the case's inputs and count what goes through its queues."""
        case = self.case
        memory: dict[str, Any] = {symbol: array.copy() for symbol, array in case.arrays.items()}
        outputs = {s: np.zeros(shape, np.float32) for s, shape in case.outputs.items()}
        given = memory | outputs | dict(case.values)
        arguments = [given[name] for name in _argument_names(self.module)]
        lanes = self.lanes if self.opt_level else 1
        counts = interpret(self.module, _FUNCTION, arguments, vector_length=lanes).counts
        return Traffic(counts.tokens, counts.data_entries, outputs)


@dataclass(frozen=True)
class Traffic:
    """What a run of dlc gave.

    Attributes
    ----------
    tokens, entries : int
        Through the control queue and the data queue, before hardware packs them.
    outputs : mapping of str to array
        What the execute side wrote.
    """

    tokens: int
    entries: int
    outputs: Mapping[str, NDArray[np.float32]]


def generate(case: Case, opt_level: int, config: AcceleratorConfig) -> Generated:
    """Compile a case for an access unit.

    Raises
    ------
    CompileError
        A pass refuses the function, or an op has no form in the access unit.
    AssemblyError
        The program doesn't fit the config.
    """
    module = parse_module(case.text, f"{case.kernel}.mlir")
    lowered = lower(module, opt_level, config)
    programs = tuple(str(program) for program in lowered.programs)
    return Generated(case, opt_level, vector_length_of(config), module, programs)


def lower_alone(case: Case, opt_level: int, lanes: int) -> Generated:
    """Lower a case by the passes alone, whatever an access unit can hold.

    Raises
    ------
    CompileError
        A pass refuses the function.
    """
    module = parse_module(case.text, f"{case.kernel}.mlir")
    run_pipeline(module, opt_level, lanes)
    return Generated(case, opt_level, lanes, module, ())


def _argument_names(module: ModuleOp) -> Sequence[str]:
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    names: Any = function.attributes["ember.args"]
    return [name.data for name in names]
