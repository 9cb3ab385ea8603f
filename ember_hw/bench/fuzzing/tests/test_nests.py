"""Nests are counted as right, refused or wrong, with seed and reason."""

from __future__ import annotations

from typing import Any

import pytest

from ember_hw.bench.fuzzing import nests
from ember_hw.bench.fuzzing.nests import NestAccount, NestFailure, attempt, reason_of, run_nests
from ember_hw.errors import AssemblyError, CompileError


def test_a_nest_that_agrees_has_nothing_wrong() -> None:
    assert attempt(1, 3) is None


def test_a_wrong_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*arguments: Any) -> None:
        pass

    monkeypatch.setattr(nests, "run_microcode", nothing)
    assert attempt(1, 3) == "out must be what scf writes, not different in some element"


def test_every_outcome_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: list[Any] = [
        None,
        CompileError("top-level loop must be one that fits, not the loop of %i (op 'scf.for')"),
        "out must be right",
        IndexError("position must be inside"),
    ]

    def scripted(seed: int, opt_level: int) -> str | None:
        assert opt_level == seed % 4
        if isinstance(outcomes[seed], Exception):
            raise outcomes[seed]
        return outcomes[seed]

    monkeypatch.setattr(nests, "attempt", scripted)
    seen: list[int] = []
    account = run_nests(range(4), lambda account: seen.append(account.nests))
    assert seen == [1, 2, 3, 4]
    assert account == NestAccount(
        nests=4,
        compiled=1,
        refused=account.refused,
        failures=[
            NestFailure(2, 2, "out must be right"),
            NestFailure(3, 3, "IndexError: position must be inside"),
        ],
    )
    assert dict(account.refused) == {"must be one that fits": 1}


def test_reasons_leave_out_names() -> None:
    error = AssemblyError("au: 'au.row r8 on t0': needs row entry 8 (limit row_entries)")
    assert reason_of(error) == "limit row_entries"
    assert reason_of(CompileError("another text")) == "another text"
