"""Negative controls: the end-to-end comparison goes red on a wrong unit, on a wrong weight."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import ember_hw
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host.backends import verilator
from ember_hw.host.reference import bit_equal, exact
from ember_hw.host.request import normalise_request
from ember_hw.rtl.emit_verilog import emit_verilog
from ember_hw.rtl.tests.mutations import mutated_verilog

pytestmark = [pytest.mark.verilator, pytest.mark.timeout(900)]  # each test may build a model

CONFIG = AcceleratorConfig.preset("tiny")
SEED = 20

#: Bags of every kind, over several lines of indices.
LENGTHS = (0, 1, 17, 0, 40, 1, 0)


def agrees(poison: Callable[[np.ndarray], None] | None = None) -> bool:
    """Run an EmbeddingBag from torch to pooled rows; tell whether they are the reference's.

    `poison` changes the weights that the device sees after the reference's were taken.
    """
    rng = np.random.default_rng(SEED)
    bag = torch.nn.EmbeddingBag(60, 5, mode="sum").requires_grad_(False)
    bag.weight.copy_(torch.from_numpy(rng.standard_normal((60, 5), np.float32)))
    indices = rng.permutation(60)[: sum(LENGTHS)]
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)[:-1]])
    expected = exact(
        bag.weight.numpy().copy(), normalise_request(indices, offsets, num_embeddings=60)
    )
    program = ember_hw.compile(
        bag, (torch.from_numpy(indices), torch.from_numpy(offsets)), config=CONFIG
    )
    if poison is not None:
        poison(bag.weight.numpy()[indices[-1]])
    with ember_hw.open_device(
        "verilator", config=CONFIG, optimise=False, max_idle_cycles=5_000
    ) as device:
        try:
            pooled = device.run(program, (indices, offsets))
        except DeviceError:
            return False
    return bit_equal(pooled, expected)


def test_comparison_is_green_on_the_right_unit() -> None:
    assert agrees()


@pytest.mark.parametrize("name", ["line_change_unseen", "iterate_event_dropped"])
def test_comparison_is_red_on_a_broken_copy_of_the_rtl(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = mutated_verilog(name, CONFIG)
    assert broken != emit_verilog(CONFIG)
    monkeypatch.setattr(verilator, "cached_verilog", lambda *_: broken)
    assert not agrees()


def test_comparison_is_red_on_a_poisoned_weight() -> None:
    def flip_last_bit(row: np.ndarray) -> None:
        row.view(np.uint32)[0] ^= 1

    assert not agrees(flip_last_bit)
