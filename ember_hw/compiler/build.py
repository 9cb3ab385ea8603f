"""From a module of scf to a program: every step of a compilation, whatever the module computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Protocol

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from ember_hw.compiler.backend.assemble import Assembly
from ember_hw.compiler.backend.lower import lower
from ember_hw.compiler.backend.row_length import check_row_lengths
from ember_hw.compiler.dialects.au import ProgramOp
from ember_hw.compiler.dialects.dlc import ComputeLoopOp
from ember_hw.compiler.program import Argument, JsonValue, Nest, Program
from ember_hw.compiler.transforms.ir_facts import argument_symbols
from ember_hw.config import AcceleratorConfig


class Spec(Protocol):
    """What a front end tells of a module besides its scf."""

    @property
    def kind(self) -> str:
        """Return what chooses the binding on the host."""
        ...

    def model(self) -> dict[str, JsonValue]:
        """Return what the binding of this kind has to know; `kind` is added.

        `table_names`, where there is one, says how messages call tables, by symbol.
        """
        ...

    def tables(self) -> dict[str, NDArray[Any]]:
        """Return the weights by symbol; their shapes become constants of the program."""
        ...


class Check(Protocol):
    """What looks at a compilation on its way."""

    def check(self, name: str, module: ModuleOp) -> None:
        """Look at the module after a pass whose result can be executed."""
        ...

    def check_au(self, programs: Sequence[ProgramOp], module: ModuleOp) -> None:
        """Look at the access programs of the module's function."""
        ...


def build(
    module: ModuleOp,
    spec: Spec,
    *,
    opt_level: int,
    config: AcceleratorConfig,
    check: Check | None = None,
) -> Program:
    """Lower a module with one function to a program.

    Parameters
    ----------
    module : ModuleOp
        Verified scf, lowered in place.
    spec : Spec
        What belongs to it.
    opt_level : int
        0 to 3.
    config : AcceleratorConfig
        The access unit.
    check : Check, optional
        Called after each pass and with the access programs.

    Raises
    ------
    CompileError, AssemblyError, CheckError
        As `ember_hw.compile`.
    """
    observe: Callable[[str, ModuleOp], None] | None = check.check if check else None
    tables = spec.tables()
    model = {"kind": spec.kind, **spec.model()}

    def check_programs(programs: Sequence[ProgramOp], module: ModuleOp) -> None:
        if check is not None:
            check.check_au(programs, module)
        check_row_lengths(programs, tables, _table_names(model), opt_level, config)

    lowered = lower(
        module,
        opt_level,
        config,
        sizes={symbol: table.shape for symbol, table in tables.items()},
        observe=observe,
        check=check_programs,
    )
    function = lowered.function
    au = "".join(f"{program!s}\n" for program in lowered.programs)
    loops = [op for op in function.body.block.ops if isinstance(op, ComputeLoopOp)]
    return Program(
        name=function.sym_name.data,
        config=config,
        opt_level=opt_level,
        nests=tuple(
            _nest(assembly, loop) for assembly, loop in zip(lowered.assemblies, loops, strict=True)
        ),
        arguments=tuple(
            Argument(symbol, str(value.type))
            for value, symbol in argument_symbols(function).items()
        ),
        ir={**lowered.result.texts, "au": au},
        model=model,
        tables=tables,
        versions={name: version(name) for name in ("ember-hw", "numpy", "torch", "xdsl")},
    )


def _nest(assembly: Assembly, loop: ComputeLoopOp) -> Nest:
    from dataclasses import replace

    from ember_hw.compiler.backend.kernels import extract_kernels

    nest = assembly.nest()
    kernels = extract_kernels(loop)
    return replace(nest, callbacks=tuple(replace(c, kernel=kernels[c.id]) for c in nest.callbacks))


def _table_names(model: Mapping[str, JsonValue]) -> dict[str, str]:
    names = model.get("table_names")
    return {symbol: str(name) for symbol, name in names.items()} if isinstance(names, dict) else {}
