# pyright: reportUnknownMemberType=false
# Not all types of torch are known.
"""Gradients of lookups that ran on a device: torch's own operators compute them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.autograd.function import once_differentiable

from ember_hw.host.nn.lookups import BagCall, Table
from ember_hw.host.request import MODES

__all__ = [
    "BagBackward",
    "BagGradient",
    "RowGradient",
    "needs_gradient",
    "pooled_with_gradient",
    "rows_of",
]

_ATEN: Any = torch.ops.aten
_MEAN, _MAX = MODES.index("mean"), MODES.index("max")

Tensor = torch.Tensor


@dataclass(frozen=True, eq=False)
class BagGradient:
    """What the gradient of one bag needs besides tensors.

    Attributes
    ----------
    call : BagCall
        The call.
    indices : tensor
        As the caller passed them; `call` may share their memory.
    per_sample_weights : tensor, optional
        As the caller passed them.
    kept : int64 (N,), optional
        Positions of the lookups among those that the caller passed; all of them if None.
    scale_grad_by_freq, sparse : bool
        As of `torch.nn.EmbeddingBag`.
    """

    call: BagCall
    indices: Tensor
    per_sample_weights: Tensor | None
    kept: Tensor | None
    scale_grad_by_freq: bool
    sparse: bool


@dataclass(frozen=True, eq=False)
class RowGradient:
    """What the gradient of an embedding needs besides tensors.

    Attributes
    ----------
    indices : int32 or int64 (..)
        Rows that were looked up.
    padding_idx : int
        The row that gets no gradient, -1 for none.
    scale_grad_by_freq, sparse : bool
        As of `torch.nn.Embedding`.
    """

    indices: Tensor
    padding_idx: int
    scale_grad_by_freq: bool
    sparse: bool


def needs_gradient(*tables: Table | None) -> bool:
    """Whether autograd has to know of an operation on these tensors; quantised tables have none."""
    return torch.is_grad_enabled() and any(
        isinstance(table, Tensor) and table.requires_grad for table in tables
    )


def pooled_with_gradient(
    compute: Callable[[], Sequence[Tensor]], gradients: Sequence[BagGradient]
) -> list[Tensor]:
    """Return what `compute` returns, known to autograd.

    Parameters
    ----------
    compute : callable
        Returns the pooled rows of each bag.
    gradients : sequence of BagGradient
        One for each bag.
    """
    weights = [gradient.call.weight for gradient in gradients]
    scales = [gradient.per_sample_weights for gradient in gradients]
    function: Any = _Pool
    return list(function.apply(compute, gradients, *weights, *scales))


def rows_of(compute: Callable[[], Tensor], gradient: RowGradient, weight: Tensor) -> Tensor:
    """Return what `compute` returns, the rows of a table, known to autograd."""
    function: Any = _Rows
    return function.apply(compute, gradient, weight)


class _Pool(torch.autograd.Function):
    """Pooled rows of several bags."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, ...]:
        compute, gradients, *tensors = arguments
        ctx.gradients = gradients
        count = len(gradients)
        # Values that a gradient depends on are saved, so that torch refuses it once they were
        # written; the others may be.
        depends = [
            isinstance(g.call.weight, Tensor)
            and (g.call.mode == "max" or g.per_sample_weights is not None)
            for g in gradients
        ]
        kept = [t if d else None for t, d in zip(tensors[:count], depends, strict=True)]
        ctx.save_for_backward(*kept, *tensors[count:], *(g.indices for g in gradients))
        ctx.shapes = [tensor.shape for tensor in tensors[:count]]
        return tuple(compute())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride] -- once_differentiable is untyped
        count = len(ctx.gradients)
        saved = ctx.saved_tensors
        needed = ctx.needs_input_grad[2:]
        of_weights: list[Tensor | None] = []
        of_scales: list[Tensor | None] = []
        for number, gradient in enumerate(ctx.gradients):
            weight, scales = saved[number], saved[count + number]
            grad = grads[number].contiguous()
            if isinstance(gradient.call.weight, Tensor):  # rows may come back in another dtype
                grad = grad.to(gradient.call.weight.dtype)
            one = BagBackward(gradient, grad, weight, scales)
            of_weights.append(one.of_weight(ctx.shapes[number][0]) if needed[number] else None)
            of_scales.append(one.of_scales() if needed[count + number] else None)
        return None, None, *of_weights, *of_scales


