"""What commands say of results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ember_hw.cli.files import check_output
from ember_hw.host.reference import bit_equal
from ember_hw.host.report import Report

#: What a report can be written as, by the suffix of its file.
REPORT_SUFFIXES = (".html", ".png", ".json", ".txt")


def differing_rows(found: Any, expected: Any) -> tuple[int, int]:
    """Return how many rows of a result differ in any bit from what they must be, and of how many.

    Parameters
    ----------
    found, expected : array or tuple of arrays
        Of the same shapes; an array of one dimension has rows of one element.

    Examples
    --------
    >>> import numpy as np
    >>> differing_rows((np.zeros((2, 3)), np.arange(4)), (np.zeros((2, 3)), np.zeros(4, np.int64)))
    (3, 6)
    """
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    differing = rows = 0
    for array, wanted in pairs:
        rows += len(array)
        differing += sum(not bit_equal(a, b) for a, b in zip(array, wanted, strict=True))
    return differing, rows


def check_report_path(path: Path) -> None:
    """Refuse a path that no report can be written to, before there is one.

    Raises
    ------
    ValueError
        Its suffix is another one, or it can't be written.
    """
    if path.suffix not in REPORT_SUFFIXES:
        raise ValueError(
            f"report must go to a file that ends in one of {', '.join(REPORT_SUFFIXES)}, "
            f"not {str(path)!r}"
        )
    check_output(path)


def write_report(report: Report, path: Path) -> None:
    """Write a report as the suffix of its file says.

    Raises
    ------
    ValueError
        There is nothing to draw.
    """
    match path.suffix:
        case ".html":
            from ember_hw.host.report_html import as_html

            path.write_text(as_html(report))
        case ".png":
            from ember_hw.host.report_plots import draw_png

            draw_png(report, path)
        case ".json":
            path.write_text(report.to_json() + "\n")
        case _:
            path.write_text(f"{report}\n")
