from __future__ import annotations

import pytest

from ember_hw.rtl.formal.proofs import PROOFS
from ember_hw.rtl.formal.solver import Mode, run
from ember_hw.rtl.formal.tests.faults import FAULTS
from ember_hw.rtl.tests.mutations import applied


@pytest.mark.parametrize("name", PROOFS)
def test_the_properties_hold(name: str):
    proof = PROOFS[name]
    verdict = run(proof.make(), mode=proof.mode, depth=proof.depth)
    assert verdict.holds, verdict.log


@pytest.mark.parametrize("name", PROOFS)
def test_the_assumptions_leave_room_for_what_matters(name: str):
    proof = PROOFS[name]
    verdict = run(proof.make(), mode=Mode.COVER, depth=proof.cover_depth)
    assert verdict.holds, verdict.log


@pytest.mark.parametrize(("name", "fault"), FAULTS, ids="-".join)
def test_a_fault_is_found(name: str, fault: str):
    depth, mutation = FAULTS[name, fault]
    with applied(fault, mutation):
        bench = PROOFS[name].make()
    verdict = run(bench, mode=Mode.BOUNDED, depth=depth)
    assert verdict.status == "FAIL", verdict.log
    assert "failed" in verdict.log


def test_every_proof_has_a_fault_that_it_finds():
    assert {name for name, _ in FAULTS} == set(PROOFS)
