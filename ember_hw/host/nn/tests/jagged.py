# pyright: basic
"""What of TorchRec's interface a collection uses, without TorchRec."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import torch


class PoolingType(Enum):
    SUM = "SUM"
    MEAN = "MEAN"


@dataclass
class EmbeddingBagConfig:
    num_embeddings: int
    embedding_dim: int
    name: str
    feature_names: list[str]
    pooling: PoolingType = PoolingType.SUM


class KeyedJaggedTensor:
    """`stride` bags of each key, key after key."""

    def __init__(self, keys, values, offsets, stride, weights=None):
        self._keys, self._values, self._offsets = keys, values, offsets
        self._stride, self._weights = stride, weights

    @classmethod
    def of(cls, features, weights=None):
        """Make one of lists of bags by key."""
        bags = [torch.tensor(bag, dtype=torch.int64) for own in features.values() for bag in own]
        lengths = torch.tensor([len(bag) for bag in bags], dtype=torch.int64)
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        stride = len(next(iter(features.values())))
        values = torch.cat(bags) if bags else torch.empty(0, dtype=torch.int64)
        return cls(list(features), values, offsets, stride, weights)

    def keys(self):
        return self._keys

    def values(self):
        return self._values

    def offsets(self):
        return self._offsets

    def stride(self):
        return self._stride

    def weights_or_none(self):
        return self._weights


class TorchRecCollection(torch.nn.Module):
    """`torchrec.EmbeddingBagCollection`, as far as `from_torch` reads it."""

    def __init__(self, tables, is_weighted=False):
        super().__init__()
        self._tables, self._is_weighted = tables, is_weighted
        self.embedding_bags = torch.nn.ModuleDict(
            {
                table.name: torch.nn.EmbeddingBag(
                    table.num_embeddings,
                    table.embedding_dim,
                    mode=table.pooling.value.lower(),
                    include_last_offset=True,
                )
                for table in tables
            }
        )

    def embedding_bag_configs(self):
        return self._tables

    def is_weighted(self):
        return self._is_weighted

    def forward(self, features):
        rows, bags = [], features.stride()
        for table in self._tables:
            for name in table.feature_names:
                first = features.keys().index(name) * bags
                own = features.offsets()[first : first + bags + 1]
                part = slice(int(own[0]), int(own[-1]))
                weights = features.weights_or_none()
                rows.append(
                    self.embedding_bags[table.name](
                        features.values()[part],
                        own - own[0],
                        weights[part] if self._is_weighted else None,
                    )
                )
        return torch.cat(rows, 1)
