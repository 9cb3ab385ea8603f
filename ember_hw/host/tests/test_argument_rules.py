# pyright: basic
"""No backend is asked for a call that breaks a rule, and the next call is right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module

import numpy as np
import pytest

from ember_hw.config import AcceleratorConfig
from ember_hw.host.device import BACKENDS, Device
from ember_hw.host.reference import bit_equal
from ember_hw.host.tests.contract.entry_points import device_run
from ember_hw.host.tests.contract.rule import RUN, Bag, Rule
from ember_hw.host.tests.contract.rules import RULES
from ember_hw.host.tests.counting import CountingBackend
from ember_hw.host.tests.programs import bag_program

CONFIG = AcceleratorConfig.preset("tiny")
TABLE = np.random.default_rng(0).standard_normal((10, 7), np.float32)
PROGRAM = bag_program(TABLE, config=CONFIG)
INPUTS = (np.array([3, 1, 4, 1]), np.array([0, 0, 3]))
POOLED = np.stack([np.zeros(7, np.float32), (TABLE[3] + TABLE[1]) + TABLE[4], TABLE[1]])

REFUSED = [rule for rule in RULES if rule.error is not None and RUN not in rule.not_at]


@pytest.fixture(
    scope="module",
    params=[
        "interpreter",
        pytest.param(
            "verilator",
            marks=[pytest.mark.verilator, pytest.mark.timeout(900)],  # builds the model
        ),
    ],
)
def backend(request: pytest.FixtureRequest) -> Iterator[CountingBackend]:
    options = {"optimise": False} if request.param == "verilator" else {}
    opened = import_module(BACKENDS[request.param]).Backend(CONFIG, **options)
    yield CountingBackend(opened)
    opened.close()


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.name) for rule in REFUSED])
def test_refused_before_any_device_access_and_the_next_call_is_right(
    backend: CountingBackend, rule: Rule
) -> None:
    assert rule.error is not None
    device = Device("counting", backend)
    backend.calls = 0
    message = rule.message.replace("{offsets}", "ndarray")
    with pytest.raises(rule.error, match=f"^{re.escape(message)}$"):
        device_run(rule, rule.weight(), device)
    assert backend.calls == 0
    assert bit_equal(device.run(PROGRAM, INPUTS), POOLED)
    assert backend.calls == 2


def test_a_list_is_no_array(backend: CountingBackend) -> None:
    message = "indices must be a NumPy array or a torch tensor, not list (table 'weight')"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        Device("counting", backend).run(PROGRAM, ([1, 2], np.array([0])))


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(rule, id=rule.name)
        for rule in RULES
        if rule.bags is not None and rule.bag == Bag()
    ],
)
def test_rows_are_right_on_each_backend(backend: CountingBackend, rule: Rule) -> None:
    weight = rule.weight()
    found = device_run(rule, weight, Device("counting", backend))
    assert bit_equal(found, rule.answer(weight))
