"""What right hardware would bring, without any hardware."""

from __future__ import annotations

from ember_hw.bench.fuzzing.case import Case
from ember_hw.bench.fuzzing.outcome import Outcome
from ember_hw.compiler.interpreters.scalar_values import Unknown
from ember_hw.registers import State


def right_outcome(case: Case) -> Outcome:
    """Return what a program without a fault, or its first one, brings."""
    scalar = case.whole
    bus_bytes = case.config.bus_bytes
    outcome = Outcome(state=State.DONE, completed=len(case.requests))
    outcome.bundles = [
        (events, tuple(0 if isinstance(value, Unknown) else value for value in scalars))
        for events, scalars in scalar.bundles
    ]
    outcome.rows = [row.ljust(-(-len(row) // bus_bytes) * bus_bytes, b"?") for row in scalar.rows]
    outcome.row_bytes = sum(len(row) for row in scalar.rows)
    outcome.reads = [(address, 64) for _, _, address in scalar.lines_read]
    outcome.reads += [
        (address, -(-size // bus_bytes) * bus_bytes) for _, address, size in scalar.rows_read
    ]
    if scalar.faults:
        first = scalar.faults[0]
        outcome = Outcome(
            state=State.FAULTED, fault=(first.code, first.unit, first.stream, first.address)
        )
    return outcome
