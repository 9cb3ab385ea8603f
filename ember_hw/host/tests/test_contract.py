# pyright: basic
"""Every rule of the contract at every entry point that can express it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from ember_hw.config import AcceleratorConfig
from ember_hw.host.backends.interpreter import Backend
from ember_hw.host.device import Device
from ember_hw.host.reference import bit_equal
from ember_hw.host.tests.contract import entry_points
from ember_hw.host.tests.contract.elsewhere import ELSEWHERE
from ember_hw.host.tests.contract.results import RESULTS
from ember_hw.host.tests.contract.rule import (
    CLI,
    ENTRY_POINTS,
    FUNCTIONAL,
    GRAPH,
    MODULE,
    RUN,
    Rule,
)
from ember_hw.host.tests.contract.rules import RULES
from ember_hw.host.tests.counting import CountingBackend

CALLS = {
    RUN: entry_points.device_run,
    MODULE: entry_points.module,
    FUNCTIONAL: entry_points.functional,
    GRAPH: entry_points.torch_compile,
}
ALL = [*RULES, *RESULTS]


@pytest.fixture(scope="module")
def counting() -> CountingBackend:
    return CountingBackend(Backend(AcceleratorConfig()))


@pytest.fixture(scope="module")
def device(counting) -> Device:
    return Device("counting", counting)


def message_of(rule: Rule, entry_point: str) -> str:
    """Return the text of a rule's error; an argument that shouldn't be there is told by kind."""
    is_array = entry_point in (RUN, CLI)
    return rule.message.replace("{offsets}", "ndarray" if is_array else "Tensor")


@pytest.mark.parametrize(
    ("rule", "entry_point"),
    [
        pytest.param(rule, entry_point, id=f"{rule.name}-{entry_point}")
        for rule in ALL
        for entry_point in CALLS
        if entry_point not in rule.not_at
    ],
)
def test_rule_holds(rule: Rule, entry_point: str, device: Device, counting: CountingBackend):
    weight, call = rule.weight(), CALLS[entry_point]
    if rule.error is None:
        found = call(rule, weight, device)
        assert bit_equal(found, rule.answer(weight))
        return
    if entry_point == GRAPH:
        entry_points.graph_of(rule, device)  # compiling it runs it once
    counting.launches = 0
    with pytest.raises(rule.error, match=f"^{re.escape(message_of(rule, entry_point))}$"):
        call(rule, weight, device)
    assert counting.launches == 0


@pytest.mark.parametrize(
    "rule", [pytest.param(rule, id=rule.name) for rule in ALL if CLI not in rule.not_at]
)
def test_rule_holds_at_the_command_line(rule: Rule, device: Device, tmp_path: Path, capsys):
    weight = rule.weight()
    code, output = entry_points.command_line(rule, weight, device, tmp_path)
    if rule.error is None:
        assert code == 0
        assert bit_equal(np.load(output), rule.answer(weight))
        return
    assert code == 1
    assert not output.exists()
    # The terminal breaks lines.
    shown = " ".join(capsys.readouterr().err.split())
    assert message_of(rule, CLI) in shown


def test_each_rule_is_held_somewhere_and_each_gap_has_a_reason() -> None:
    assert len({rule.name for rule in ALL}) == len(ALL)
    for rule in ALL:
        assert rule.not_at.keys() < set(ENTRY_POINTS)
        assert all(rule.not_at.values())
        assert (rule.error is None) == (rule.message == "")


@pytest.mark.parametrize("rule", ELSEWHERE)
def test_rules_that_are_held_elsewhere_are(rule: str) -> None:
    file, test = ELSEWHERE[rule]
    tree = ast.parse((Path(__file__).parents[2] / file).read_text())
    assert test in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
