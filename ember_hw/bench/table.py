"""Results as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from ember_hw.bench.result import Result, Row, summarise

#: Without `every_row`, the table of a longer result shows the rows with the worst ratios.
_ROWS_SHOWN = 48
_HEADING = ("workload", "metric", "value", "reference", "ratio", "bar", "reference is")
_RIGHT = ("value", "reference", "ratio", "bar")


def as_table(result: Result, *, every_row: bool = False) -> str:
    """Return a result as lines of text; a row below its bar ends in BELOW.

    Parameters
    ----------
    result : Result
        What a suite found.
    every_row : bool
        Show all rows of a long result too; otherwise those with the worst ratios.
    """
    lines = [_HEADING, *map(_cells, result.rows if every_row else shown_rows(result.rows))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text: list[str] = []
    for cells in lines:
        aligned = (
            cell.rjust(width) if name in _RIGHT else cell.ljust(width)
            for cell, width, name in zip(cells, widths, _HEADING, strict=True)
        )
        text.append("  ".join(aligned).rstrip())
    return "\n".join(text)


def shown_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that a table has room for, in order: all, or those with the worst ratios.

    Those below their bar come first, then others with a bar, then those that are only compared.
    """
    if len(rows) <= _ROWS_SHOWN:
        return list(rows)

    def urgency(number: int) -> tuple[bool, bool, bool, float]:
        row = rows[number]
        ratio = row.ratio
        return not row.is_below_bar, row.bar is None, ratio is None, ratio or 0.0

    return [rows[i] for i in sorted(sorted(range(len(rows)), key=urgency)[:_ROWS_SHOWN])]


def describe(result: Result, *, every_row: bool = False) -> str:
    """Return the lines below the table: what ran where, and the summary."""
    lines: list[str] = []
    hidden = 0 if every_row else len(result.rows) - len(shown_rows(result.rows))
    if hidden:
        lines.append(f"{hidden} more rows, none worse than these; --all shows them")
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
    >>> number(0.98765), number(88.25), number(1234567.0), number(0)
    ('0.9877', '88.25', '1,234,567', '0')
    """
    if abs(value) >= 1000 or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 10 else f"{value:.4f}"


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.workload,
        row.metric,
        number(row.value) + ("" if row.unit == "1" else f" {row.unit}"),
        "" if row.reference is None else number(row.reference),
        "" if row.ratio is None else f"{row.ratio:.4f}",
        "" if row.bar is None else f"{row.bar:g}",
        (row.reference_name or "") + "  BELOW" * row.is_below_bar,
    )
