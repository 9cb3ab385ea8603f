"""From a torch module, or a program that torch.export made, to scf and the facts the host needs."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import torch
from torch.export import Dim, ExportedProgram
from xdsl.dialects.builtin import ModuleOp

from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES
from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec, size_rule
from ember_hw.compiler.frontend.emit_operation import emit_scf
from ember_hw.compiler.frontend.import_graph import ImportedGraph, import_graph
from ember_hw.compiler.frontend.operation_spec import OperationSpec
from ember_hw.compiler.frontend.probe_sizes import is_same, probes
from ember_hw.compiler.frontend.quantized import check_formats, unpacked, with_table
from ember_hw.compiler.frontend.sparse_inputs import (
    check_constants,
    has_sparse,
    merge_parts,
    split_examples,
    takes_any_number,
    with_parts,
)
from ember_hw.compiler.frontend.tables import TablesSpec
from ember_hw.errors import CompileError, UnsupportedError

# Sizes 0 and 1 are fixed by torch.export, and equal sizes may be taken for one. Any model that is a
# plain bag exports with these, so the user's own sizes matter only to those that need some.
_FIRST_FREE_SIZE = 5


@dataclass(frozen=True, eq=False)
class FrontendResult:
    """An imported model.

    Attributes
    ----------
    module : ModuleOp
        One function in scf.
    spec : EmbeddingBagSpec, OperationSpec or TablesSpec
        The tables and how the model's inputs are called.
    """

    module: ModuleOp
    spec: EmbeddingBagSpec | OperationSpec | TablesSpec


def import_module(
    module_or_exported_program: torch.nn.Module | ExportedProgram,
    example_inputs: Sequence[Any] | torch.Tensor | None = None,
    output: str | None = None,
    tables: Mapping[str, Any] | None = None,
) -> FrontendResult:
    """Import a model that is one embedding operation.

    That is an EmbeddingBag or an Embedding, a product of a sparse and a dense matrix, aggregation
    over the edges of a graph, or the scores of triples; or several embedding bags that one program
    can compute, whose rows the model returns as a tuple. A module is exported with free sizes
    whatever the sizes of the examples, and at several fixed sizes, small ones too, to make sure
    that it treats these alike.

    Parameters
    ----------
    module_or_exported_program : torch.nn.Module or torch.export.ExportedProgram
        The model.
    example_inputs : sequence of tensors or arrays, or one tensor
        A call of the module. Only ranks and dtypes count, values are not read. Not needed, and not
        read, for an exported program.
    output : str, optional
        Element type of the rows that an EmbeddingBag or an Embedding gives; by default its table's.
    tables : mapping of str to str or QuantizedTable, optional
        As for `ember_hw.compile`.

    Returns
    -------
    FrontendResult
        The scf module and the operation's spec.

    Raises
    ------
    UnsupportedError
        The model holds something else; the message names the torch node.
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
        spec = import_graph(model).spec
    elif isinstance(model, torch.nn.Module):
        model, own = unpacked(model)
        tables = {**own, **(tables or {})}
        spec = _import_torch_module(model, _as_tensors(example_inputs))
    else:
        raise TypeError(
            f"model must be a torch.nn.Module or torch.export.ExportedProgram, not "
            f"{type(model).__name__}"
        )
    for name, table in (tables or {}).items():
        spec = with_table(spec, name, table)
    check_formats(spec)
    if output is not None:
        spec = _with_output(spec, output)
    return FrontendResult(module=emit_scf(spec), spec=spec)


def _with_output(
    spec: EmbeddingBagSpec | OperationSpec | TablesSpec, output: str
) -> EmbeddingBagSpec | OperationSpec | TablesSpec:
    """Return a spec whose rows come back as another type.

    Raises
    ------
    UnsupportedError
        What comes back of its kind has the dtype of its rows.
    """
    if isinstance(spec, EmbeddingBagSpec):
        return replace(spec, output=output)
    if isinstance(spec, TablesSpec):
        return replace(spec, bags=tuple(replace(bag, output=output) for bag in spec.bags))
    if spec.kind == "embedding":
        return replace(spec, facts={**spec.facts, "output": output})
    if output != spec.types.output:
        wanted, found = (ELEMENT_DTYPES[name].name for name in (spec.types.output, output))
        raise UnsupportedError(
            f"output_dtype must be {wanted} for a model of kind {spec.kind!r}, as that of its "
            f"rows, not {found}; an EmbeddingBag and an Embedding have others"
        )
    return spec


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


def _import_torch_module(
    module: torch.nn.Module, examples: tuple[Any, ...]
) -> EmbeddingBagSpec | OperationSpec | TablesSpec:
    check_constants(module)
    if has_sparse(examples):
        graph = _import_plain(with_parts(module, examples), split_examples(examples), module)
        assert isinstance(graph.spec, OperationSpec)
        return merge_parts(module, examples, graph.spec)
    return _import_plain(module, examples, module).spec


