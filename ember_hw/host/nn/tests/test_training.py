# pyright: basic
"""A recommender trained with the drop-in modules follows the one with torch's."""

from __future__ import annotations

import pytest
import torch

from ember_hw import nn

STEPS, SAMPLES, ROWS, COLUMNS = 200, 8, 30, 4


class Recommender(torch.nn.Module):
    """A DLRM with two tables of bags and one of rows."""

    def __init__(self, modules):
        super().__init__()
        self.bags = torch.nn.ModuleList(
            [
                modules.EmbeddingBag(ROWS, COLUMNS, mode="sum"),
                modules.EmbeddingBag(ROWS, COLUMNS, mode="mean", padding_idx=0),
            ]
        )
        self.user = modules.Embedding(ROWS, COLUMNS)
        self.bottom = torch.nn.Sequential(torch.nn.Linear(5, COLUMNS), torch.nn.ReLU())
        self.top = torch.nn.Sequential(
            torch.nn.Linear(COLUMNS + 6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)
        )

    def forward(self, dense, items, offsets, users):
        bottom = self.bottom(dense)
        rows = [bag(items, offsets) for bag in self.bags]
        stacked = torch.stack([bottom, *rows, self.user(users)], 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        first, second = torch.tril_indices(4, 4, -1)
        return self.top(torch.cat([bottom, products[:, first, second]], 1)).squeeze(1)


def losses(modules, steps=STEPS):
    torch.manual_seed(0)
    model = Recommender(modules)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.3)
    random = torch.Generator().manual_seed(1)
    found = []
    for _ in range(steps):
        lengths = torch.randint(0, 5, (SAMPLES,), generator=random)
        items = torch.randint(0, ROWS, (int(lengths.sum()),), generator=random)
        users = torch.randint(0, ROWS, (SAMPLES,), generator=random)
        dense = torch.randn(SAMPLES, 5, generator=random)
        clicked = (users % 3 == 0).float()
        logits = model(dense, items, lengths.cumsum(0) - lengths, users)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return torch.tensor(found)


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_losses_are_those_of_torch_for_200_steps(device, counting, one_thread):
    found, wanted = losses(nn), losses(torch.nn)
    assert counting.launches == 3 * STEPS
    assert wanted[-20:].mean() < 0.9 * wanted[:20].mean()
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-4)
