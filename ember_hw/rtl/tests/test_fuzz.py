"""Random programs with random faults: hardware does what the interpreters say, or says why not."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ember_hw.bench.fuzzing.campaign import Account, Campaign
from ember_hw.bench.fuzzing.configs import CLUSTERS, CONFIGS
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.tests.mutations import mutated_verilog

pytestmark = [pytest.mark.verilator, pytest.mark.timeout(900)]  # each test may build a model

#: Draws on units alone, and on clusters.
DRAWS = {"tiny": 200, "ports": 100, "pair": 50}
#: Seeds that, on one config or another, lost a fault among requests when the host only looked at
#: STATUS before a start.
LOST = (950, 2141)


def run(config: AcceleratorConfig, seeds: Iterable[int], *, units: int = 1) -> Account:
    campaign = Campaign(config, units=units, optimise=False)
    try:
        return campaign.run(seeds)
    finally:
        campaign.close()


@pytest.mark.parametrize("name", DRAWS)
def test_random_programs(name: str) -> None:
    config, units = CLUSTERS.get(name) or (CONFIGS[name], 1)
    account = run(config, range(DRAWS[name]), units=units)
    assert account.cases == DRAWS[name] * units
    assert account.long_legal >= account.cases / 2
    assert account.failures == []


@pytest.mark.parametrize("name", ["tiny", "ports"])
def test_no_fault_among_requests_is_lost(name: str) -> None:
    account = run(CONFIGS[name], LOST)
    assert account.failures == []


@pytest.mark.slow
def test_a_broken_unit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    config = CONFIGS["tiny"]
    broken = mutated_verilog("next_value_stale", config)
    monkeypatch.setattr("ember_hw.bench.fuzzing.hardware.cached_verilog", lambda *_: broken)
    account = run(config, range(20))
    (failure, *_) = account.failures
    assert failure.reason
    assert "pair=1" in failure.program  # what the mutation breaks
