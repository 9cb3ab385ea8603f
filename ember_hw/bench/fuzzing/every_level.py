"""One operation at every level of the compiler and on every backend, bit for bit the same.

The answer is the binding's exact reference in NumPy. Held against it: the scf function, the IR
after each pass at each opt level, the access program and the microcode in their interpreters, and
the device: interpreter with the execute side in C and in NumPy, and the simulated unit.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ember_hw.compiler.backend.assemble import Assembly
from ember_hw.compiler.build import Spec, build
from ember_hw.compiler.dialects.au import ProgramOp
from ember_hw.compiler.element_dtypes import tensor_array
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import OPT_LEVELS
from ember_hw.compiler.self_check import LevelCheck
from ember_hw.compiler.transforms.ir_facts import argument_symbols
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import AssemblyError, CheckError
from ember_hw.host.bindings import binding_of
from ember_hw.host.device import open_device
from ember_hw.host.reference import bit_equal

#: Room for every op class, and as little of everything else as still runs it. Tests that simulate
#: programs of several classes share its model.
UNIT = AcceleratorConfig.preset("tiny").with_changes(
    name="classes",
    traversal_units=4,
    streams_per_unit=4,
    row_entries=6,
    exports=10,
    bundle_scalars=8,
)
#: IR levels below scf that are run.
_LOWER_LEVELS = {"slc", "slcvec", "dlc"}
#: What every run is made on; the simulated unit comes last, where it is wanted.
INTERPRETERS = {
    "interpreter with C": ("interpreter", {"engine": "c"}),
    "interpreter with NumPy": ("interpreter", {"engine": "numpy"}),
}
RTL = {"verilator": ("verilator", {"optimise": False})}


class Runs(Protocol):
    """What runs a program: a `Device`."""

    def run(self, program: Any, inputs: Any) -> Any:
        """Return what a program makes of a user's inputs."""
        ...


@dataclass
class Comparison:
    """
    What came of the calls of one operation.

    Attributes
    ----------
    answers : int
        Runs that were held against the reference, by what ran.
    refused : tally of str
        Opt levels that have no program for the unit, with the reason.
    failures : list of str
        What was wrong, with opt level and number of the call.
    """

    answers: Tally[str] = field(default_factory=Tally[str])
    refused: Tally[str] = field(default_factory=Tally[str])
    failures: list[str] = field(default_factory=list[str])

    def add(self, other: Comparison) -> None:
        """Count what another one counted."""
        self.answers += other.answers
        self.refused += other.refused
        self.failures += other.failures


