# pyright: basic
"""A small DLRM, and batches for it."""

from __future__ import annotations

import torch
from torch import nn


class Recommender(nn.Module):
    """A small DLRM."""

    def __init__(self, tables: int, columns: int = 8, sparse: bool = False):
        super().__init__()
        torch.manual_seed(1)
        self.bags = nn.ModuleList(
            nn.EmbeddingBag(20 + number, columns, mode="sum", sparse=sparse)
            for number in range(tables)
        )
        self.bottom = nn.Sequential(nn.Linear(5, columns), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(columns + pairs, 4), nn.ReLU(), nn.Linear(4, 1))

    def forward(self, dense, indices, offsets):
        bottom = self.bottom(dense)
        rows = [bag(i, o) for bag, i, o in zip(self.bags, indices, offsets, strict=True)]
        stacked = torch.stack([bottom, *rows], 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        first, second = torch.tril_indices(len(rows) + 1, len(rows) + 1, -1)
        return self.top(torch.cat([bottom, products[:, first, second]], 1))


def batch_of(model: Recommender, size: int, seed: int = 0):
    random = torch.Generator().manual_seed(seed)
    indices, offsets = [], []
    for bag in model.bags:
        lengths = torch.randint(0, 4, (size,), generator=random)
        rows = bag.get_parameter("weight").shape[0]
        indices.append(torch.randint(0, rows, (int(lengths.sum()),), generator=random))
        offsets.append(torch.cumsum(lengths, 0) - lengths)
    return torch.randn(size, 5, generator=random), indices, offsets
