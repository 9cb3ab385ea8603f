"""A recommender in plain PyTorch, its 26 tables looked up by one device call a forward pass.

    python examples/dlrm.py

DLRM has a bottom MLP for dense features, an embedding bag for each categorical one, the products of
all pairs of what these give, and a top MLP for the logit. Tables have the numbers of rows of the
Criteo data set, divided by 1000. Small tables have short rows, which a linear layer widens.
"""

from __future__ import annotations

import torch
from torch import nn

import ember_hw

#: Rows of each table: categories of the Criteo data set, in thousands, at least 3.
ROWS = (
    *(3, 3, 10132, 2203, 3, 3, 13, 3, 3, 94, 6, 8352, 4),
    *(3, 15, 5462, 3, 6, 3, 3, 7047, 3, 3, 287, 3, 143),
)
DENSE, WIDTH = 13, 16


class DLRM(nn.Module):
    """Logits of clicks."""

    def __init__(self, rows: tuple[int, ...] = ROWS) -> None:
        super().__init__()
        self.bottom = nn.Sequential(
            nn.Linear(DENSE, 64), nn.ReLU(), nn.Linear(64, WIDTH), nn.ReLU()
        )
        columns = [4 if count < 10 else 8 if count < 1000 else WIDTH for count in rows]
        self.bags = nn.ModuleList(
            nn.EmbeddingBag(count, width, mode="sum")
            for count, width in zip(rows, columns, strict=True)
        )
        self.widen = nn.ModuleList(
            nn.Identity() if width == WIDTH else nn.Linear(width, WIDTH, bias=False)
            for width in columns
        )
        pairs = len(rows) * (len(rows) + 1) // 2
        self.top = nn.Sequential(nn.Linear(WIDTH + pairs, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(
        self, dense: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor
    ) -> torch.Tensor:
        """Return the logit of each sample."""
        bottom = self.bottom(dense)
        rows = [
            widen(bag(indices[number], offsets[number]))
            for number, (bag, widen) in enumerate(zip(self.bags, self.widen, strict=True))
        ]
        features = torch.stack([bottom, *rows], 1)
        products = features @ features.transpose(1, 2)
        first, second = torch.tril_indices(len(rows) + 1, len(rows) + 1, -1)
        return self.top(torch.cat([bottom, products[:, first, second]], 1))


def batch(rows: tuple[int, ...], samples: int, seed: int) -> tuple[torch.Tensor, ...]:
    """Return dense features and skewed categories; some samples have many of these, some none."""
    random = torch.Generator().manual_seed(seed)
    lookups = 2 * samples
    skewed = torch.rand(len(rows), lookups, generator=random) ** 4
    indices = (skewed * torch.tensor(rows)[:, None]).long()
    ends = torch.randint(0, lookups + 1, (len(rows), samples - 1), generator=random)
    offsets = torch.cat([torch.zeros(len(rows), 1, dtype=torch.int64), ends.sort(1).values], 1)
    return torch.randn(samples, DENSE, generator=random), indices, offsets


def main() -> None:
    """Compare the logits of a few batches with those of torch alone."""
    torch.manual_seed(0)
    model = DLRM().eval()
    record = ember_hw.Record()
    config = ember_hw.AcceleratorConfig.preset("tables")
    with ember_hw.open_device("interpreter", config=config) as device, torch.no_grad():
        options = {"device": device, "record": record}
        fast = torch.compile(model, backend="ember_hw", options=options)
        difference = 0.0
        for seed in range(3):
            inputs = batch(ROWS, 32, seed)
            difference = max(difference, float((fast(*inputs) - model(*inputs)).abs().max()))
        print(record)
        print(f"logits within 1e-5 of torch's: {difference <= 1e-5}")
        print(f"lookups of the last call: {device.report.lookups:,}")


if __name__ == "__main__":
    main()
