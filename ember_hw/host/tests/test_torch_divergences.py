# pyright: basic
"""Where one release of torch differs from the contract: that we don't, and that it still does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as theirs

import ember_hw.nn.functional as ours

RELEASE = "2.13"
NAN = float("nan")


@dataclass(frozen=True)
class Divergence:
    """A call, the contract's answer, and that of the release it was seen in.

    Attributes
    ----------
    name : str
        What differs.
    run : callable
        Makes the call with our functions or torch's.
    contract, torch : list
        The two answers.
    """

    name: str
    run: Callable[[Any], torch.Tensor]
    contract: list[Any]
    torch: list[Any]


def _trailing(mode: str) -> Callable[[Any], torch.Tensor]:
    table = torch.from_numpy(np.arange(4, dtype=np.float32)[:, None])
    return lambda functions: functions.embedding_bag(
        torch.tensor([0, 1, 3, 0]),
        table,
        torch.tensor([0, 1, 2]),
        mode=mode,
        include_last_offset=True,
    )


def _maximum(*order: int) -> Callable[[Any], torch.Tensor]:
    table = torch.tensor([[1.0], [NAN], [2.0]])
    return lambda functions: functions.embedding_bag(torch.tensor([order]), table, mode="max")


def _mean(dtype: torch.dtype, count: int) -> Callable[[Any], torch.Tensor]:
    table = torch.ones(1, 1, dtype=dtype)
    indices = torch.zeros(1, count, dtype=torch.int64)
    return lambda functions: functions.embedding_bag(indices, table, mode="mean")


def _by_frequency(functions: Any) -> torch.Tensor:
    table = torch.zeros(4, 1, requires_grad=True)
    indices, offsets = torch.tensor([1, 1, 1, 2]), torch.tensor([0])
    functions.embedding_bag(
        indices, table, offsets, mode="sum", scale_grad_by_freq=True
    ).sum().backward()
    assert table.grad is not None
    return table.grad


DIVERGENCES = [
    Divergence("trailing indices join the last sum", _trailing("sum"), [[0], [1]], [[0], [4]]),
    Divergence("and the last mean", _trailing("mean"), [[0], [1]], [[0], [4 / 3]]),
    Divergence("and the last maximum", _trailing("max"), [[0], [1]], [[0], [3]]),
    Divergence("maximum with a NaN in the middle", _maximum(0, 1, 2), [[NAN]], [[2]]),
    Divergence("mean of 257 bfloat16", _mean(torch.bfloat16, 257), [[1]], [[1.0078125]]),
    Divergence(
        "gradient by frequency", _by_frequency, [[0], [1], [1], [0]], [[0], [1], [1 / 3], [0]]
    ),
]


def _is(found: torch.Tensor, wanted: list[Any]) -> bool:
    return torch.allclose(found.float(), torch.tensor(wanted).float(), equal_nan=True)


def _needs_release() -> None:
    release = ".".join(torch.__version__.split(".")[:2])
    if release != RELEASE:
        pytest.skip(f"seen in torch {RELEASE}, this is {release}")


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=lambda divergence: divergence.name)
def test_contract_holds_where_torch_differs(divergence: Divergence):
    assert _is(divergence.run(ours), divergence.contract)


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=lambda divergence: divergence.name)
def test_torch_still_differs(divergence: Divergence):
    _needs_release()
    found = divergence.run(theirs)
    assert _is(found, divergence.torch)
    assert not _is(found, divergence.contract)


def _bfloat16_sums(functions: Any, **options: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return sums of bfloat16, and what they are when rounded once."""
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(50, 64, generator=generator).bfloat16()
    indices = torch.randint(1, 50, (3, 3), generator=generator)
    wanted = torch.stack([table[row].float().sum(0) for row in indices]).bfloat16()
    return functions.embedding_bag(indices, table, mode="sum", **options), wanted


@pytest.mark.parametrize("padding_idx", [None, 0])
def test_sums_of_bfloat16_are_rounded_once(padding_idx):
    found, wanted = _bfloat16_sums(ours, padding_idx=padding_idx)
    assert torch.equal(found, wanted)


def test_torch_still_rounds_them_as_padding_idx_says():
    _needs_release()
    assert torch.equal(*_bfloat16_sums(theirs, padding_idx=0))
    assert not torch.equal(*_bfloat16_sums(theirs))


def test_torch_s_byte_operator_still_ignores_the_mode():
    # There is nothing of ours to hold beside it: torch's packed weights are no tensor.
    _needs_release()
    packed = torch.ops.quantized.embedding_bag_byte_prepack(torch.tensor([[0.0, 255], [1, 256]]))
    rows = [
        torch.ops.quantized.embedding_bag_byte_rowwise_offsets(
            packed, torch.tensor([0, 1]), torch.tensor([0]), False, mode, False, None, None, False
        )
        for mode in (0, 1, 2)
    ]
    assert all(row.tolist() == [[1, 511]] for row in rows)
