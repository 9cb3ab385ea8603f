"""Operators for PyTorch models that say what torch's own can't carry through a compiled graph.

A sparse tensor makes `torch.compile` fall back to eager without a word. These operators take its
parts as dense tensors instead. Importing this module registers them as
``torch.ops.ember_hw.spmm`` and ``torch.ops.ember_hw.fusedmm``.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["fusedmm", "spmm"]


def _identity(x: torch.Tensor) -> torch.Tensor:
    return x


_NONLINEAR: dict[str, Any] = {
    "identity": _identity,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "exp": torch.exp,
}


def _edge_rows(crow: torch.Tensor) -> torch.Tensor:
    """Return the row of each stored entry, int64 (E,)."""
    lengths = crow.diff().to(torch.int64)
    return torch.repeat_interleave(torch.arange(lengths.shape[0], device=crow.device), lengths)


@torch.library.custom_op("ember_hw::spmm", mutates_args=())
def spmm(
    crow: torch.Tensor, col: torch.Tensor, values: torch.Tensor, dense: torch.Tensor
) -> torch.Tensor:
    """Multiply a CSR matrix by a dense one: ``out[i] = sum of values[e] * dense[col[e]]``.

    Parameters
    ----------
    crow : int32 or int64 (R + 1,)
        Row pointers: the entries of row i are crow[i] to crow[i + 1].
    col : int32 or int64 (E,)
        Column of each entry.
    values : float32 (E,)
        The entries.
    dense : float32 (N, D)
        The dense matrix.

    Returns
    -------
    float32 (R, D)
        Summed in the order of the entries; zeros for a row without any.

    Examples
    --------
    >>> crow, col = torch.tensor([0, 1, 1]), torch.tensor([2])
    >>> spmm(crow, col, torch.tensor([2.0]), torch.eye(3)).tolist()
    [[0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    """
    out = dense.new_zeros(crow.shape[0] - 1, dense.shape[1])
    return out.index_add(0, _edge_rows(crow), values.unsqueeze(-1) * dense[col])


def _fake_spmm(
    crow: torch.Tensor, col: torch.Tensor, values: torch.Tensor, dense: torch.Tensor
) -> torch.Tensor:
    return dense.new_empty(crow.shape[0] - 1, dense.shape[1])


def _save_spmm(ctx: Any, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _spmm_backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    crow, col, values, dense = ctx.saved_tensors
    of_entries = grad[_edge_rows(crow)]
    of_values = (of_entries * dense[col]).sum(-1)
    of_dense = torch.zeros_like(dense).index_add(0, col, values.unsqueeze(-1) * of_entries)
    return None, None, of_values, of_dense


_registered: Any = spmm
_registered.register_fake(_fake_spmm)
_registered.register_autograd(_spmm_backward, setup_context=_save_spmm)


@torch.library.custom_op("ember_hw::fusedmm", mutates_args=())
def fusedmm(
    crow: torch.Tensor,
    col: torch.Tensor,
    queries: torch.Tensor,
    dense: torch.Tensor,
    nonlinearity: str,
) -> torch.Tensor:
    """Aggregate over edges that score themselves: ``out[i] = sum of s(<q_i, x_c>) * x_c``.

    Parameters
    ----------
    crow : int32 or int64 (R + 1,)
        Row pointers: the edges of node i are crow[i] to crow[i + 1].
    col : int32 or int64 (E,)
        The other end of each edge.
    queries : float32 (R, D)
        A row q for each node i; the same tensor as `dense` in FusedMM.
    dense : float32 (N, D)
        A row x for each other end c.
    nonlinearity : str
        s: "identity", "sigmoid", "relu" or "exp".

    Returns
    -------
    float32 (R, D)
        Summed in the order of the edges; zeros for a node without any.
    """
    if nonlinearity not in _NONLINEAR:
        raise ValueError(
            f"nonlinearity must be one of {', '.join(_NONLINEAR)}, not {nonlinearity!r}"
        )
    rows = dense[col]
    scores = _NONLINEAR[nonlinearity]((queries[_edge_rows(crow)] * rows).sum(-1))
    out = dense.new_zeros(crow.shape[0] - 1, dense.shape[1])
    return out.index_add(0, _edge_rows(crow), scores.unsqueeze(-1) * rows)


def _fake_fusedmm(
    crow: torch.Tensor,
    col: torch.Tensor,
    queries: torch.Tensor,
    dense: torch.Tensor,
    nonlinearity: str,
) -> torch.Tensor:
    return dense.new_empty(crow.shape[0] - 1, dense.shape[1])


_registered = fusedmm
_registered.register_fake(_fake_fusedmm)
