"""Every test of every bench as a test of pytest; those of one bench and config run together."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import pytest

from cocotb_tests.runner import Outcome, SimulationFailed, names_of, simulate
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import ToolError

pytestmark = [pytest.mark.cocotb, pytest.mark.slow]


@dataclass(frozen=True)
class Simulation:
    """Tests of a bench that run on one config."""

    bench: str
    preset: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.bench}-{self.preset}"


#: What runs at 128 bits too: whole lookups, bursts longer than a row, reads out of order.
_WIDE = re.compile(r"test_(lookup|rows_that_cross_4_kb|reads_return_in_any_order)/")

_BENCHES = ("tb_registers", "tb_access_unit", "tb_memory", "tb_faults")

SIMULATIONS = [
    *(Simulation(bench, "tiny", tuple(names_of(bench))) for bench in _BENCHES),
    *(
        Simulation(bench, "small", tuple(name for name in names_of(bench) if _WIDE.match(name)))
        for bench in ("tb_access_unit", "tb_memory")
    ),
]

_outcomes: dict[Simulation, Outcome | Exception] = {}


@pytest.fixture
def outcome(request: pytest.FixtureRequest) -> Outcome:
    """Run all tests of a simulation that this session selected, once."""
    simulation: Simulation = request.param
    if simulation not in _outcomes:
        calls = [getattr(item, "callspec", None) for item in request.session.items]
        params = [call.params for call in calls if call and "outcome" in call.params]
        names = [p["name"] for p in params if p["outcome"] == simulation]
        config = AcceleratorConfig.preset(simulation.preset)
        seed = int(os.environ.get("COCOTB_RANDOM_SEED", "1"))
        waves = bool(os.environ.get("WAVES"))
        try:
            _outcomes[simulation] = simulate(
                simulation.bench, config, names, seed=seed, waves=waves
            )
        except (SimulationFailed, ToolError) as error:
            _outcomes[simulation] = error
    found = _outcomes[simulation]
    if isinstance(found, Exception):
        raise found
    return found


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