class Devices:
    """
    Devices that all run the same calls; a context, which closes them.

    Parameters
    ----------
    config : AcceleratorConfig
        Of all.
    backends : mapping of str to (str, mapping)
        Backend and options of each, by the name that failures call it.
    """

    def __init__(
        self, config: AcceleratorConfig, backends: Mapping[str, tuple[str, Mapping[str, Any]]]
    ) -> None:
        self._stack = ExitStack()
        self.devices: dict[str, Runs] = {
            name: self._stack.enter_context(open_device(backend, config=config, **options))
            for name, (backend, options) in backends.items()
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def hold(
        self,
        program: Any,
        calls: Sequence[Any],
        expected: Sequence[NDArray[Any]],
        opt_level: int,
        found: Comparison,
    ) -> None:
        """Run each call on every device; note in `found` which answers aren't the expected ones."""
        for number, (call, wanted) in enumerate(zip(calls, expected, strict=True)):
            for name, device in self.devices.items():
                found.answers[name] += 1
                answer = device.run(program, call)
                is_tensor = isinstance(answer, torch.Tensor)
                array = tensor_array(answer) if is_tensor else np.asarray(answer)
                if not bit_equal(array, wanted):
                    found.failures.append(
                        f"opt_level {opt_level}, call {number}: {name} must give the bits of the "
                        "exact reference, not others"
                    )


class EveryLevel(Devices):
    """
    Compares at every level, too.

    Parameters
    ----------
    rtl : bool
        Whether the simulated unit takes part.
    """

    def __init__(self, *, rtl: bool) -> None:
        super().__init__(UNIT, {**INTERPRETERS, **(RTL if rtl else {})})

    def compare(
        self,
        module: ModuleOp,
        spec: Spec,
        calls: Sequence[Any],
        *,
        long_calls: Sequence[Any] = (),
        opt_levels: Iterable[int] = OPT_LEVELS,
    ) -> Comparison:
        """
        Run calls of one operation everywhere.

        Parameters
        ----------
        module : ModuleOp
            Its scf, which stays as it is.
        spec : Spec
            What belongs to it.
        calls : sequence
            Inputs, as `Device.run` takes them.
        long_calls : sequence
            More of them, for which a run after each pass would take too long: of each IR level the
            last text is run.
        opt_levels : iterable of int
            Levels to compile at.
        """
        found = Comparison()
        program: Any = SimpleNamespace(
            name="operation", model={"kind": spec.kind, **spec.model()}, tables=spec.tables()
        )
        every_call = [*calls, *long_calls]
        binding = binding_of(program)
        expected = [np.asarray(binding.reference(program, call)) for call in every_call]
        checks = _checks_of(module, program, every_call, expected, found)
        if found.failures:
            return found
        for opt_level in opt_levels:
            check = _Checks(checks, len(calls), found)
            try:
                program = build(
                    module.clone(),
                    spec,
                    opt_level=opt_level,
                    config=UNIT,
                    may_leave_loops=True,
                    check=check,
                )
                check.check_levels(program.ir)
            except AssemblyError as error:
                found.refused[f"opt_level {opt_level}: {error}"] += 1
                continue
            except CheckError as error:
                found.failures.append(f"opt_level {opt_level}, call {check.call}: {error}")
                continue
            self.hold(program, every_call, expected, opt_level, found)
        return found


class _Checks:
    """The checks of many calls as one; `call` is the number of the latest.

    After a pass the first calls are run, so many as `short` says; at the end of a level the others.
    """

    def __init__(self, checks: Sequence[LevelCheck], short: int, found: Comparison) -> None:
        self._checks = checks
        self._short = short
        self._answers = found.answers
        self.call = 0

    def check(self, name: str, module: ModuleOp) -> None:
        for self.call, check in enumerate(self._checks[: self._short]):
            self._answers["IR after a pass"] += 1
            check.check(name, module)

    def check_levels(self, ir: Mapping[str, str]) -> None:
        for level in _LOWER_LEVELS & ir.keys() if self._checks[self._short :] else ():
            module = parse_module(ir[level], level)
            for self.call, check in enumerate(self._checks[self._short :], self._short):
                self._answers[level] += 1
                check.check(level, module)

    def check_au(self, programs: Sequence[ProgramOp], module: ModuleOp) -> None:
        for self.call, check in enumerate(self._checks):
            self._answers["access program"] += 1
            check.check_au(programs, module)

    def check_microcode(self, assemblies: Sequence[Assembly], module: ModuleOp) -> None:
        for self.call, check in enumerate(self._checks):
            self._answers["microcode"] += 1
            check.check_microcode(assemblies, module)


def _checks_of(
    module: ModuleOp,
    program: Any,
    calls: Sequence[Any],
    expected: Sequence[NDArray[Any]],
    found: Comparison,
) -> list[LevelCheck]:
    """Return what must hold after each pass for each call: what scf does, which gives the answer.

    `program` has a name, a model and tables.
    """
    binding = binding_of(program)
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    symbols = list(argument_symbols(function).values())
    checks: list[LevelCheck] = []
    for number, call in enumerate(calls):
        request = binding.request(program, call)
        outputs: Mapping[str, NDArray[Any]] = {
            symbol: np.full(output.shape, output.fill, np.float32)
            for symbol, output in request.outputs.items()
        }
        given = {**program.tables, **request.arrays, **request.scalars, **outputs}
        arguments = {symbol: given[symbol] for symbol in symbols}
        check = LevelCheck(module, arguments, tables=program.tables)
        checks.append(check)
        found.answers["scf"] += 1
        result = request.finish({symbol: check.expected[symbol] for symbol in outputs})
        if not bit_equal(np.asarray(result), expected[number]):
            found.failures.append(
                f"call {number}: scf must give the bits of the exact reference, not others"
            )
    return checks
