"""Results as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ember_hw.bench.result import Result, Row, summarise

#: Without `every_row`, a suite with more rows than this shows the worst of each group.
_ROWS_SHOWN = 48


def as_table(result: Result, *, every_row: bool = False) -> Table:
    """Return a result as a table; below it stands what `describe` says.

    Parameters
    ----------
    result : Result
        What a suite found.
    every_row : bool
        Show all rows even of a long result; otherwise those with the worst ratios.
    """
    table = Table(box=None, pad_edge=False)
    table.add_column("workload", overflow="fold")
    table.add_column("metric")
    for name in ("value", "reference", "ratio", "bar"):
        table.add_column(name, justify="right")
    table.add_column("reference is", overflow="fold")
    for row in result.rows if every_row else shown_rows(result.rows):
        style = "red" if row.is_below_bar else ""
        reference = "" if row.reference is None else number(row.reference)
        ratio = "" if row.ratio is None else f"{row.ratio:.4f}"
        bar = "" if row.bar is None else f"{row.bar:g}"
        mark = " ✗" if row.is_below_bar else ""
        unit = "" if row.unit == "1" else f" {row.unit}"
        cells = (
            row.workload,
            row.metric,
            number(row.value) + unit,
            reference,
            ratio + mark,
            bar,
            row.reference_name or "",
        )
        table.add_row(*(Text(cell, style=style) for cell in cells))  # Text: no markup
    return table


def shown_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that a table has room for, in order: all, or those with the worst ratios."""
    if len(rows) <= _ROWS_SHOWN:
        return list(rows)

    def urgency(row: Row) -> tuple[bool, bool, float]:
        return (not row.is_below_bar, row.bar is None, row.ratio if row.ratio is not None else 0.0)

    worst = sorted(range(len(rows)), key=lambda i: urgency(rows[i]))[:_ROWS_SHOWN]
    return [rows[i] for i in sorted(worst)]


def describe(result: Result, *, every_row: bool = False) -> str:
    """Return the lines below the table: what ran where, and the summary."""
    lines: list[str] = []
    hidden = 0 if every_row else len(result.rows) - len(shown_rows(result.rows))
    if hidden:
        lines.append(f"{hidden} more rows are better than these; --all shows them")
    lines.append(
        f"suite {result.suite}, commit {result.commit}, seed {result.seed}, "
        f"{result.machine.get('cores')} cores of {result.machine.get('processor')}"
    )
    lines.append(str(summarise(result.rows)))
    return "\n".join(lines)


def number(value: float) -> str:
    """Return a number with about four digits that count.

    Examples
    --------
    >>> number(0.98765), number(88.25), number(1234567.0), number(7500)
    ('0.9877', '88.25', '1,234,567', '7,500')
    """
    if float(value).is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 10 else f"{value:.4f}"
