"""Operators for PyTorch models that say what torch's own can't carry through a compiled graph.

A sparse tensor makes `torch.compile` fall back to eager without a word. These operators take its
parts as dense tensors instead. Importing this module registers them as
``torch.ops.ember_hw.spmm``, ``.fusedmm`` and ``.block_attention``.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["block_attention", "fusedmm", "spmm"]


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


@torch.library.custom_op("ember_hw::block_attention", mutates_args=())
def block_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    blocks: torch.Tensor,
    block_size: int,
    scale: float,
) -> torch.Tensor:
    """Let each block of queries attend to some blocks of keys, as in BigBird.

    Parameters
    ----------
    query : float32 (T, D)
        Queries; block b is rows b * block_size to (b + 1) * block_size.
    key, value : float32 (S, D)
        Keys and values, in blocks alike. The last block may be a partial one: what it lacks weighs
        nothing.
    blocks : int32 or int64 (ceil(T / block_size), N)
        The blocks of keys of each block of queries. One that is listed twice counts twice.
    block_size : int
        Rows of a block.
    scale : float
        What the products of queries and keys are multiplied by.

    Returns
    -------
    float32 (T, D)

    Examples
    --------
    >>> rows = torch.eye(2)
    >>> block_attention(rows, rows, rows, torch.tensor([[0], [1]]), 1, 1.0).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows, columns = query.shape
    num_keys = key.shape[0]
    padding = -num_keys % block_size
    keys, values = (
        torch.nn.functional.pad(matrix, (0, 0, 0, padding)).view(-1, block_size, columns)[blocks]
        for matrix in (key, value)
    )
    queries = torch.nn.functional.pad(query, (0, 0, 0, -rows % block_size))
    queries = queries.view(-1, block_size, columns)
    scores = torch.einsum("bqd,bnkd->bqnk", queries, keys) * scale
    places = blocks.unsqueeze(-1) * block_size + torch.arange(block_size)
    scores = scores.masked_fill((places >= num_keys).unsqueeze(1), float("-inf"))
    weights = scores.flatten(2).softmax(-1)
    pooled = torch.einsum("bqk,bkd->bqd", weights, values.flatten(1, 2))
    return pooled.reshape(-1, columns)[:rows].contiguous()


def _fake_block_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    blocks: torch.Tensor,
    block_size: int,
    scale: float,
) -> torch.Tensor:
    return torch.empty_like(query)


_registered = block_attention
_registered.register_fake(_fake_block_attention)