class BagBackward:
    """The gradients of one bag, as torch's own operators compute them.

    Parameters
    ----------
    gradient : BagGradient
        The call. Of its table nothing is read here.
    grad : (B, D)
        Gradient of the pooled rows, contiguous.
    weight : (num_embeddings, D), optional
        The table; needed for mode "max" and for `of_scales`.
    scales : (N,) or (B, L), optional
        Weights of lookups as the caller passed them.
    """

    def __init__(
        self, gradient: BagGradient, grad: Tensor, weight: Tensor | None, scales: Tensor | None
    ) -> None:
        self._gradient, self._grad, self._weight, self._scales = gradient, grad, weight, scales
        lookup = gradient.call.lookup
        self._mode = MODES.index(gradient.call.mode)
        count = int(lookup.offsets[-1])  # behind it, indices belong to no bag
        self._indices = _on(grad, lookup.indices[:count]).long()
        offsets = _on(grad, lookup.offsets)
        self._offsets = offsets[:-1]
        self._sizes = offsets.diff()
        bags = torch.arange(lookup.num_bags, device=grad.device)
        self._bag_of = torch.repeat_interleave(bags, self._sizes)
        kept = gradient.kept
        self._kept = None if kept is None else kept[:count].to(grad.device)

    def of_weight(self, rows: int) -> Tensor:
        """Return the gradient of the table."""
        gradient = self._gradient
        largest = self._indices[:0]
        if self._mode == _MAX:
            assert self._weight is not None, "saved"
            *_, largest = _ATEN._embedding_bag(
                self._weight, self._indices, self._offsets, False, _MAX
            )
        scales = None if self._scales is None else self._used(self._scales.reshape(-1))
        if gradient.scale_grad_by_freq:
            return self._of_weight_by_frequency(rows, scales)
        return _ATEN._embedding_bag_backward(
            self._grad,
            self._indices,
            self._offsets,
            self._bag_of,
            self._sizes,
            largest,
            rows,
            False,
            self._mode,
            gradient.sparse,
            scales,
        )

    def _of_weight_by_frequency(self, rows: int, scales: Tensor | None) -> Tensor:
        """Return the gradient of the table with each row's divided by its number of lookups.

        That of a plain embedding: torch's own for bags takes the count of another row.
        """
        grad = self._grad
        if self._mode == _MEAN:
            grad = grad / self._sizes.clamp(min=1)[:, None]
        of_rows = grad[self._bag_of]
        if scales is not None:
            of_rows = of_rows * scales[:, None]
        sparse = self._gradient.sparse
        return _ATEN.embedding_backward(of_rows, self._indices, rows, -1, True, sparse)

    def of_scales(self) -> Tensor:
        """Return the gradient of the weights of lookups; 0 of those that no bag has."""
        assert self._scales is not None, "only what the caller passed needs a gradient"
        used = _ATEN._embedding_bag_per_sample_weights_backward(
            self._grad, self._weight, self._indices, self._offsets, self._bag_of, self._mode
        )
        whole = torch.zeros_like(self._scales).reshape(-1)
        if self._kept is None:
            whole[: used.numel()] = used
        else:
            whole[self._kept] = used
        return whole.reshape(self._scales.shape)

    def _used(self, scales: Tensor) -> Tensor:
        return scales[: self._indices.numel()] if self._kept is None else scales[self._kept]


class _Rows(torch.autograd.Function):
    """Rows of a table."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        compute, gradient, weight = arguments
        ctx.gradient = gradient
        ctx.rows, ctx.dtype = weight.shape[0], weight.dtype
        ctx.save_for_backward(gradient.indices)
        return compute()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride] -- once_differentiable is untyped
        (grad,) = grads
        (indices,) = ctx.saved_tensors
        gradient = cast(RowGradient, ctx.gradient)
        of_weight = _ATEN.embedding_backward(
            grad.contiguous().to(ctx.dtype),
            indices.to(grad.device),
            ctx.rows,
            gradient.padding_idx,
            gradient.scale_grad_by_freq,
            gradient.sparse,
        )
        return None, None, of_weight


def _on(grad: Tensor, array: Any) -> Tensor:
    tensor: Tensor = torch.from_numpy(array)
    return tensor.to(grad.device)
