"""From a module of scf to access programs that fit a config: every step, with its second choices.

What the access unit runs of a nest depends on its units. First every loop that can is offloaded. If
the units have no room for that, the execute side computes indices that it is sent; then, if the
caller accepts that, it runs the innermost loops as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ember_hw.compiler.backend.allocate import allocate_all
from ember_hw.compiler.backend.assemble import Assembly, assemble
from ember_hw.compiler.backend.element_types import (
    check_stream_elements,
    narrowest_float_bytes,
)
from ember_hw.compiler.backend.exports import LimitError
from ember_hw.compiler.backend.relays import add_relays
from ember_hw.compiler.backend.sink_loads import sink_loads
from ember_hw.compiler.dialects.au import ProgramOp
from ember_hw.compiler.pipeline import PipelineResult, run_pipeline, vector_length_of
from ember_hw.config import AcceleratorConfig


@dataclass(frozen=True)
class Lowered:
    """
    What became of a module.

    Parameters
    ----------
    result : PipelineResult
        Texts and decisions on the way to dlc.
    module : ModuleOp
        At dlc.
    function : FuncOp
        The module's function at dlc.
    programs : tuple of ProgramOp
        An access program for each compute loop of it, relays included.
    assemblies : tuple of Assembly
        Their microcode.
    """

    result: PipelineResult
    module: ModuleOp
    function: FuncOp
    programs: tuple[ProgramOp, ...]
    assemblies: tuple[Assembly, ...]


def lower(
    module: ModuleOp,
    opt_level: int,
    config: AcceleratorConfig,
    *,
    sizes: Mapping[str, Sequence[int]] | None = None,
    may_leave_loops: bool = False,
    stay: tuple[int, ...] = (),
    observe: Callable[[str, ModuleOp], None] | None = None,
    check: Callable[[Sequence[ProgramOp], ModuleOp], None] | None = None,
) -> Lowered:
    """
    Lower a module with one function to microcode for a config.

    Parameters
    ----------
    module : ModuleOp
        Verified scf; becomes dlc in place.
    opt_level : int
        0 to 3.
    config : AcceleratorConfig
        The access unit.
    sizes : mapping of str to sequence of int, optional
        As for `allocate`.
    may_leave_loops : bool
        Whether loops that the access unit could run may be left to the execute side, which then
        gathers what they read itself; the decisions say so.
    stay : tuple of int
        As for `sink-regular-loops`.
    observe : callable, optional
        As for `run_pipeline`.
    check : callable, optional
        Called with the access programs and the module at dlc before they are assembled.

    Raises
    ------
    CompileError
        A pass refuses the module, or an op has no form in the access unit.
    AssemblyError
        The program doesn't fit the config; the message names op and limit. If it is units that are
        missing, it is that of the program with every loop that can be offloaded, unless fewer units
        would do and something else is missing then.
    CheckError
        A pass broke a rule of the IR.
    UnsupportedError
        As `check_stream_elements`.
    """
    source = module.clone()
    lanes = vector_length_of(config, narrowest_float_bytes(module))
    errors: list[LimitError] = []
    for levels, recompute in _plans(opt_level, config, may_leave_loops):
        if errors:
            module.body.detach_block(module.body.block)
            module.body.add_block(source.clone().body.detach_block(0))
        result = run_pipeline(
            module,
            opt_level,
            lanes,
            hardware=True,
            levels=levels,
            recompute=recompute,
            stay=stay,
            observe=observe,
        )
        (function,) = (op for op in module.ops if isinstance(op, FuncOp))
        check_stream_elements(function, opt_level, result.remarks)
        try:
            programs = _programs(function, config, sizes)
            if check is not None:
                check(programs, module)
            assemblies = tuple(assemble(program, config) for program in programs)
        except LimitError as error:
            if not errors and error.limit != "traversal_units":
                raise
            errors.append(error)
            continue
        return Lowered(result, module, function, programs, assemblies)
    # Rather a limit that a config can do something about.
    raise next((error for error in errors if error.limit != "traversal_units"), errors[0])


def _programs(
    function: FuncOp, config: AcceleratorConfig, sizes: Mapping[str, Sequence[int]] | None
) -> tuple[ProgramOp, ...]:
    """Return the access programs of a function at dlc, with relays."""
    programs: list[ProgramOp] = []
    for program in allocate_all(function, config.name, sizes):
        program.verify()
        with_relays = add_relays(sink_loads(program, config), config)
        with_relays.verify()
        programs.append(with_relays)
    return tuple(programs)


def _plans(
    opt_level: int, config: AcceleratorConfig, may_leave_loops: bool
) -> Iterator[tuple[int | None, bool]]:
    """Yield loops at most, and whether every index that is sent is computed by who gets it."""
    yield None, False
    yield None, True
    if not may_leave_loops:
        return
    # From level 2 on the innermost loop becomes rows, which take no unit.
    most = config.traversal_units + (opt_level >= 2)
    for levels in range(most, 0, -1):
        yield levels, True
