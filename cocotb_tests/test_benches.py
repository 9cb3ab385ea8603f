"""Every test of every bench as a test of pytest; those of one bench and config run together."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest

from cocotb_tests.runner import Outcome, SimulationFailed, simulate, tests_of
from ember_hw.config import AcceleratorConfig

pytestmark = [pytest.mark.cocotb, pytest.mark.slow]


@dataclass(frozen=True)
class Simulation:
    """Tests of a bench that run on one config."""

    bench: str
    preset: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.bench}-{self.preset}"


SIMULATIONS = [
    Simulation(bench, "tiny", tuple(tests_of(bench)))
    for bench in ("tb_access_unit",)
]


@pytest.fixture(scope="module")
def outcome(request: pytest.FixtureRequest) -> Outcome:
    """Run the tests of a simulation that this session selected."""
    simulation: Simulation = request.param
    params = [getattr(item, "callspec").params for item in request.session.items if item.path == request.path]
    names = [p["name"] for p in params if p["outcome"] is simulation]
    config = AcceleratorConfig.preset(simulation.preset)
    return simulate(simulation.bench, config, names, waves=bool(os.environ.get("WAVES")))


@pytest.mark.parametrize(
    ("outcome", "name"),
    [
        pytest.param(simulation, name, id=f"{simulation}-{name}")
        for simulation in SIMULATIONS
        for name in simulation.names
    ],
    indirect=["outcome"],
)
def test_bench(outcome: Outcome, name: str) -> None:
    outcome.check(name)
