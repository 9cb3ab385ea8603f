"""Random programs with random faults: hardware does what the interpreters say, or says why not."""

from __future__ import annotations

import pytest

from ember_hw.bench.fuzzing.campaign import Account, Campaign
from ember_hw.bench.fuzzing.configs import CONFIGS
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.tests.mutations import mutated_verilog

pytestmark = [pytest.mark.verilator, pytest.mark.timeout(900)]  # each test may build a model

CASES = {"tiny": 200, "ports": 100}


def run(config: AcceleratorConfig, cases: int) -> Account:
    campaign = Campaign(config, optimise=False)
    try:
        return campaign.run(range(cases))
    finally:
        campaign.close()


@pytest.mark.parametrize("name", CASES)
def test_random_programs(name: str) -> None:
    account = run(CONFIGS[name], CASES[name])
    assert account.long_legal >= CASES[name] / 2
    assert account.failures == []


@pytest.mark.slow
def test_a_broken_unit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    config = CONFIGS["tiny"]
    broken = mutated_verilog("next_value_stale", config)
    monkeypatch.setattr("ember_hw.bench.fuzzing.hardware.cached_verilog", lambda *_: broken)
    account = run(config, 20)
    (failure, *_) = account.failures
    assert failure.reason
    assert "pair=1" in failure.program  # what the mutation breaks
