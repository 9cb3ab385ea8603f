"""Every test of every bench as a test of pytest; those of one bench and config run together."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import pytest

from cocotb_tests.configs import CONFIGS
from cocotb_tests.runner import Outcome, SimulationFailed, names_of, simulate
from ember_hw.errors import ToolError

pytestmark = [pytest.mark.cocotb, pytest.mark.slow]


@dataclass(frozen=True)
class Simulation:
    """Tests of a bench that run on one config."""

    bench: str
    config: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.bench}-{self.config}"


#: What runs on the other configs too: whole lookups, bursts longer than a row, reads out of order,
#: errors, requests.
_ELSEWHERE = re.compile(
    r"test_(lookup|rows_that_cross_4_kb|reads_return_in_any_order|error_on_an_index_line"
    r"|start_is_refused_when|fault_voids|requests_flow|execute_side_that|memory_that_stops"
    r"|lines_come_from|counters_of_a_queue|queue_that_stops)"
)

BENCHES = ("tb_registers", "tb_access_unit", "tb_memory", "tb_faults", "tb_requests", "tb_queue")

SIMULATIONS = [
    *(Simulation(bench, "tiny", tuple(names_of(bench))) for bench in BENCHES),
    *(
        Simulation(bench, config, tuple(n for n in names_of(bench) if _ELSEWHERE.match(n)))
        for config in ("ports", "apart")
        for bench in ("tb_access_unit", "tb_memory", "tb_requests", "tb_queue")
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
        config = CONFIGS[simulation.config]
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
