"""The compiler: scf loops in, access-unit microcode and execute-side kernels out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.nn import Module

    from ember_hw.compiler.program import Program
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
    from ember_hw.compiler.build import build
    from ember_hw.compiler.frontend import import_module
    from ember_hw.compiler.self_check import check_of
    from ember_hw.config import AcceleratorConfig

    _check_options(opt_level, verify)
    imported = import_module(module, example_inputs)
    return build(
        imported.module,
        imported.spec,
        opt_level=opt_level,
        config=config or AcceleratorConfig(),
        check=check_of(imported.spec, imported.module) if verify else None,
    )


def _check_options(opt_level: int, verify: str | None) -> None:
    from ember_hw.compiler.program import OPT_LEVELS

    if verify not in (None, "every-pass"):
        raise ValueError(f"verify must be None or 'every-pass', not {verify!r}")
    if opt_level not in OPT_LEVELS:  # before torch has exported anything
        raise ValueError(f"opt_level must be 0, 1, 2 or 3, not {opt_level!r}")
