"""The compiler: scf loops in, access-unit microcode and execute-side kernels out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.nn import Module
    from xdsl.dialects.builtin import ModuleOp

    from ember_hw.compiler.backend.reduce_split import Execute
    from ember_hw.compiler.program import Program
    from ember_hw.compiler.quantized_rows import QuantizedTable
    from ember_hw.config import AcceleratorConfig

__all__ = ["compile", "compile_function"]


def compile(
    module: Module | ExportedProgram,
    example_inputs: Sequence[Any] | None = None,
    opt_level: int = 3,
    config: AcceleratorConfig | None = None,
    verify: Literal["every-pass"] | None = None,
    execute: Execute = "auto",
    output_dtype: Any = None,
    tables: Mapping[str, str | QuantizedTable] | None = None,
) -> Program:
    """Compile a model for an access unit.

    Parameters
    ----------
    module : torch.nn.Module or torch.export.ExportedProgram
        A model that is one embedding operation (`docs/torch.md` lists them), or several embedding
        bags of one kind, whose rows it returns as a tuple.
    example_inputs : sequence of tensors or arrays, optional
        A call of the module; ranks and dtypes count. Not needed for an exported program.
    opt_level : int
        0 sends elements, 1 vectors, 2 rows, 3 rows without their indices.
    config : AcceleratorConfig, optional
        The access unit; by default ``AcceleratorConfig()``.
    verify : "every-pass", optional
        Run the IR after every pass and the access program in the interpreters, on a small seeded
        request, against the exact reference.
    execute : "auto", "host" or "fabric"
        What runs the execute code, where the config has a reduce unit (`docs/reduce_unit.md`): the
        host, the fabric, or the fabric for the nests that it can run and the host for the others.
        Without one it is the host. `Program.placement` says which runs what, and why.
    output_dtype : str, torch.dtype or NumPy dtype, optional
        float32, float16 or bfloat16: dtype of the rows that an EmbeddingBag or an Embedding gives;
        by default that of its table. What is computed is computed in float32 and rounded once.
    tables : mapping of str to str or QuantizedTable, optional
        Quantised tables for those of embedding bags, or for that of an Embedding, by their names in
        the model ("weight"): "int8" or "int4" packs the model's own as `ember_hw.quantize` does, a
        `QuantizedTable` stands for it. Rows are sent whole at every opt level.

    Returns
    -------
    Program
        Microcode, kernels, table, and the IR text of every level.

    Raises
    ------
    UnsupportedError
        The model holds something else; the message names the torch node. Or rows are longer than
        the access unit's at this opt level; the message names the table. Or `execute` is "fabric",
        and the reduce unit can't run a nest; the message says why.
    CompileError
        The model can't become a program.
    AssemblyError
        The program doesn't fit the config.
    CheckError
        A pass broke a rule of the IR, or (with `verify`) the result.
    ValueError
        `opt_level`, `verify` or `execute` is none of the above, or `execute` is "fabric" and the
        config has no reduce unit.

    Examples
    --------
    >>> import torch
    >>> bag = torch.nn.EmbeddingBag(1000, 64, mode="sum")
    >>> program = compile(bag, (torch.tensor([1, 2, 4]), torch.tensor([0, 2])))
    >>> sorted(program.ir)
    ['au', 'dlc', 'scf', 'slc', 'slcvec']
    """
    # Not above: torch and xDSL take seconds to import, and `compiler.program` needs neither.
    from ember_hw.compiler.build import build
    from ember_hw.compiler.frontend import import_module
    from ember_hw.compiler.frontend.row_types import output_name
    from ember_hw.compiler.self_check import check_of
    from ember_hw.config import AcceleratorConfig
    from ember_hw.errors import AssemblyError

    config = config or AcceleratorConfig()
    _check_options(opt_level, verify, execute, config)
    output = None if output_dtype is None else output_name(output_dtype)
    imported = import_module(module, example_inputs, output, tables)
    try:
        return build(
            imported.module,
            imported.spec,
            opt_level=opt_level,
            config=config,
            execute=execute,
            check=check_of(imported.spec, imported.module) if verify else None,
        )
    except AssemblyError as error:
        if imported.spec.kind != "tables":
            raise
        raise AssemblyError(
            f"{error}; the preset 'tables' is made for many bags in one program "
            "(AcceleratorConfig.preset('tables'), --config tables)"
        ) from error


def compile_function(
    function: str | ModuleOp,
    *,
    opt_level: int = 3,
    config: AcceleratorConfig | None = None,
    tables: Mapping[str, Any] | None = None,
    name: str | None = None,
    may_leave_loops: bool = False,
    example_inputs: Mapping[str, Any] | None = None,
    verify: Literal["every-pass"] | None = None,
    execute: Execute = "auto",
) -> Program:
    """Compile a function of scf loops; docs/scf.md says which.

    Parameters
    ----------
    function : str or ModuleOp
        A module with one function, as text or as IR, which is not changed.
    opt_level, config
        As for `compile`.
    tables : mapping of str to array, optional
        Arguments that belong to the program and stay in the device's memory, by name: NumPy arrays
        or torch tensors. Their shapes become constants.
    name : str, optional
        What reports call the program; by default the function's name.
    may_leave_loops : bool
        Whether loops that the access unit could run, but has no units for, may be left to the
        execute side, which then gathers what they read.
    example_inputs : mapping of str to array or int, optional
        A run's inputs, for `verify`; by default a small seeded request is looked for.
    verify : "every-pass", optional
        Run the IR after every pass, the access program and the microcode, and hold all of them
        against the interpreter's answer for the function as it was.
    execute : "auto", "host" or "fabric"
        As for `compile`. Where the fabric accumulates into an array, that must begin as the
        accumulator does: as +0 for sums and as -inf for maxima.

    Returns
    -------
    Program
        Of kind "function": `Device.run` takes the arguments, but tables, in order or by name, and
        returns the arrays that the function writes as new ones.

    Raises
    ------
    CheckError
        The text doesn't parse or verify, or a pass broke a rule of the IR, or (with `verify`) the
        result.
    CompileError
        The function is outside the grammar; the message names op and rule.
    UnsupportedError
        Rows of a table are longer than the access unit's at this opt level, or as for `compile`.
    AssemblyError
        The program doesn't fit the config; the message names the limit.
    TypeError, ValueError
        A table doesn't fit its argument, or `opt_level`, `verify` or `execute` is no legal value.

    Examples
    --------
    >>> program = compile_function('''
    ... func.func @gather(%rows: memref<?xindex>, %x: memref<?x?xf32>, %y: memref<?x?xf32>) {
    ...   %c0 = arith.constant 0 : index
    ...   %c1 = arith.constant 1 : index
    ...   %n = memref.dim %rows, %c0 : memref<?xindex>
    ...   %m = memref.dim %x, %c1 : memref<?x?xf32>
    ...   scf.for %i = %c0 to %n step %c1 {
    ...     %r = memref.load %rows[%i] : memref<?xindex>
    ...     scf.for %j = %c0 to %m step %c1 {
    ...       %v = memref.load %x[%r, %j] : memref<?x?xf32>
    ...       memref.store %v, %y[%i, %j] : memref<?x?xf32>
    ...     }
    ...   }
    ...   func.return
    ... }''')
    >>> program.model["outputs"]
    ['y']
    """
    from dataclasses import replace

    from ember_hw.compiler.build import build
    from ember_hw.compiler.function import read_function
    from ember_hw.compiler.ir_text import parse_module
    from ember_hw.compiler.self_check import check_of
    from ember_hw.config import AcceleratorConfig

    config = config or AcceleratorConfig()
    _check_options(opt_level, verify, execute, config)
    module = parse_module(function) if isinstance(function, str) else function.clone()
    spec = read_function(module, tables or {})
    program = build(
        module,
        spec,
        opt_level=opt_level,
        config=config,
        execute=execute,
        may_leave_loops=may_leave_loops,
        check=check_of(spec, module, example_inputs) if verify else None,
    )
    return program if name is None else replace(program, name=name)


def _check_options(
    opt_level: int, verify: str | None, execute: str, config: AcceleratorConfig
) -> None:
    from ember_hw.compiler.program import OPT_LEVELS

    if verify not in (None, "every-pass"):
        raise ValueError(f"verify must be None or 'every-pass', not {verify!r}")
    if opt_level not in OPT_LEVELS:  # before torch has exported anything
        raise ValueError(f"opt_level must be 0, 1, 2 or 3, not {opt_level!r}")
    if execute not in ("auto", "host", "fabric"):
        raise ValueError(f"execute must be 'auto', 'host' or 'fabric', not {execute!r}")
    if execute == "fabric" and config.execute != "reduce":
        raise ValueError(
            f"execute must be 'auto' or 'host' for config {config.name!r}, which has no reduce "
            "unit, not 'fabric'; AcceleratorConfig(execute='reduce') has one"
        )
