"""Modules that are given sparse tensors, imported by the parts of these.

torch.export and torch.compile hardly carry sparse tensors. So the module runs, while it is
exported, on a stand-in that knows one thing: how to be multiplied by a dense matrix.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, cast

import torch

from ember_hw.compiler.frontend.operation_spec import OperationSpec, Source
from ember_hw.compiler.frontend.torch_ops import spmm
from ember_hw.errors import UnsupportedError

__all__ = [
    "SPARSE_LAYOUTS",
    "check_constants",
    "has_sparse",
    "merge_parts",
    "split_examples",
    "takes_any_number",
    "with_parts",
]

#: Layouts that are taken, by the name that the model's facts have for them.
SPARSE_LAYOUTS = {torch.sparse_csr: "csr", torch.sparse_coo: "coo"}
_PARTS = ("crow", "col", "values")
_PRODUCTS: tuple[Any, ...] = (
    cast(Any, torch.sparse).mm,
    torch.mm,
    torch.matmul,
    torch.Tensor.mm,
    torch.Tensor.matmul,
    torch.Tensor.__matmul__,
)


def is_sparse(value: Any) -> bool:
    """Whether a value is a tensor of a sparse layout that is taken."""
    return isinstance(value, torch.Tensor) and value.layout in SPARSE_LAYOUTS


def has_sparse(examples: Sequence[Any]) -> bool:
    """Whether one of the examples is sparse."""
    return any(is_sparse(value) for value in examples)


def check_constants(module: torch.nn.Module) -> None:
    """Refuse a module that holds a sparse tensor: the accelerator is given it with each call.

    Raises
    ------
    UnsupportedError
        It does; names the parameter or buffer.
    """
    for name, value in chain(module.named_parameters(), module.named_buffers()):
        if value.layout != torch.strided:
            raise UnsupportedError(
                f"{name} of {type(module).__name__} must be an input of the model, not a constant "
                f"of layout {value.layout}; pass it to forward, or its parts to "
                f"ember_hw.spmm(crow, col, values, dense)",
                node=name,
            )


class _Parts:
    """Stands for a CSR matrix while a module is exported."""

    def __init__(self, crow: torch.Tensor, col: torch.Tensor, values: torch.Tensor) -> None:
        self.crow, self.col, self.values = crow, col, values

    def __matmul__(self, dense: torch.Tensor) -> torch.Tensor:
        return spmm(self.crow, self.col, self.values, dense)

    mm = matmul = __matmul__

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if function in _PRODUCTS and not kwargs and len(args) == 2 and isinstance(args[0], cls):
            if isinstance(args[1], torch.Tensor) and args[1].ndim == 2:
                return args[0] @ args[1]
        name = getattr(function, "__name__", str(function))
        raise UnsupportedError(
            f"a sparse tensor must be used as torch.sparse.mm(sparse, dense) or sparse @ dense "
            f"with a 2-D dense tensor, not in {name!r}; or pass its parts to "
            f"ember_hw.spmm(crow, col, values, dense)",
            node=name,
        )


class _WithParts(torch.nn.Module):
    """A module that takes the three parts of each sparse tensor in its place."""

    def __init__(self, module: torch.nn.Module, is_split: Sequence[bool]) -> None:
        super().__init__()
        self.inner = module
        self.is_split = tuple(is_split)

    def forward(self, *args: Any) -> Any:
        """Call the module on stand-ins."""
        remaining = iter(args)
        given = [
            _Parts(*(next(remaining) for _ in _PARTS)) if split else next(remaining)
            for split in self.is_split
        ]
        return self.inner(*given)


def with_parts(module: torch.nn.Module, examples: Sequence[Any]) -> torch.nn.Module:
    """Return a module that takes the parts of sparse inputs."""
    return _WithParts(module, [is_sparse(value) for value in examples])


def takes_any_number(module: torch.nn.Module) -> bool:
    """Whether `with_parts` made the module, so that its inputs are one tuple of any length."""
    return isinstance(module, _WithParts)


def split_examples(examples: Sequence[Any]) -> tuple[Any, ...]:
    """Replace each sparse example by examples of its parts."""
    found: list[Any] = []
    for value in examples:
        if is_sparse(value):
            rows, entries = value.shape[0], value.values().numel() if _is_csr(value) else 4
            found += [
                torch.zeros(rows + 1, dtype=torch.int64),
                torch.zeros(entries, dtype=torch.int64),
                torch.zeros(entries, dtype=value.dtype),
            ]
        else:
            found.append(value)
    return tuple(found)


def _is_csr(value: torch.Tensor) -> bool:
    return value.layout == torch.sparse_csr


def merge_parts(
    module: torch.nn.Module, examples: Sequence[Any], spec: OperationSpec
) -> OperationSpec:
    """Return the spec in which the parts are the sparse input again.

    Raises
    ------
    UnsupportedError
        A sparse input is used for something else than one product.
    """
    signature = list(inspect.signature(module.forward).parameters)
    names = [signature[place] for place, value in enumerate(examples) if value is not None]
    merged: dict[str, Source] = {}
    remaining = iter(spec.input_names)
    own: dict[str, tuple[str, str | None]] = {}
    present = [value for value in examples if value is not None]
    for name, value in zip(names, present, strict=True):
        for part in _PARTS if is_sparse(value) else (None,):
            own[next(remaining)] = name, part
    for role, source in spec.sources.items():
        name, part = own[source.name]
        merged["sparse" if part else role] = Source(name, source.row)
    layouts = [SPARSE_LAYOUTS[value.layout] for value in examples if is_sparse(value)]
    if spec.kind != "spmm" or len(layouts) != 1:
        raise UnsupportedError(
            f"{type(module).__name__} must multiply one sparse matrix by a dense one, not "
            f"{spec.kind} with {len(layouts)} sparse inputs"
        )
    limits = tuple(
        (own[name][0], *rest) for name, *rest in spec.size_limits if own[name][1] is None
    )
    return replace(
        spec,
        facts={**spec.facts, "layout": layouts[0]},
        input_names=tuple(names),
        sources=merged,
        size_limits=limits,
    )
