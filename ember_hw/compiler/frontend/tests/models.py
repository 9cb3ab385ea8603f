# pyright: basic, reportIncompatibleMethodOverride=false
"""Models that the front end must refuse, or read with care."""

from typing import Any

import torch
from torch import nn

FILE = __file__


class Wrapped(nn.Module):
    """A bag in a submodule, next to parameters that nothing uses."""

    def __init__(self, **options: Any):
        super().__init__()
        options = {"mode": "sum", **options}
        self.user = nn.EmbeddingBag(10, 4, **options)
        self.unused = nn.Linear(2, 2)

    def forward(self, ids, ends):
        return self.user(ids, ends)


class ThenLinear(Wrapped):
    def __init__(self):
        super().__init__()
        self.top = nn.Linear(4, 2)

    def forward(self, ids, ends):
        return self.top(self.user(ids, ends))


class TwoBags(Wrapped):
    def forward(self, ids, ends):
        return self.user(ids, ends) + self.user(ids, ends)


class Doubled(Wrapped):
    def forward(self, ids, ends):
        return self.user(ids * 2, ends)


class OffsetsFromLengths(Wrapped):
    def forward(self, ids, lengths):
        return self.user(ids, lengths.cumsum(0))


class SameInput(Wrapped):
    def forward(self, ids):
        return self.user(ids, ids)


class ConstantOffsets(Wrapped):
    def __init__(self):
        super().__init__()
        self.register_buffer("ends", torch.tensor([0, 2]))

    def forward(self, ids):
        return self.user(ids, self.ends)


class IgnoresInput(Wrapped):
    def forward(self, ids, ends, extra):
        return self.user(ids, ends)


class NoBag(nn.Module):
    def forward(self, ids):
        return ids


class TwoResults(Wrapped):
    def forward(self, ids, ends):
        return self.user(ids, ends), ids


class PassesInputOn(Wrapped):
    def forward(self, ids, ends):
        self.user(ids, ends)
        return ends


class BagSizes(Wrapped):
    """Uses the second result of the operator, which isn't the pooled rows."""

    def forward(self, ids, ends):
        results = torch.embedding_bag(self.user.weight, ids, ends, False, 0, False, None)
        return results[2]


class TableAsInput(nn.Module):
    def forward(self, ids, ends, table):
        return nn.functional.embedding_bag(ids, table, ends, mode="sum")


class ScaledTable(Wrapped):
    def forward(self, ids, ends):
        return nn.functional.embedding_bag(ids, self.user.weight * 2, ends, mode="sum")


class SkewedArange(Wrapped):
    """Flattens 2-D indices but starts its bags elsewhere."""

    def forward(self, ids):
        starts = torch.arange(0, ids.numel(), ids.shape[0])
        return self.user(ids.reshape(-1), starts)


class BranchesOn(Wrapped):
    """Takes another path, which is no bag of the indices, for some numbers of indices."""

    def __init__(self, takes_other_path):
        super().__init__()
        self.takes_other_path = takes_other_path

    def forward(self, ids, ends):
        if self.takes_other_path(ids.shape[0]):
            return self.user(ends, ends)
        return self.user(ids, ends)


class RaisesWhenTraced(nn.Module):
    def forward(self, ids):
        raise RuntimeError("no trace of me")
