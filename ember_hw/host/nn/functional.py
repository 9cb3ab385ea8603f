"""Drop-in functions for `torch.nn.functional.embedding` and `embedding_bag`.

The arguments are torch's, and one more says which device computes.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import torch

from ember_hw.compiler.quantized_rows import QuantizedTable
from ember_hw.errors import UnsupportedError
from ember_hw.host.arrays import check_count, check_rows, integer_array
from ember_hw.host.device import Device
from ember_hw.host.nn.devices import default_device
from ember_hw.host.nn.gradients import (
    BagGradient,
    RowGradient,
    needs_gradient,
    pooled_with_gradient,
    rows_of,
)
from ember_hw.host.nn.lookups import BagCall, Lookups, Table, check_weight, dtype_of
from ember_hw.host.nn.nested import is_nested, nested_like, parts_of
from ember_hw.host.request import normalise_request, padding_row

__all__ = ["BagOptions", "embedding", "embedding_bag"]

Tensor = torch.Tensor


@dataclass(frozen=True)
class BagOptions:
    """What an embedding bag is, besides its table; as of `torch.nn.EmbeddingBag`.

    `name` is how messages call the table, `output_dtype` that of the pooled rows.
    """

    mode: str = "mean"
    include_last_offset: bool = False
    padding_idx: int | None = None
    scale_grad_by_freq: bool = False
    sparse: bool = False
    max_norm: float | None = None
    norm_type: float = 2.0
    name: str = "weight"
    output_dtype: torch.dtype | None = None

    def check(self) -> None:
        """Refuse what no call may have.

        Raises
        ------
        UnsupportedError
            There is a `max_norm`.
        ValueError
            Mode "max" goes with `sparse` or `scale_grad_by_freq`.
        """
        refuse_max_norm(self.max_norm, self.norm_type)
        for option in ("sparse", "scale_grad_by_freq"):
            if self.mode == "max" and getattr(self, option):
                raise ValueError(f"{option} must be False with mode 'max', not True")


def refuse_max_norm(max_norm: float | None, norm_type: float) -> None:
    """Refuse tables that are renormalised while they are read.

    Raises
    ------
    UnsupportedError
        There is a `max_norm`; the message has the remedy.
    """
    if max_norm is not None:
        raise UnsupportedError(
            f"max_norm must be None, not {max_norm!r}; renormalise the table once before it is "
            f"loaded: weight.data.renorm_({norm_type!r}, 0, {max_norm!r})"
        )


def embedding_bag(
    input: Tensor,
    weight: Table,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
    *,
    device: Device | None = None,
    output_dtype: torch.dtype | None = None,
) -> Tensor:
    """Pool rows of a table bag by bag on a device.

    ``out[b] = sum over j in bag b of per_sample_weights[j] * weight[input[j]]``, or their mean or
    maximum. `CONTRACT` of the project holds: `ember_hw.host.request` has the rules for arguments.

    Parameters
    ----------
    input : int32 or int64 (N,) or (B, L), or nested tensor of B parts
        Rows to look up.
    weight : float32, float16 or bfloat16 (num_embeddings, D), or QuantizedTable
        The table.
    offsets : int32 or int64 (B,) or (B + 1,), optional
        Where each bag begins in 1-D `input`.
    max_norm : None
        Refused otherwise, with the remedy.
    norm_type, scale_grad_by_freq, mode, sparse, include_last_offset, padding_idx
        As of `torch.nn.functional.embedding_bag`.
    per_sample_weights : of the table's dtype and the shape of `input`, optional
        What each row is multiplied by; with mode "sum" alone. Float32 with a quantised table.
    device : Device, optional
        Computes it; see `ember_hw.nn.default_device`.
    output_dtype : torch.dtype, optional
        float32, float16 or bfloat16; by default the table's, float32 of a quantised one.

    Returns
    -------
    (B, D) of the output dtype
        Accumulated in float32, rounded once. Zeros for an empty bag, in each mode.

    Raises
    ------
    TypeError, ValueError, IndexError
        The arguments break a rule; the device wasn't touched.
    UnsupportedError
        There is a `max_norm`, the table is of another dtype, or `per_sample_weights` needs a
        gradient and the table is quantised.
    NotImplementedError
        `per_sample_weights` with another mode than "sum".

    Examples
    --------
    >>> import torch
    >>> table = torch.arange(12.0).reshape(4, 3)
    >>> embedding_bag(torch.tensor([[1, 2]]), table, mode="sum")
    tensor([[ 9., 11., 13.]])
    """
    options = BagOptions(
        mode,
        include_last_offset,
        padding_idx,
        scale_grad_by_freq,
        sparse,
        max_norm,
        norm_type,
        output_dtype=output_dtype,
    )
    check_weight(weight, "weight")
    return run_bag(lookups_of(weight, device), options, input, weight, offsets, per_sample_weights)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
    *,
    device: Device | None = None,
    output_dtype: torch.dtype | None = None,
) -> Tensor:
    """Look up rows of a table on a device: ``out[..] = weight[input[..]]``.

    Parameters
    ----------
    input : int32 or int64 (..), or nested tensor
        Rows to look up.
    weight : float32, float16 or bfloat16 (num_embeddings, D), or QuantizedTable
        The table.
    padding_idx : int, optional
        The row that gets no gradient; its stored values are returned.
    max_norm : None
        Refused otherwise, with the remedy.
    norm_type, scale_grad_by_freq, sparse
        As of `torch.nn.functional.embedding`.
    device : Device, optional
        Computes it; see `ember_hw.nn.default_device`.
    output_dtype : torch.dtype, optional
        As of `embedding_bag`.

    Returns
    -------
    (.., D) of the output dtype
        Nested, if the input is.

    Raises
    ------
    TypeError, ValueError, IndexError
        The arguments break a rule; the device wasn't touched.
    UnsupportedError
        There is a `max_norm`, or the table is of another dtype.

    Examples
    --------
    >>> import torch
    >>> embedding(torch.tensor([2, 0]), torch.arange(6.0).reshape(3, 2))
    tensor([[4., 5.],
            [0., 1.]])
    """
    refuse_max_norm(max_norm, norm_type)
    check_weight(weight, "weight")
    lookups = lookups_of(weight, device)
    return run_rows(
        lookups,
        input,
        weight,
        padding_idx,
        scale_grad_by_freq,
        sparse,
        output_dtype=output_dtype,
    )


def run_bag(
    lookups: Lookups,
    options: BagOptions,
    input: Tensor,
    weight: Table,
    offsets: Tensor | None,
    per_sample_weights: Tensor | None,
) -> Tensor:
    """Pool the rows of one bag; see `embedding_bag`. The table is checked."""
    gradient = checked_bag(options, input, weight, offsets, per_sample_weights)
    if not needs_gradient(weight, gradient.per_sample_weights):
        return lookups.pool(gradient.call)
    (pooled,) = pooled_with_gradient(lambda: [lookups.pool(gradient.call)], [gradient])
    return pooled


def checked_bag(
    options: BagOptions,
    input: Any,
    weight: Table,
    offsets: Any,
    per_sample_weights: Any,
) -> BagGradient:
    """Return a checked call, and what its gradient needs; see `embedding_bag`."""
    options.check()
    if isinstance(weight, QuantizedTable) and needs_gradient(per_sample_weights):
        raise UnsupportedError(
            "per_sample_weights must need no gradient with a quantised table, which has none "
            f"(table {options.name!r}); detach them, or use a table of float32"
        )
    include_last_offset = options.include_last_offset
    if is_nested(input):
        if offsets is not None:
            raise ValueError(
                "offsets must be None with a nested tensor, where each part is a bag, not "
                f"{type(offsets).__name__} (table {options.name!r})"
            )
        input, offsets, per_sample_weights = parts_of(input, per_sample_weights, options.name)
        include_last_offset = True
    rows = weight.shape[0]
    lookup = normalise_request(
        input,
        offsets,
        num_embeddings=rows,
        include_last_offset=include_last_offset,
        per_sample_weights=per_sample_weights,
        weights_dtype=dtype_of(weight),
        padding_idx=options.padding_idx,
        mode=options.mode,
        table_name=options.name,
    )
    kept = None
    if options.padding_idx is not None and needs_gradient(per_sample_weights):
        kept = torch.nonzero(input.reshape(-1) != options.padding_idx % rows).reshape(-1)
    return BagGradient(
        BagCall(options.name, weight, lookup, options.mode, options.output_dtype),
        input,
        per_sample_weights,
        kept,
        options.scale_grad_by_freq,
        options.sparse,
    )


def run_rows(
    lookups: Lookups,
    input: Any,
    weight: Table,
    padding_idx: int | None,
    scale_grad_by_freq: bool,
    sparse: bool,
    name: str = "weight",
    output_dtype: torch.dtype | None = None,
) -> Tensor:
    """Look up rows; see `embedding`. The table is checked."""
    if is_nested(input):
        values, offsets, _ = parts_of(input, None, name)
        found = run_rows(
            lookups, values, weight, padding_idx, scale_grad_by_freq, sparse, name, output_dtype
        )
        return nested_like(input, found, offsets)
    padding = padding_row(padding_idx, weight.shape[0], name)
    indices = integer_array("indices", input, name)
    check_count("indices", indices.size, name)
    check_rows("indices", indices, weight.shape[0], name)

    def compute() -> Tensor:
        return lookups.rows(name, weight, indices, output_dtype)

    if isinstance(weight, QuantizedTable) or not needs_gradient(weight):
        return compute()
    gradient = RowGradient(input, -1 if padding is None else padding, scale_grad_by_freq, sparse)
    return rows_of(compute, gradient, weight)


_of_weights: dict[tuple[int, int], Lookups] = {}


def lookups_of(weight: Table, device: Device | None) -> Lookups:
    """Return the lookups of a table that no module has; they end with its tensor."""
    device = device or default_device()
    key = id(weight), id(device)
    if key not in _of_weights:
        _of_weights[key] = Lookups(device)
        weakref.finalize(weight, _forget, key)
    return _of_weights[key]


def _forget(key: tuple[int, int]) -> None:
    _of_weights.pop(key).unload()
