from __future__ import annotations

from ember_hw.bench.result import Result, Row
from ember_hw.bench.table import as_table, describe, shown_rows


def a_result(*rows: Row) -> Result:
    machine = {"cores": 2, "processor": "a core"}
    return Result(suite="s", commit="c0ffee", seed=1, machine=machine, rows=rows)


def compared(name: str, value: float, bar: float | None = 0.99) -> Row:
    return Row(
        workload=name,
        metric="utilisation",
        value=value,
        unit="1",
        reference_name="port",
        reference=1.0,
        bar=bar,
    )


def test_table_aligns_and_marks_what_is_below_its_bar() -> None:
    cells = Row(workload="unit", metric="LUT4", value=12_587, unit="cells")
    result = a_result(compared("bag 8", 0.5), compared("bag 32, weights", 0.995), cells)
    assert as_table(result).splitlines() == [
        "workload         metric              value  reference   ratio   bar  reference is",
        "bag 8            utilisation        0.5000          1  0.5000  0.99  port  BELOW",
        "bag 32, weights  utilisation        0.9950          1  0.9950  0.99  port",
        "unit             LUT4         12,587 cells",
    ]
    assert describe(result).splitlines() == [
        "suite s, commit c0ffee, seed 1, 2 cores of a core",
        "3 rows: worst ratio 0.5000, geomean 0.7053; 1 of 2 rows with a bar are below it",
    ]


def test_long_result_shows_its_worst_rows_in_order() -> None:
    good = [compared(f"good {n}", 1.0 + n / 1000) for n in range(60)]
    rows = [*good, compared("reported", 0.1, bar=None), compared("bad", 0.9)]
    shown = [row.workload for row in shown_rows(rows)]
    assert shown[-1] == "bad"
    assert "reported" not in shown
    assert shown[:3] == ["good 0", "good 1", "good 2"]
    result = a_result(*rows)
    assert describe(result).startswith("14 more rows, none worse than these; --all shows them\n")
    assert len(as_table(result, every_row=True).splitlines()) == len(rows) + 1
    assert "more rows" not in describe(result, every_row=True)
