"""What a run did, nest by nest, held against what its request implies and the unit counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ember_hw.compiler.program import Nest, Program
from ember_hw.errors import DeviceError
from ember_hw.host.bindings import Request
from ember_hw.host.launch import Launch
from ember_hw.host.report import NestReport
from ember_hw.host.traffic import element_bytes, expected_calls

#: Facts of a run that are the sum of its nests'; of stalls each reason's is.
_SUMS = (
    *("cycles", "row_beats", "index_beats", "bundles", "rows", "useful_bytes"),
    *("results", "leaving_bytes", "written_bytes"),
)


class Consumer(Protocol):
    """What an execute side counts."""

    @property
    def bundles(self) -> int:
        """Bundles that it has taken from the control queue."""
        ...

    @property
    def row_beats(self) -> int:
        """Beats that it has taken from the row queue."""
        ...

    @property
    def rows(self) -> int:
        """Rows that these were."""
        ...

    @property
    def row_bytes(self) -> int:
        """Bytes of these rows."""
        ...

    @property
    def calls(self) -> Mapping[int, int]:
        """Calls of each callback."""
        ...


class RunAccount:
    """Counts of one run.

    Parameters
    ----------
    program : Program
        What runs.
    request : Request
        What it shall do.
    """

    def __init__(self, program: Program, request: Request) -> None:
        # Neither of both is kept: an account is read later, and tables and inputs may be large.
        self._arguments = program.arguments
        self._number_of_nests = len(program.nests)
        self._lookups, self._gathered = request.lookups, request.gathered
        self._nests: list[tuple[Nest, dict[str, Any]]] = []
        self._facts: dict[str, Any] = {}
        self._nest: Nest = program.nests[0]
        self._expected: dict[int, int | None] = {}
        self._expected_rows: int | None = None

    def begin(self, nest: Nest, launch: Launch) -> None:
        """Note what a nest must do."""
        self._nest = nest
        expected = expected_calls(nest, launch, self._gathered)
        self._expected, self._expected_rows = expected, None
        if launch.host is not None and nest.fabric is not None:
            # The host sees results alone; the unit counts the rows that it made them of.
            host = nest.fabric.host
            self._expected = expected_calls(host, launch.host, self._gathered)
            self._expected_rows = _rows_of(nest, expected)

    def lookups_done(self, side: Consumer) -> int:
        """Return the lookups done so far, nests weighing alike; bundles if the request has none."""
        expected = list(self._expected.values())
        if self._lookups is None or None in expected:
            return side.bundles + sum(facts["bundles"] for _, facts in self._nests)
        wanted = sum(count for count in expected if count is not None)
        share = sum(side.calls.values()) / wanted if wanted else 1.0
        return int(self._lookups * (len(self._nests) + share) / self._number_of_nests)

    def cycles(self, cycles: int | None) -> int | None:
        """Return the cycles so far, `cycles` of them in the nest that runs."""
        return None if cycles is None else cycles + (self._facts.get("cycles") or 0)

    def end(self, side: Consumer, counted: Mapping[str, Any]) -> None:
        """Check a nest and add it up.

        Parameters
        ----------
        side : Consumer
            The execute side at its end.
        counted : mapping of str to object
            What the backend counted: attributes of `Report`.

        Raises
        ------
        DeviceError
            A callback wasn't called as often as the request implies, or what came through the
            queues isn't what the unit counted.
        """
        name, calls = self._nest.name, side.calls
        for callback, wanted in self._expected.items():
            found = calls[callback]
            if wanted is not None and found != wanted:
                raise DeviceError(
                    f"calls of callback {callback} of nest {name!r} must be the {wanted} that the "
                    f"request implies, not {found}"
                )
        taken = {"bundles": side.bundles, "row_beats": side.row_beats, "rows": side.rows}
        facts: dict[str, Any] = {"results": 0, "written_bytes": 0, **taken, **counted}
        if self._nest.fabric is None:
            for what, value in taken.items():
                if facts[what] != value:
                    raise DeviceError(
                        f"{what} on the queues must be the {facts[what]} that the unit counted, "
                        f"not {value}"
                    )
            facts["useful_bytes"] += element_bytes(self._nest, calls, self._arguments)
            facts["leaving_bytes"] = facts["useful_bytes"]
        else:
            if self._expected_rows not in (None, facts["rows"]):
                raise DeviceError(
                    f"rows of nest {name!r} must be the {self._expected_rows} that the request "
                    f"implies, not the {facts['rows']} that the unit counted"
                )
            facts |= {"results": side.rows, "leaving_bytes": side.row_bytes}
        self._nests.append((self._nest, facts))
        self._facts = _joined(self._facts, facts) if self._facts else facts

    def facts(self) -> dict[str, Any]:
        """Return the attributes of `Report` that were counted."""
        nests = tuple(
            NestReport(
                nest.name,
                **_numbers(facts),
                execute=nest.execute,
                reason=nest.reason,
            )
            for nest, facts in self._nests
        )
        return {**self._facts, "nests": nests}


def _numbers(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: facts.get(key) for key in _SUMS}


def _rows_of(nest: Nest, calls: Mapping[int, int | None]) -> int | None:
    """Return the rows that callbacks take in so many calls; None where one isn't known."""
    total = 0
    for callback in nest.callbacks:
        rows, count = (
            sum(operand.kind == "row" for operand in callback.operands),
            calls[callback.id],
        )
        if rows and count is None:
            return None
        total += rows * (count or 0)
    return total


def _joined(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of two nests as those of one run: sums, and the higher of two marks."""
    joined = {**before, **after}
    for name in (*_SUMS, "uploaded_bytes"):
        if name in after:
            joined[name] = before[name] + after[name]
    for name, join in (("stalls", sum), ("high_water", max)):
        if name in after:
            joined[name] = {key: join((before[name][key], v)) for key, v in after[name].items()}
    return joined
