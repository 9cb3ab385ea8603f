from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ember_hw.rtl.formal.proofs import PROOFS
from ember_hw.rtl.formal.solver import Mode, Verdict, run, to_rtlil
from ember_hw.rtl.formal.tests.buffer_faults import BUFFER_FAULTS
from ember_hw.rtl.formal.tests.port_faults import PORT_FAULTS
from ember_hw.rtl.formal.tests.write_faults import WRITE_FAULTS
from ember_hw.rtl.tests.mutations import applied

FAULTS = BUFFER_FAULTS | PORT_FAULTS | WRITE_FAULTS
PAGE = Path(__file__).resolve().parents[4] / "docs" / "verification.md"


def _run_all(questions: list[tuple[str, Mode, int]]) -> list[Verdict]:
    """Answer questions side by side: most of a run's time is the start of its processes."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        asked = [pool.submit(run, text, mode=mode, depth=depth) for text, mode, depth in questions]
    return [future.result() for future in asked]


@pytest.mark.parametrize("name", PROOFS)
def test_the_properties_hold_and_the_assumptions_leave_room_for_what_matters(name: str):
    proof = PROOFS[name]
    questions = [(to_rtlil(proof.make()), Mode.PROVE, proof.depth)]
    if proof.cover_depth:
        questions.append((to_rtlil(proof.make()), Mode.COVER, proof.cover_depth))
    for verdict in _run_all(questions):
        assert verdict.holds, verdict.log


@pytest.mark.parametrize("name", PROOFS)
def test_faults_are_found(name: str):
    faults = {fault: broken for (proof, fault), broken in FAULTS.items() if proof == name}
    assert faults
    questions = []
    for fault, broken in faults.items():
        with applied(fault, broken.mutation):
            questions.append((to_rtlil(PROOFS[name].make()), Mode.BOUNDED, broken.depth))
    for fault, verdict in zip(faults, _run_all(questions), strict=True):
        assert verdict.status == "FAIL", (fault, verdict.log)
        assert "Assert failed" in verdict.log, (fault, verdict.log)


def test_every_fault_is_of_a_proof():
    assert {proof for proof, _ in FAULTS} == set(PROOFS)


def test_the_page_names_every_proof():
    text = PAGE.read_text()
    assert [name for name in PROOFS if f"`{name}`" not in text] == []
