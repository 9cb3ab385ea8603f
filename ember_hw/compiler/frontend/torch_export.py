"""From a torch module, or a program that torch.export made, to scf and the facts the host needs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import torch
from torch.export import Dim, ExportedProgram
from xdsl.dialects.builtin import ModuleOp

from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec, emit_scf, size_rule
from ember_hw.compiler.frontend.match_embedding_bag import match_embedding_bag
from ember_hw.errors import CompileError, UnsupportedError

# Sizes 0 and 1 are fixed by torch.export, and equal sizes may be taken for one. Any model that is a
# plain bag exports with these, so the user's own sizes matter only to those that will be refused.
_FIRST_FREE_SIZE = 5


@dataclass(frozen=True, eq=False)
class FrontendResult:
    """An imported model.

    Attributes
    ----------
    module : ModuleOp
        One function, `@eb_sum`, in scf.
    spec : EmbeddingBagSpec
        The table and how the model's inputs are called.
    """

    module: ModuleOp
    spec: EmbeddingBagSpec


def import_module(
    module_or_exported_program: torch.nn.Module | ExportedProgram,
    example_inputs: Sequence[Any] | torch.Tensor | None = None,
) -> FrontendResult:
    """Import a model that is one `torch.nn.EmbeddingBag` of mode sum over a float32 table.

    A module is exported with free sizes whatever the sizes of the examples, and once more with no
    bag and with one bag of one index, to make sure that it treats these alike.

    Parameters
    ----------
    module_or_exported_program : torch.nn.Module or torch.export.ExportedProgram
        The model: 1-D indices with offsets, or 2-D indices; int32 or int64.
    example_inputs : sequence of tensors or arrays, or one tensor
        A call of the module. Only ranks and dtypes count, values are not read. Not needed, and not
        read, for an exported program.

    Returns
    -------
    FrontendResult
        The scf module and the bag's `EmbeddingBagSpec`.

    Raises
    ------
    UnsupportedError
        The model holds something else than such a bag; the message names the torch node.
    CompileError
        torch can't export the module, or an input is not used.
    TypeError
        The model or the examples are of another kind.

    Examples
    --------
    >>> import torch
    >>> bag = torch.nn.EmbeddingBag(100, 16, mode="sum")
    >>> result = import_module(bag, (torch.tensor([1, 2, 4]), torch.tensor([0, 2])))
    >>> result.spec.name, result.spec.input_names
    ('weight', ('input', 'offsets'))
    """
    model: Any = module_or_exported_program
    if isinstance(model, ExportedProgram):
        spec = match_embedding_bag(model)
    elif isinstance(model, torch.nn.Module):
        spec = _import_torch_module(model, _as_tensors(example_inputs))
    else:
        raise TypeError(
            f"model must be a torch.nn.Module or torch.export.ExportedProgram, not "
            f"{type(model).__name__}"
        )
    return FrontendResult(module=emit_scf(spec), spec=spec)


def _as_tensors(example_inputs: Sequence[Any] | torch.Tensor | None) -> tuple[Any, ...]:
    """Copy the examples: a tensor that stands for two inputs would be wired up as one."""
    if isinstance(example_inputs, (torch.Tensor, np.ndarray)):
        example_inputs = (example_inputs,)
    if not isinstance(example_inputs, (tuple, list)):
        raise TypeError(
            f"example_inputs must be a tuple of tensors for a module, not "
            f"{type(example_inputs).__name__}"
        )
    return tuple(_copy_example(position, value) for position, value in enumerate(example_inputs))


def _copy_example(position: int, value: Any) -> torch.Tensor | None:
    if value is None:
        return None
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, np.ndarray):
        return torch.tensor(value)
    raise TypeError(
        f"example_inputs[{position}] must be a tensor, an array or None, not {type(value).__name__}"
    )


def _import_torch_module(module: torch.nn.Module, examples: tuple[Any, ...]) -> EmbeddingBagSpec:
    sizes = count(_FIRST_FREE_SIZE)
    try:
        program = _export(module, _resized(examples, sizes), free_sizes=True)
    except Exception:
        # The model ties sizes together. With the user's own it may export, and can be refused by
        # the name of the node that does so.
        try:
            program = _export(module, examples, free_sizes=True)
        except Exception as error:
            raise CompileError(
                f"{type(module).__name__} must be a module that torch.export can export with "
                f"example_inputs, not fail with {type(error).__name__}: {error}"
            ) from error
    spec = match_embedding_bag(program)
    for name, dimension, smallest, largest in spec.size_limits:
        raise UnsupportedError(
            f"{type(module).__name__} must take inputs of any size, not need {name}.shape"
            f"[{dimension}] to be {size_rule(smallest, largest)}"
        )
    _probe_small_sizes(module, examples, spec)
    return spec


def _resized(examples: tuple[Any, ...], sizes: Iterator[int]) -> tuple[Any, ...]:
    """Give each dimension of each example a size of its own."""
    return tuple(
        value.new_zeros([next(sizes) for _ in value.shape])
        if isinstance(value, torch.Tensor)
        else value
        for value in examples
    )


def _export(
    module: torch.nn.Module, examples: tuple[Any, ...], *, free_sizes: bool
) -> ExportedProgram:
    dynamic_shapes = tuple(
        dict.fromkeys(range(value.ndim), Dim.AUTO) if isinstance(value, torch.Tensor) else None
        for value in examples
    )
    with warnings.catch_warnings():
        # torch warns of its own deprecated internals
        warnings.simplefilter("ignore", FutureWarning)
        return torch.export.export(
            module, examples, dynamic_shapes=dynamic_shapes if free_sizes else None
        )


def _probe_small_sizes(
    module: torch.nn.Module, examples: tuple[Any, ...], spec: EmbeddingBagSpec
) -> None:
    """Make sure that the module is the same bag for no bag, and for one bag of one index.

    Free sizes start at 2 for torch.export, so that a module which branches on fewer would slip
    through.
    """
    for num_bags in (0, 1):
        if spec.two_dimensional:
            shapes = {spec.indices_name: (num_bags, 1)}
        else:
            num_offsets = num_bags + int(spec.include_last_offset)
            shapes = {spec.indices_name: (num_bags,), spec.offsets_name: (num_offsets,)}
        remaining = iter(spec.input_names)
        small = tuple(
            value.new_zeros(shapes[next(remaining)]) if isinstance(value, torch.Tensor) else value
            for value in examples
        )
        rule = (
            f"{type(module).__name__} must be the same bag for any number of bags, not another "
            f"model for {num_bags}"
        )
        try:
            found = match_embedding_bag(_export(module, small, free_sizes=False))
        except Exception as error:
            raise UnsupportedError(f"{rule}: {error}") from error
        if _identity(found) != _identity(spec):
            raise UnsupportedError(rule)


def _identity(spec: EmbeddingBagSpec) -> tuple[object, ...]:
    return (
        spec.name,
        spec.indices_name,
        spec.offsets_name,
        spec.index_dtype,
        spec.include_last_offset,
        spec.two_dimensional,
    )
