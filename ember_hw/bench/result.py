"""What every suite yields: rows of measured values, each beside its reference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Version of the JSON that `Result.to_dict` returns.
SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measured value.

    Attributes
    ----------
    workload : str
        What ran, unique within metric and suite.
    metric : str
        What was measured: "utilisation", "LUT4", ..
    value : float
        The value, in `unit`.
    unit : str
        "1" for a plain fraction, "cycles", "MHz", ..
    params : mapping of str to JSON values
        Everything else that the value depends on.
    reference_name : str or None
        What the value is compared with; None where there is nothing.
    reference : float or None
        Its value in the same unit; positive.
    is_smaller_better : bool
        Whether a smaller value is the better one.
    bar : float or None
        Least ratio that is good enough; None where the row is only reported.

    Raises
    ------
    ValueError
        The reference has a name but no value, or isn't positive, or there is a bar without one.

    Examples
    --------
    >>> Row(workload="w", metric="time", value=2.0, unit="s", reference_name="limit",
    ...     reference=10.0, is_smaller_better=True, bar=1.0).ratio
    5.0
    """

    workload: str
    metric: str
    value: float
    unit: str
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reference_name: str | None = None
    reference: float | None = None
    is_smaller_better: bool = False
    bar: float | None = None

    def __post_init__(self) -> None:
        if (self.reference_name is None) != (self.reference is None):
            raise ValueError(
                f"reference of {self.workload!r} must be a name with a value, "
                f"not {self.reference_name!r} with {self.reference!r}"
            )
        if self.reference is not None and not 0 < self.reference < math.inf:
            raise ValueError(
                f"reference of {self.workload!r} must be positive and finite, "
                f"not {self.reference!r}"
            )
        if self.bar is not None and self.reference is None:
            raise ValueError(f"bar of {self.workload!r} must have a reference, not {self.bar!r}")

    @property
    def ratio(self) -> float | None:
        """Value over reference, turned so that larger is better; None without a reference."""
        if self.reference is None:
            return None
        if not self.is_smaller_better:
            return self.value / self.reference
        return self.reference / self.value if self.value else math.inf

    @property
    def is_below_bar(self) -> bool:
        """Whether the row has a bar and misses it; a value that is no number does."""
        return self.bar is not None and not (self.ratio or 0.0) >= self.bar

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON-ready values; the bar, where there is one, is in its `params`."""
        bar = {} if self.bar is None else {"bar": self.bar}
        return {
            "workload": self.workload,
            "metric": self.metric,
            "value": self.value,
            "unit": self.unit,
            "params": {**self.params, **bar},
            "reference": None
            if self.reference is None
            else {"name": self.reference_name, "value": self.reference},
            "ratio": self.ratio,
        }


@dataclass(frozen=True)
class Summary:
    """The ratios of a result in a few numbers.

    Attributes
    ----------
    worst, geomean : float or None
        Of all ratios; None where no row has one.
    rows, with_bar, below_bar : int
        Rows, those with a bar, those that miss it.
    """

    worst: float | None
    geomean: float | None
    rows: int
    with_bar: int
    below_bar: int

    def __str__(self) -> str:
        ratios = "no ratios"
        if self.worst is not None and self.geomean is not None:
            ratios = f"worst ratio {self.worst:.4f}, geomean {self.geomean:.4f}"
        return (
            f"{self.rows} rows: {ratios}; {self.below_bar} of {self.with_bar} rows with a bar "
            "are below it"
        )


def summarise(rows: Sequence[Row]) -> Summary:
    """Return the summary of some rows.

    Examples
    --------
    >>> slow, fast = (Row(workload="w", metric="m", value=v, unit="1", reference_name="limit",
    ...                   reference=1.0, bar=0.5) for v in (0.25, 1.0))
    >>> print(summarise([slow, fast]))
    2 rows: worst ratio 0.2500, geomean 0.5000; 1 of 2 rows with a bar are below it
    """
    ratios = [row.ratio for row in rows if row.ratio is not None]
    geomean = None
    if ratios:
        positive = all(ratio > 0 for ratio in ratios)
        geomean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if positive else 0.0
    return Summary(
        worst=min(ratios, default=None),
        geomean=geomean,
        rows=len(rows),
        with_bar=sum(row.bar is not None for row in rows),
        below_bar=sum(row.is_below_bar for row in rows),
    )


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one run of a suite found.

    Attributes
    ----------
    suite : str
        Its name.
    commit : str
        Commit of the code, "-dirty" behind it where files differ from it; the version where the
        package isn't run from its checkout.
    seed : int
        Seed of every random number.
    machine : mapping of str to JSON values
        What it ran on.
    rows : tuple of Row
        The values.
    """

    suite: str
    commit: str
    seed: int
    machine: Mapping[str, Any]
    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready values."""
        return {
            "schema": SCHEMA,
            "suite": self.suite,
            "commit": self.commit,
            "seed": self.seed,
            "machine": dict(self.machine),
            "rows": [row.to_dict() for row in self.rows],
        }