def _import_plain(
    module: torch.nn.Module, examples: tuple[Any, ...], named: torch.nn.Module
) -> ImportedGraph:
    """Import a module whose inputs are dense; messages name the other one."""
    name = type(named).__name__
    sizes = count(_FIRST_FREE_SIZE)
    try:
        program = _export(module, _resized(examples, sizes), free_sizes=True)
    except Exception:
        # The model ties sizes together. With the user's own it may export, and can be refused by
        # the name of the node that does so.
        try:
            program = _export(module, examples, free_sizes=True)
        except UnsupportedError:
            raise
        except Exception as error:
            raise CompileError(
                f"{name} must be a module that torch.export can export with "
                f"example_inputs, not fail with {type(error).__name__}: {error}"
            ) from error
    try:
        graph = import_graph(program)
    except UnsupportedError:
        graph = _with_fixed_columns(module, examples)
        if graph is None:
            raise
    for input_name, dimension, smallest, largest in graph.spec.size_limits:
        if (input_name, dimension) not in _may_be_fixed(graph):
            raise UnsupportedError(
                f"{name} must take inputs of any size, not need {input_name}.shape"
                f"[{dimension}] to be {size_rule(smallest, largest)}"
            )
    _probe(module, examples, graph, name)
    return graph


def _with_fixed_columns(module: torch.nn.Module, examples: tuple[Any, ...]) -> ImportedGraph | None:
    """Import a module for the columns of its examples alone, as some depend on these."""
    if not any(_has_columns(value) for value in examples):
        return None
    try:
        return import_graph(_export(module, examples, free_sizes=True, free_columns=False))
    except Exception:
        return None  # and the first refusal is told


def _has_columns(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim == 2 and value.is_floating_point()


def _may_be_fixed(graph: ImportedGraph) -> set[tuple[str, int]]:
    """List the sizes that a module may fix: columns of a matrix, rows that it tells apart."""
    if not isinstance(graph.spec, OperationSpec):
        return set()
    if graph.operation.kind == "block_attention":  # whole blocks alone
        return {(name, dimension) for name, dimension, *_ in graph.spec.size_limits}
    return {
        (source.name, 0 if source.row is not None else 1)
        for role, source in graph.spec.sources.items()
        if source.row is not None or role in graph.operation.tables
    }


def _resized(examples: tuple[Any, ...], sizes: Iterator[int]) -> tuple[Any, ...]:
    """Give each dimension of each example a size of its own."""
    return tuple(
        value.new_zeros([next(sizes) for _ in value.shape])
        if isinstance(value, torch.Tensor)
        else value
        for value in examples
    )


def _export(
    module: torch.nn.Module,
    examples: tuple[Any, ...],
    *,
    free_sizes: bool,
    free_columns: bool = True,
) -> ExportedProgram:
    dynamic_shapes = tuple(
        dict.fromkeys(range(value.ndim if free_columns or not _has_columns(value) else 1), Dim.AUTO)
        if isinstance(value, torch.Tensor)
        else None
        for value in examples
    )
    shapes: Any = (dynamic_shapes,) if takes_any_number(module) else dynamic_shapes
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    was_disabled = logger.disabled
    logger.disabled = True  # a failure is raised, and not always one
    try:
        with warnings.catch_warnings():
            # torch warns of its own deprecated internals
            warnings.simplefilter("ignore", FutureWarning)
            return torch.export.export(
                module, examples, dynamic_shapes=shapes if free_sizes else None
            )
    finally:
        logger.disabled = was_disabled


def _probe(
    module: torch.nn.Module, examples: tuple[Any, ...], graph: ImportedGraph, name: str
) -> None:
    """Make sure that the module is the same operation at other sizes, none and one among them."""
    names = iter(graph.spec.input_names)
    of_examples = [next(names) if isinstance(value, torch.Tensor) else None for value in examples]
    shapes = {
        input_name: tuple(value.shape)
        for input_name, value in zip(of_examples, examples, strict=True)
        if input_name is not None
    }
    for title, sizes in probes(graph, shapes):
        tried = tuple(
            value if input_name is None else value.new_zeros(sizes[input_name])
            for input_name, value in zip(of_examples, examples, strict=True)
        )
        rule = (
            f"{name} must be the same operation at any sizes of its inputs, not another model at "
            f"{title}"
        )
        try:
            found = import_graph(_export(module, tried, free_sizes=False))
        except Exception as error:
            raise UnsupportedError(f"{rule}: {error}") from error
        if not is_same(graph, found):
            raise UnsupportedError(rule)
