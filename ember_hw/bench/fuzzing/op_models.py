# pyright: basic
"""Models of every op class in ordinary torch code, and drawn inputs of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from ember_hw.compiler.frontend.torch_ops import block_attention, fusedmm, spmm

__all__ = ["CASES", "ROWS", "VARIANTS", "Model", "OpCase"]

#: Rows of tables and nodes of graphs, where inputs are drawn.
ROWS = 7

Inputs = tuple[np.ndarray, ...]


class Model(nn.Module):
    """A function of a module with tables and the inputs.

    Parameters
    ----------
    function : callable
        What the model computes.
    columns : int
        Of its tables.
    seed : int
        Of the tables.
    rows, relations : int
        Rows of the tables `entities` and `weight`, and of `relations`.
    """

    def __init__(
        self,
        function: Callable[..., torch.Tensor],
        columns: int,
        seed: int = 0,
        rows: int = ROWS,
        relations: int = 3,
    ) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.function = function
        self.rows = rows
        self.entities = nn.Embedding(rows, columns)
        self.relations = nn.Embedding(relations, columns)
        self.weight = nn.Parameter(torch.randn(rows, columns))

    def forward(self, a, b=None, c=None, d=None):
        """Compute the function of the inputs."""
        given = [value for value in (a, b, c, d) if value is not None]
        return self.function(self, *given)


@dataclass(frozen=True)
class OpCase:
    """A model of one operation.

    Attributes
    ----------
    name : str
        Of the test.
    kind : str
        Op class that it is.
    function : callable
        What the model computes.
    inputs : callable of (random, columns, size)
        Inputs of a call, as NumPy arrays; `size` is the number of lookups, edges or triples.
    columns : int
        The columns must be a multiple of it.
    """

    name: str
    kind: str
    function: Callable[..., torch.Tensor]
    inputs: Callable[[np.random.Generator, int, int], Inputs]
    columns: int = 1

    def __str__(self) -> str:
        return self.name


def _bags(random, columns, size):
    ends = np.sort(random.integers(0, size + 1, 4)) if size else np.zeros(4, np.int64)
    return random.integers(0, ROWS, size), np.concatenate(([0], ends))


def _weighted(random, columns, size):
    indices, offsets = _bags(random, columns, size)
    return indices, offsets, random.standard_normal(size).astype(np.float32)


def _bag(mode: str, **options: Any):
    def function(model, indices, offsets=None, weights=None):
        return nn.functional.embedding_bag(
            indices,
            model.weight,
            offsets,
            mode=mode,
            per_sample_weights=weights,
            **options,
        )

    return function


def _matrix(random, columns, size):
    return (random.integers(0, ROWS, (3, max(size, 1))),)


def _edges(random, columns, size):
    dense = random.standard_normal((ROWS, columns)).astype(np.float32)
    # The last node has no edge.
    return dense, random.integers(0, ROWS, size), random.integers(0, ROWS - 1, size)


def _weighted_edges(random, columns, size):
    dense, source, target = _edges(random, columns, size)
    return dense, np.stack([source, target]), random.standard_normal(size).astype(np.float32)


def _csr(random, columns, size):
    dense, source, target = _edges(random, columns, size)
    crow = np.concatenate(([0], np.cumsum(np.bincount(target, minlength=ROWS))))
    return crow, source, random.standard_normal(size).astype(np.float32), dense


def _own_edges(random, columns, size):
    return _edges(random, columns, size)[1:]


def _blocks(random, columns, size):
    # 5 queries and 2 * size + 1 keys: the last block of both is a partial one.
    queries = random.standard_normal((5, columns)).astype(np.float32)
    keys, values = random.standard_normal((2, 2 * size + 1, columns)).astype(np.float32)
    return queries, keys, values, random.integers(0, size + 1, (3, 2))


def _whole_blocks(random, columns, size):
    queries = random.standard_normal((6, columns)).astype(np.float32)
    keys, values = random.standard_normal((2, 8, columns)).astype(np.float32)
    return queries, keys, values, random.integers(0, 4, (3, 2))


def _attention_by_einsum(model, q, k, v, blocks):
    keys, values = (matrix.view(-1, 2, q.shape[1])[blocks] for matrix in (k, v))
    scores = torch.einsum("bqd,bnkd->bqnk", q.view(-1, 2, q.shape[1]), keys) * 0.25
    weights = scores.flatten(2).softmax(-1)
    return torch.einsum("bqk,bkd->bqd", weights, values.flatten(1, 2)).reshape(q.shape)


def _attention_by_matmul(model, q, k, v, blocks):
    columns = q.shape[1]
    keys, values = (matrix.reshape(4, 2, columns)[blocks].flatten(1, 2) for matrix in (k, v))
    scores = q.reshape(3, 2, columns) @ keys.transpose(1, 2) / columns**0.5
    return (scores.softmax(-1) @ values).reshape(6, columns)


def _triples(random, columns, size):
    entities, relations = random.integers(0, ROWS, (2, size)), random.integers(0, 3, size)
    return entities[0], relations, entities[1]


def _scatter(reduce: str):
    def function(model, x, source, target):
        index = target.unsqueeze(-1).expand(-1, x.shape[1])
        out = x.new_zeros(model.rows, x.shape[1])
        return out.scatter_reduce(0, index, x[source], reduce, include_self=False)

    return function


def _fused(nonlinearity):
    def function(model, x, source, target):
        ends, others = x[target], x.index_select(0, source)
        score = nonlinearity((ends * others).sum(-1, keepdim=True))
        return torch.zeros_like(x).index_add(0, target, score * others)

    return function


def _two_matrices(model, x, source, target):
    score = torch.relu((model.weight[target] * x[source]).sum(-1)).unsqueeze(-1)
    return torch.zeros_like(x).index_add(0, target, score * x[source])


def _complex(model, heads, relations, tails):
    (a, b), (c, d), (e, f) = (
        table(index).chunk(2, -1)
        for table, index in (
            (model.entities, heads),
            (model.relations, relations),
            (model.entities, tails),
        )
    )
    return (a * c * e + b * c * f + a * d * f - b * d * e).sum(-1)


def _transe(norm: int):
    def function(model, heads, relations, tails):
        distance = model.entities(heads) + model.relations(relations) - model.entities(tails)
        return -torch.norm(distance, p=norm, dim=-1)

    return function


def _padded(model, indices):
    return nn.functional.embedding(indices, model.weight, padding_idx=1)


#: At least one model of each way to write an op class.
CASES = (
    *(OpCase(f"bag_{mode}", "embedding_bag", _bag(mode), _bags) for mode in ("sum", "mean", "max")),
    *(
        OpCase(f"bag_{mode}_padding", "embedding_bag", _bag(mode, padding_idx=2), _bags)
        for mode in ("sum", "mean", "max")
    ),
    *(
        OpCase(f"bag_{mode}_matrix", "embedding_bag", _bag(mode, padding_idx=-1), _matrix)
        for mode in ("sum", "mean", "max")
    ),
    OpCase("bag_weighted", "embedding_bag", _bag("sum", padding_idx=0), _weighted),
    OpCase("embedding", "embedding", lambda m, i: m.entities(i), _matrix),
    OpCase("embedding_padding", "embedding", lambda m, i: _padded(m, i), _matrix),
    OpCase("spmm", "spmm", lambda m, crow, col, v, x: spmm(crow, col, v, x), _csr),
    OpCase(
        "index_add",
        "aggregation",
        lambda m, x, s, t: torch.zeros_like(x).index_add(0, t, x[s]),
        _edges,
    ),
    OpCase(
        "index_add_weighted",
        "aggregation",
        lambda m, x, e, w: x.new_zeros(x.shape).index_add_(
            0, e[1], w.view(-1, 1) * x.index_select(0, e[0])
        ),
        _weighted_edges,
    ),
    OpCase(
        "scatter_add",
        "aggregation",
        lambda m, x, s, t: torch.zeros_like(x).scatter_add_(0, t[:, None].expand_as(x[s]), x[s]),
        _edges,
    ),
    *(OpCase(f"scatter_{r}", "aggregation", _scatter(r), _edges) for r in ("sum", "mean", "amax")),
    OpCase(
        "own_features",
        "aggregation",
        lambda m, s, t: torch.zeros_like(m.weight).index_add(0, t, m.weight[s]),
        _own_edges,
    ),
    OpCase("fused_sigmoid", "fusedmm", _fused(torch.sigmoid), _edges),
    OpCase("fused_exp", "fusedmm", _fused(torch.exp), _edges),
    OpCase("fused_relu", "fusedmm", _fused(torch.relu), _edges),
    OpCase("fused_identity", "fusedmm", _fused(lambda x: x), _edges),
    OpCase("fused_two_matrices", "fusedmm", _two_matrices, _edges),
    OpCase(
        "fused_operator",
        "fusedmm",
        lambda m, crow, col, x: fusedmm(crow, col, x, x, "sigmoid"),
        lambda random, columns, size: tuple(
            array for place, array in enumerate(_csr(random, columns, size)) if place != 2
        ),
    ),
    OpCase(
        "block_attention",
        "block_attention",
        lambda m, q, k, v, b: block_attention(q, k, v, b, 2, 0.5),
        _blocks,
    ),
    *(
        OpCase(f"plain_attention_{name}", "block_attention", function, _whole_blocks)
        for name, function in (("einsum", _attention_by_einsum), ("matmul", _attention_by_matmul))
    ),
    OpCase("transe_1", "scores", _transe(1), _triples),
    OpCase("transe_2", "scores", _transe(2), _triples),
    OpCase(
        "distmult",
        "scores",
        lambda m, h, r, t: (m.entities(h) * m.relations(r) * m.entities(t)).sum(-1),
        _triples,
    ),
    OpCase("complex", "scores", _complex, _triples, columns=2),
    OpCase(
        "squared_distance",
        "scores",
        lambda m, h, r, t: (
            (m.entities(h) + m.relations(r) - m.weight[t]).pow(2).sum(1).sqrt().neg()
        ),
        _triples,
    ),
)


def _narrow(inputs: Callable[..., Inputs]) -> Callable[..., Inputs]:
    def narrowed(random, columns, size):
        return tuple(
            array.astype(np.int32) if array.dtype == np.int64 else array
            for array in inputs(random, columns, size)
        )

    return narrowed


def _last_offset(random, columns, size):
    indices, offsets = _bags(random, columns, size)
    return indices, np.append(offsets, size)


_NARROW = ("bag_mean", "bag_weighted", "embedding", "spmm", "index_add", "fused_relu", "distmult")
#: More of some classes: int32 in place of int64, and options of bags.
VARIANTS = (
    *(
        OpCase(f"{c.name}_int32", c.kind, c.function, _narrow(c.inputs), c.columns)
        for c in CASES
        if c.name in _NARROW
    ),
    *(
        OpCase(
            f"bag_{mode}_last_offset",
            "embedding_bag",
            _bag(mode, include_last_offset=True),
            _last_offset,
        )
        for mode in ("sum", "mean", "max")
    ),
    OpCase("bag_weighted_all", "embedding_bag", _bag("sum"), _weighted),
)
