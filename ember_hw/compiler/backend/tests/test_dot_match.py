# pyright: basic
"""Which sums across rows the reduce unit runs, and why not the others: near misses, one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ember_hw.compiler.backend import dot_match, reduce_split
from ember_hw.compiler.backend.execute_code import (
    For,
    GetVariable,
    Pop,
    ReadRow,
    SetVariable,
    is_row,
)
from ember_hw.compiler.backend.reduce_match import HostReason
from ember_hw.compiler.backend.tests.dot_functions import CONFIG, KEPT, NORM, made, nest_of, triples
from ember_hw.compiler.nest import ResultRow
from ember_hw.errors import UnsupportedError
from ember_hw.isa import Chain, Event, Fold, Place, event_mask

#: What a loop makes of its rows: fold, second, third, and of x, y and z the place and the sign.
RUNS = {
    NORM: (Fold.ABSOLUTE, Chain.ADD, Chain.ADD, "012", "001"),
    made("arith.mulf %x, %y", "arith.mulf %z, %v0", "arith.addf %v1, %acc"): (
        *(Fold.SUM, Chain.MULTIPLY, Chain.MULTIPLY, "012", "000"),
    ),
    made(
        "arith.addf %x, %y", "arith.subf %z, %v0", "arith.mulf %v1, %v1", "arith.addf %acc, %v2"
    ): (*(Fold.SQUARE, Chain.ADD, Chain.ADD, "012", "110"),),
    made("arith.mulf %y, %z", "arith.subf %x, %v0", "arith.negf %v1", "arith.addf %acc, %v2"): (
        *(Fold.SUM, Chain.MULTIPLY, Chain.ADD, "201", "100"),
    ),
    made("arith.subf %z, %x", "arith.mulf %v0, %y", "arith.subf %acc, %v1"): (
        *(Fold.SUM, Chain.ADD, Chain.MULTIPLY, "120", "001"),
    ),
    made("arith.negf %x", "arith.mulf %v0, %y", "math.absf %v1", "arith.addf %acc, %v2"): (
        *(Fold.ABSOLUTE, Chain.MULTIPLY, Chain.NONE, "01", "10"),
    ),
    made("arith.mulf %x, %x", "arith.addf %acc, %v0"): (
        *(Fold.SQUARE, Chain.NONE, Chain.NONE, "0", "0"),
    ),
    made("arith.addf %acc, %x"): (Fold.SUM, Chain.NONE, Chain.NONE, "0", "0"),
}


@pytest.mark.parametrize("make", RUNS)
@pytest.mark.parametrize("opt_level", [2, 3])
def test_microcode(make: str, opt_level: int) -> None:
    nest = nest_of(triples(make), opt_level=opt_level)
    assert (nest.execute, nest.reason) == ("fabric", "")
    assert nest.fabric is not None
    assert nest.fabric.operation == "sum across"
    fold, second, third, places, signs = RUNS[make]
    get = nest.microcode.get
    assert [get("reduce", name) for name in ("fold", "second", "third")] == [fold, second, third]
    iterate = event_mask([(Event.ITERATE, 0)], CONFIG)
    entries = range(len(places))
    assert [get(f"reduce{entry}", "place") for entry in entries] == [int(p) for p in places]
    assert [get(f"reduce{entry}", "negated") for entry in entries] == [int(s) for s in signs]
    emits = [get(f"reduce{entry}", "emit_events") for entry in entries]
    assert emits == [0] * (len(places) - 1) + [iterate]
    assert nest.fabric.results == (ResultRow(0, iterate),)
    (patch,) = [patch for patch in nest.patches if patch.record == "reduce"]
    assert (patch.field, patch.symbol, patch.scale) == ("length", "a.dim1", 4)


def test_rows_of_half_floats() -> None:
    make = """
      %u = arith.extf %x : TYPE to f32
      %v = arith.extf %y : TYPE to f32
      %m = arith.mulf %u, %v : f32
      %n = arith.addf %acc, %m : f32"""
    body = triples(
        make,
        start="%start",
        after="%s = arith.truncf %q : f32 to TYPE\n    memref.store %s, %out[%k] : !V",
    )
    body = "  %start = arith.constant 0.0 : f32\n" + body.replace("-> (TYPE)", "-> (f32)")
    nest = nest_of(body.replace("yield %n : TYPE", "yield %n : f32"), "bf16")
    assert nest.execute == "fabric"
    assert nest.microcode.get("reduce", "format") == 1
    (patch,) = [patch for patch in nest.patches if patch.record == "reduce"]
    assert patch.scale == 4


def test_a_row_of_a_loop_outside_is_kept() -> None:
    nest = nest_of(KEPT)
    assert nest.execute == "fabric", nest.reason
    get = nest.microcode.get
    begin, iterate = (event_mask([(e, 1)], CONFIG) for e in (Event.BEGIN, Event.ITERATE))
    assert [get(f"row{entry}", "events") for entry in range(2)] == [begin, iterate]
    assert [get(f"reduce{entry}", "emit_events") for entry in range(2)] == [0, iterate]
    assert [get(f"reduce{entry}", "place") for entry in range(2)] == [Place.FIRST, Place.SECOND]
    assert nest.fabric is not None
    assert "row<f32>" not in str(nest.fabric.host.code).split("entry:")[0], "no variable keeps rows"


_SECOND_LOOP = """memref.store %q, %out[%k] : !V
    %o = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (TYPE) {
      %x = memref.load %a[%i, %d] : !T
      %n = arith.addf %acc, %x : TYPE
      scf.yield %n : TYPE
    }
    memref.store %o, %out[%k] : !V"""
_ROW_AGAIN = """memref.store %q, %out[%k] : !V
    scf.for %d = %c0 to %D step %c1 {
      %x = memref.load %a[%i, %d] : !T
      %v = arith.mulf %q, %x : TYPE
      memref.store %v, %wide[%k, %d] : !T
    }"""
_IN_A_LOOP = """
  scf.for %k = %c0 to %N step %c1 {
    %i = memref.load %h[%k] : !X
    scf.for %m = %c0 to %M step %c1 {
      %q = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (TYPE) {
        %x = memref.load %a[%i, %d] : !T
        %y = memref.load %wide[%m, %d] : !T
        %v = arith.divf %x, %y : TYPE
        %n = arith.addf %acc, %v : TYPE
        scf.yield %n : TYPE
      }
      memref.store %q, %out[%m] : !V
    }
  }
