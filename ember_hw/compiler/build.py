"""From a module of scf to a program: every step of a compilation, whatever the module computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, Protocol

from numpy.typing import NDArray
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.llvm import LLVMArrayType, LLVMStructType
from xdsl.ir import Attribute

from ember_hw.compiler.backend.assemble import Assembly
from ember_hw.compiler.backend.element_types import check_row_elements
from ember_hw.compiler.backend.host_code import extract_scratch
from ember_hw.compiler.backend.lower import Lowered, lower
from ember_hw.compiler.backend.place_divided import place_divided
from ember_hw.compiler.backend.place_nests import Placed, place_nests
from ember_hw.compiler.backend.reduce_split import Execute
from ember_hw.compiler.backend.row_length import check_row_lengths
from ember_hw.compiler.dialects.au import ProgramOp
from ember_hw.compiler.program import Argument, JsonValue, Program
from ember_hw.compiler.transforms.ir_facts import argument_symbols
from ember_hw.config import AcceleratorConfig

#: Least opt level that sends rows whole, as a reduce unit needs them.
ROWS_OPT_LEVEL = 2


class Spec(Protocol):
    """What a front end tells of a module besides its scf."""

    @property
    def kind(self) -> str:
        """Return what chooses the binding on the host."""
        ...

    def model(self) -> dict[str, JsonValue]:
        """Return what the binding of this kind has to know; `kind` is added.

        `table_names`, where there is one, says how messages call tables, by symbol; `stacks` which
        tables lie in one memory, see `ember_hw.host.launch`.
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

    def check_microcode(self, assemblies: Sequence[Assembly], module: ModuleOp) -> None:
        """Look at the microcode of the module's function."""
        ...


def build(
    module: ModuleOp,
    spec: Spec,
    *,
    opt_level: int,
    config: AcceleratorConfig,
    execute: Execute = "auto",
    may_leave_loops: bool = False,
    check: Check | None = None,
) -> Program:
    """Lower a module with one function to a program.

    Parameters
    ----------
    module : ModuleOp
        Verified scf; it is not changed.
    spec : Spec
        What belongs to it.
    opt_level : int
        0 to 3.
    config : AcceleratorConfig
        The access unit.
    execute : "auto", "host" or "fabric"
        As `ember_hw.compile`.
    may_leave_loops : bool
        As for `lower`.
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
    stacks: Any = model.get("stacks")

    def check_programs(programs: Sequence[ProgramOp], module: ModuleOp) -> None:
        if check is not None:
            check.check_au(programs, module)
        check_row_lengths(programs, tables, _table_names(model), opt_level, config, stacks)

    def lowering(source: ModuleOp, stay: tuple[int, ...]) -> Lowered:
        lowered = lower(
            source.clone(),
            opt_level,
            config,
            sizes={symbol: table.shape for symbol, table in tables.items()},
            may_leave_loops=may_leave_loops and not stay,
            stay=stay,
            observe=observe,
            check=check_programs,
        )
        for assembly in lowered.assemblies:
            check_row_elements(assembly, opt_level)
        return lowered

    def place(source: ModuleOp, execute: Execute) -> Placed:
        return place_nests(partial(lowering, source), execute, tables)

    may_divide = config.reduce_dot and execute != "host" and opt_level >= ROWS_OPT_LEVEL
    placed = (
        place_divided(module, place, execute, observe) if may_divide else place(module, execute)
    )
    lowered = placed.lowered
    if check is not None:
        check.check_microcode(lowered.assemblies, lowered.module)
    function = lowered.function
    au = "".join(f"{program!s}\n" for program in lowered.programs)
    scratch = extract_scratch(function)
    return Program(
        name=function.sym_name.data,
        config=config,
        opt_level=opt_level,
        nests=placed.nests,
        arguments=(*_arguments(function), *scratch.arguments),
        host_code=scratch.code,
        ir={**lowered.result.texts, "scf": f"{module!s}\n", "au": au},
        model=model,
        tables=tables,
        versions={name: version(name) for name in ("ember-hw", "numpy", "torch", "xdsl")},
    )


def _arguments(function: FuncOp) -> Iterator[Argument]:
    """Yield the function's arguments; of a struct its members, `sizes.0.1`."""
    for value, symbol in argument_symbols(function).items():
        yield from _members(symbol, value.type)


def _members(symbol: str, type_: Attribute) -> Iterator[Argument]:
    match type_:
        case LLVMStructType():
            for place, member in enumerate(type_.types.data):
                yield from _members(f"{symbol}.{place}", member)
        case LLVMArrayType():
            for place in range(type_.size.data):
                yield from _members(f"{symbol}.{place}", type_.type)
        case MemRefType():
            yield Argument(symbol, str(type_))
        case _:
            yield Argument(symbol, "index")


def _table_names(model: Mapping[str, JsonValue]) -> dict[str, str]:
    names = model.get("table_names")
    return {symbol: str(name) for symbol, name in names.items()} if isinstance(names, dict) else {}
