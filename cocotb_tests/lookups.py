"""Launches of the case table, as the host binds them, and the one check of a whole run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from cocotb_tests.drivers import Bench
from cocotb_tests.monitors import Seen
from cocotb_tests.plan import Plan
from cocotb_tests.scoreboard import check_counters, check_pooled, check_queues, interpret
from ember_hw.compiler.program import Program
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host.bindings.embedding_bag import NUM_BAGS, bind
from ember_hw.host.launch import Launch, LoadedProgram
from ember_hw.host.tests.cases import CASES, Case
from ember_hw.host.tests.programs import bag_program
from ember_hw.registers import FaultCode

#: A case of three bags, one of them empty, that runs in a few hundred cycles.
GOOD = next(case for case in CASES if case.name == "empty_middle")


def case_named(name: str) -> Case:
    """Return a case of the table."""
    return next(case for case in CASES if case.name == name)


def launch_case(
    case: Case,
    config: AcceleratorConfig,
    *,
    opt_level: int = 3,
    program: Program | None = None,
    bases: Mapping[str, int] | None = None,
) -> Launch:
    """Bind a case.

    Parameters
    ----------
    case : Case
    config : AcceleratorConfig
    opt_level : int
        Of the hand-assembled program.
    program : Program, optional
        Another program for the same lookup.
    bases : mapping of str to int, optional
        Byte addresses of regions that shall lie elsewhere than where the host puts them.
    """
    if program is None:
        program = bag_program(
            case.table(), opt_level, config=config, index_dtype=case.indices.dtype.name
        )
    request = case.request()
    (launch,) = LoadedProgram(program).launches(bind(program, request))
    if not bases:
        return launch
    regions = [
        replace(region, base=bases.get(region.symbol, region.base)) for region in launch.regions
    ]
    environment = {NUM_BAGS: request.num_bags}
    for region in regions:
        environment |= region.environment()
    return replace(launch, microcode=program.nests[0].bind(environment), regions=tuple(regions))


def with_indices(launch: Launch, changes: Mapping[int, int]) -> Launch:
    """Return a launch in whose memory some indices, by offset, are others: the host checks them."""
    regions = list(launch.regions)
    for number, region in enumerate(regions):
        if region.symbol == "idx":
            data = region.data.copy()
            elements = data.view(np.int64)
            for offset, index in changes.items():
                elements[offset] = index
            regions[number] = replace(region, data=data)
    return replace(launch, regions=tuple(regions))


async def run_and_check(bench: Bench, launch: Launch, case: Case) -> Seen:
    """Run a launch and check it as `end_and_check` does."""
    await bench.begin(launch)
    return await end_and_check(bench, launch, case)


async def end_and_check(bench: Bench, launch: Launch, case: Case) -> Seen:
    """Await the end of a launch that was begun; check queues, pooled rows, reads and counters."""
    seen = await bench.end()
    check_queues(launch, seen)
    check_pooled(launch, seen, case.expected())
    plan = Plan(launch)
    plan.check(seen.reads)
    check_counters(plan, seen, await bench.counters())
    return seen


def expected_fault(launch: Launch) -> tuple[FaultCode, int, int, int]:
    """Return code, unit, stream and address of the fault by which the interpreter stops."""
    with pytest.raises(DeviceError) as caught:
        interpret(launch)
    fault = caught.value
    return FaultCode(fault.code or 0), fault.unit or 0, fault.stream or 0, fault.address or 0