"""
_TWO_NUMBERS = """
  scf.for %k = %c0 to %N step %c1 {
    %i = memref.load %h[%k] : !X
    %q, %o = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0, %low = %f0) -> (TYPE, TYPE) {
      %x = memref.load %a[%i, %d] : !T
      %n = arith.addf %acc, %x : TYPE
      %m = arith.minimumf %low, %x : TYPE
      scf.yield %n, %m : TYPE, TYPE
    }
    memref.store %q, %out[%k] : !V
    memref.store %o, %top[%k] : !V
  }
"""
_AT_A_BEGIN = """
  scf.for %k = %c0 to %N step %c1 {
    %i = memref.load %h[%k] : !X
    %q = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (TYPE) {
      %x = memref.load %a[%i, %d] : !T
      %n = arith.addf %acc, %x : TYPE
      scf.yield %n : TYPE
    }
    memref.store %q, %out[%k] : !V
    %s = memref.load %r[%k] : !X
    scf.for %p = %c0 to %s step %c1 {
      %l = memref.load %t[%p] : !X
      %g = memref.load %w[%l] : !V
      memref.store %g, %top[%p] : !V
    }
  }
"""
SUM = made("arith.addf %acc, %x")
ROW_AGAIN = (
    "case 1 needs its rows once more, behind the sum across them; divided, case 1 does more than "
    "to combine a row: 'variable 1 += 1'"
)
REFUSED = {
    ROW_AGAIN: triples(SUM, after=_ROW_AGAIN),
    (
        "2 loops fold rows, and the unit does what one does; it can't be divided: both halves "
        "touch %out"
    ): triples(NORM, after=_SECOND_LOOP),
    (
        "case 1 folds its rows in a loop or a branch, and the unit does so once; with that loop in "
        "the access unit, case 2 computes 'divf' of its columns, and the unit adds, subtracts and "
        "multiplies them"
    ): _IN_A_LOOP,
    (
        "case 1 folds rows at the begin of a loop; divided, it has no rows: opt level 0 sends "
        "elements, levels 2 and 3 send rows"
    ): _AT_A_BEGIN,
    "case 1 folds 2 numbers, and the unit one": _TWO_NUMBERS,
    "case 1 begins its sum with another number than +0": triples(SUM, start="%minus0"),
    "case 1 folds its rows by another operation than a sum": triples(
        made("arith.maximumf %acc, %x")
    ),
    "case 1 computes 'divf' of its columns, and the unit adds, subtracts and multiplies them": (
        triples(made("arith.divf %x, %y", "arith.addf %acc, %v0"))
    ),
    "case 1 folds 'f', which is no column of its rows": triples(
        made("arith.mulf %x, %f", "arith.addf %acc, %v0")
    ),
    "case 1 does more to its columns than to fold them": triples(
        "memref.store %x, %wide[%k, %d] : !T\n" + SUM
    ),
    (
        "case 1 computes with 4 numbers for each column, and the unit's chain takes those of up to "
        "3 rows, once each"
    ): triples(
        made(
            *("arith.mulf %x, %y", "arith.mulf %x, %z", "arith.addf %v0, %v1"),
            "arith.addf %acc, %v2",
        )
    ),
    (
        "case 1 computes with 2 numbers for each column, and the unit's chain takes those of up to "
        "3 rows, once each"
    ): triples(made("arith.addf %x, %x", "arith.addf %acc, %v0")),
    (
        "case 1 squares a product with its third row, and the unit has no multiplier left for that"
    ): triples(
        made(
            *("arith.addf %x, %y", "arith.mulf %v0, %z", "arith.mulf %v1, %v1"),
            "arith.addf %acc, %v2",
        )
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_stays_on_the_host(reason: str) -> None:
    nest = nest_of(REFUSED[reason])
    assert (nest.execute, nest.reason) == ("host", reason)


def test_a_difference_from_a_sum_is_no_sum() -> None:
    nest = nest_of(triples(made("arith.subf %x, %acc")))
    assert nest.reason == "case 1 folds its rows by another operation than a sum"


def test_rows_of_f64() -> None:
    nest = nest_of(triples(NORM), "f64")
    assert nest.reason == "rows are of f64, and the unit takes f32, f16 and bf16"


def test_a_unit_without_the_lane() -> None:
    nest = nest_of(triples(NORM), config=CONFIG.with_changes(reduce_dot=0))
    assert nest.reason == (
        "case 1 takes 3 rows, and the unit combines one row with its accumulator"
    )


def test_fabric_is_refused_with_the_reason() -> None:
    with pytest.raises(UnsupportedError) as caught:
        nest_of(triples(SUM, after=_ROW_AGAIN), execute="fabric")
    assert str(caught.value) == (
        "execute code of nest 'kernel' must fit the reduce unit with execute='fabric', but "
        f"{ROW_AGAIN}; execute='auto' runs it on the host"
    )
    assert nest_of(triples(NORM), execute="fabric").execute == "fabric"
    assert nest_of(triples(NORM), execute="host").reason == "execute='host' was asked for"


class TestWhatTheCompilerDoesNotMake:
    """Execute code that no function leads to, changed by hand."""

    @pytest.fixture
    def parts(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        """Return the arguments of `match_dot` for a kept row."""
        seen: list[Any] = []

        def match(*arguments: Any) -> dot_match.Dot:
            seen[:] = arguments
            return dot_match.match_dot(*arguments)

        monkeypatch.setattr(reduce_split, "match_dot", match)
        assert nest_of(KEPT).execute == "fabric"
        return seen

    def reason(self, parts: list[Any]) -> str:
        with pytest.raises(HostReason) as caught:
            dot_match.match_dot(*parts)
        return str(caught.value)

    def test_a_row_that_is_kept_at_an_end(self, parts: list[Any]) -> None:
        first, *others = parts[2]
        parts[2] = (replace(first, event=Event.END), *others)
        assert self.reason(parts) == (
            "case 2 keeps a row that doesn't come at the begin of a loop around it"
        )

    def test_a_case_without_a_row_of_its_own(self, parts: list[Any]) -> None:
        code, _, (first, second), _ = parts
        kept, folding = code.cases
        (pop,) = [s for s in folding.body if isinstance(s, Pop) and is_row(s.type)]
        rest = tuple(s for s in folding.body if s != pop)
        (loop,) = [s for s in rest if isinstance(s, For)]
        (row,) = [s.name for s in rest if isinstance(s, GetVariable)]
        body = tuple(replace(s, row=row) if isinstance(s, ReadRow) else s for s in loop.body)
        rest = tuple(replace(s, body=body) if s == loop else s for s in rest)
        parts[0] = replace(code, cases=(kept, replace(folding, body=rest)))
        parts[2] = (first, replace(second, operands=second.operands[:-1]))
        assert self.reason(parts) == "case 2 folds rows and takes none"

    def test_a_row_that_another_case_takes_up(self, parts: list[Any]) -> None:
        code = parts[0]
        kept, folding = code.cases
        again = replace(kept, body=(*kept.body, GetVariable("again", 0)))
        parts[0] = replace(code, cases=(again, folding))
        assert self.reason(parts) == "case 1 needs a row besides the sum across it"

    def test_an_element_besides_the_sum(self, parts: list[Any]) -> None:
        code = parts[0]
        kept, folding = code.cases
        (pop,) = [s for s in folding.body if isinstance(s, Pop) and is_row(s.type)]
        more = replace(folding, body=(*folding.body, ReadRow("one", pop.name, "c0")))
        parts[0] = replace(code, cases=(kept, more))
        assert self.reason(parts) == "case 2 needs a row besides the sum across it"

    def test_a_row_that_is_kept_twice(self, parts: list[Any]) -> None:
        code = parts[0]
        kept, folding = code.cases
        (setting,) = [s for s in kept.body if isinstance(s, SetVariable)]
        parts[0] = replace(code, cases=(replace(kept, body=(*kept.body, setting)), folding))
        assert self.reason(parts) == "rows are kept more often than the sum across them needs"

    @pytest.mark.parametrize("bound", ["lower", "upper", "step"])
    def test_a_loop_over_other_columns(self, parts: list[Any], bound: str) -> None:
        code = parts[0]
        kept, folding = code.cases
        other = {"lower": "c1", "upper": "c1", "step": "D"}[bound]
        body = tuple(
            replace(s, **{bound: other}) if isinstance(s, For) else s for s in folding.body
        )
        parts[0] = replace(code, cases=(kept, replace(folding, body=body)))
        assert self.reason(parts) == "case 2 folds other columns than all of its rows', in order"
