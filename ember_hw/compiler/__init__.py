"""The compiler: scf loops in, access-unit microcode and execute-side kernels out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.nn import Module

    from ember_hw.compiler.frontend import EmbeddingBagSpec
    from ember_hw.compiler.program import JsonValue, Program
    from ember_hw.config import AcceleratorConfig

__all__ = ["compile"]


def compile(
    module: Module | ExportedProgram,
    example_inputs: Sequence[Any] | None = None,
    opt_level: int = 3,
    config: AcceleratorConfig | None = None,
    verify: Literal["every-pass"] | None = None,
) -> Program:
    """Compile a model for an access unit.

    Parameters
    ----------
    module : torch.nn.Module or torch.export.ExportedProgram
        An EmbeddingBag of mode sum, or a model that is one.
    example_inputs : sequence of tensors or arrays, optional
        A call of the module; ranks and dtypes count. Not needed for an exported program.
    opt_level : int
        0 sends elements, 1 vectors, 2 rows, 3 rows without their indices.
    config : AcceleratorConfig, optional
        The access unit; by default ``AcceleratorConfig()``.
    verify : "every-pass", optional
        Run the IR after every pass and the access program in the interpreters, on a small seeded
        request, against the exact reference.

    Returns
    -------
    Program
        Microcode, kernels, table, and the IR text of every level.

    Raises
    ------
    UnsupportedError
        The model holds something else; the message names the torch node. Or rows are longer than
        the access unit's at this opt level; the message names the table.
    CompileError
        The model can't become a program.
    AssemblyError
        The program doesn't fit the config.
    CheckError
        A pass broke a rule of the IR, or (with `verify`) the result.
    ValueError
        `opt_level` or `verify` is none of the above.

    Examples
    --------
    >>> import torch
    >>> bag = torch.nn.EmbeddingBag(1000, 64, mode="sum")
    >>> program = compile(bag, (torch.tensor([1, 2, 4]), torch.tensor([0, 2])))
    >>> sorted(program.ir)
    ['au', 'dlc', 'scf', 'slc', 'slcvec']
    """
    # Not above: torch and xDSL take seconds to import, and `compiler.program` needs neither.
    from dataclasses import replace

    from xdsl.dialects.func import FuncOp

    from ember_hw.compiler.backend.allocate import allocate
    from ember_hw.compiler.backend.assemble import assemble
    from ember_hw.compiler.backend.kernels import extract_kernels
    from ember_hw.compiler.dialects.dlc import ComputeLoopOp
    from ember_hw.compiler.frontend import import_module
    from ember_hw.compiler.pipeline import pipeline, run_pipeline, vector_length_of
    from ember_hw.compiler.program import Program
    from ember_hw.compiler.self_check import SelfCheck
    from ember_hw.config import AcceleratorConfig

    if verify not in (None, "every-pass"):
        raise ValueError(f"verify must be None or 'every-pass', not {verify!r}")
    config = config or AcceleratorConfig()
    lanes = vector_length_of(config)
    pipeline(opt_level, lanes)  # refuses the opt level before torch has exported anything

    imported = import_module(module, example_inputs)
    spec, ir_module = imported.spec, imported.module
    _check_row_length(spec, opt_level, config)
    (function,) = (op for op in ir_module.ops if isinstance(op, FuncOp))
    check = SelfCheck(spec, function.sym_name.data) if verify else None
    observe = check.check if check else None
    texts = run_pipeline(ir_module, opt_level, lanes, hardware=True, observe=observe).texts

    au_program = allocate(function, config.name, {"tab": (spec.num_embeddings, spec.embedding_dim)})
    au_program.verify()
    texts["au"] = f"{au_program!s}\n"
    if check is not None:
        check.check_au(au_program, ir_module)
    assembly = assemble(au_program, config)

    (loop,) = (op for op in function.body.block.ops if isinstance(op, ComputeLoopOp))
    kernels = extract_kernels(loop)
    callbacks = tuple(replace(c, kernel=kernels[c.id]) for c in assembly.callbacks)
    return Program(
        name=assembly.name,
        config=config,
        opt_level=opt_level,
        microcode=assembly.microcode,
        patches=assembly.patches,
        arguments=assembly.arguments,
        callbacks=callbacks,
        ir=texts,
        model=_model(spec),
        tables={"tab": spec.weight},
        versions=_versions(),
    )


def _check_row_length(spec: EmbeddingBagSpec, opt_level: int, config: AcceleratorConfig) -> None:
    """Refuse rows whose bytes don't fit the microcode, and say at which opt level they would."""
    from ember_hw.compiler.program import OPT_LEVELS
    from ember_hw.errors import UnsupportedError
    from ember_hw.isa import layouts

    def most(record: str, field: str) -> int:
        return layouts(config)[record].field(field).most

    # Elements are addressed by the distance of rows, which are padded to whole beats.
    distance = most("unit0.stream0", "outer_pitch") * spec.weight.itemsize
    distance = distance // config.bus_bytes * config.bus_bytes
    length = most("row0", "length")
    row_bytes = (distance, most("row0", "clip"), length, length)
    longest = [count // spec.weight.itemsize for count in row_bytes]
    if spec.embedding_dim <= longest[opt_level]:
        return
    enough = [level for level in OPT_LEVELS if spec.embedding_dim <= longest[level]]
    remedy = f"compile with opt_level={enough[-1]}" if enough else "split the table by columns"
    raise UnsupportedError(
        f"embedding_dim of table {spec.name!r} must be at most {longest[opt_level]} at opt_level "
        f"{opt_level} on config {config.name!r}, not {spec.embedding_dim}; {remedy}"
    )


def _model(spec: EmbeddingBagSpec) -> dict[str, JsonValue]:
    """Return what the host has to know of the bag, as JSON values."""
    return {
        "name": spec.name,
        "num_embeddings": spec.num_embeddings,
        "embedding_dim": spec.embedding_dim,
        "index_dtype": spec.index_dtype.name,
        "include_last_offset": spec.include_last_offset,
        "two_dimensional": spec.two_dimensional,
        "input_names": list(spec.input_names),
        "indices_name": spec.indices_name,
        "offsets_name": spec.offsets_name,
        "size_limits": [list(limit) for limit in spec.size_limits],
    }


def _versions() -> dict[str, str]:
    """Return the versions of the packages that take part."""
    from importlib.metadata import version

    return {name: version(name) for name in ("ember-hw", "numpy", "torch", "xdsl")}
