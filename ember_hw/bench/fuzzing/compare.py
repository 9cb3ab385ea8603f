"""Judges what hardware and the fast interpreter made of a case, by the scalar interpreter.

A program without a fault: everything is equal, scalars where they are defined, and what is read is
what the program asks for, each line once. A program with faults: the interpreter meets the first in
the order of the program; hardware the first in time, which is one of those that the scalar
interpreter collects, as none of them depends on another. What hardware delivered of the tokens
before the program's first fault is right all the same.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ember_hw.bench.fuzzing.case import Case
from ember_hw.bench.fuzzing.outcome import Outcome
from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.compiler.interpreters.scalar_microcode import Scalar
from ember_hw.compiler.interpreters.scalar_values import Fault, Unknown, Value
from ember_hw.config import LINE_BYTES
from ember_hw.errors import DeviceError
from ember_hw.registers import Counter, FaultCode, State, row_counter, stream_counter

Bundles = Sequence[tuple[int, tuple[Value, ...]]]

_STALLS = (FaultCode.EXECUTE_STALLED, FaultCode.MEMORY_STALLED)


def judge(case: Case, outcome: Outcome) -> str | None:
    """Return what is wrong with hardware's outcome, or None."""
    whole, (first, _) = case.whole, case.first
    faults = whole.faults
    if case.environment.reset_after_polls is not None:
        return _misread(case, outcome) or _different_prefix(case, first, outcome)
    if outcome.state is State.DONE:
        if faults:
            return f"it ended, but must fault: {faults[0]}"
        return _different(case, whole, outcome)
    if outcome.state is not State.FAULTED:
        return f"it came to rest as {outcome.state.name}"
    if not _is_explained(case, faults, outcome.fault):
        code, unit, stream, address = outcome.fault
        return (
            f"it must fault with one of {faults[:5]}, "
            f"not {FaultCode(code).name} of {unit}, {stream} at {address:#x}"
        )
    return _misread(case, outcome) or _different_prefix(case, first, outcome)


def judge_interpreter(case: Case) -> str | None:
    """Return what is wrong with the fast interpreter, or None."""
    scalar, fault = case.first
    if fault is not None and fault.code is FaultCode.READ_SLAVE_ERROR:
        return None  # its memory answers no error
    bundles: list[tuple[int, tuple[int, ...]]] = []
    rows: list[bytes] = []
    part = b""
    error: DeviceError | None = None
    lines = {who: _matrix(brought) for who, brought in case.lines.items()}
    try:
        for chunk in execute(case.microcode, case.regions, requests=case.requests, lines=lines):
            for events, scalars in zip(chunk.events, chunk.scalars, strict=True):
                bundles.append((int(events), tuple(int(value) for value in scalars)))
            beats = zip(chunk.row_beats, chunk.row_last, chunk.row_keep, strict=True)
            for beat, last, keep in beats:
                part += beat[:keep].tobytes()
                if last:
                    rows.append(part)
                    part = b""
    except DeviceError as reason:
        error = reason
    if fault is None:
        if error is not None:
            return f"interpreter: it must not fault, but: {error}"
        if rows != scalar.rows:
            return "interpreter: rows differ"
        if len(bundles) != len(scalar.bundles):
            return f"interpreter: {len(bundles)} bundles, not {len(scalar.bundles)}"
    elif error is None:
        return f"interpreter: it must fault: {fault}"
    elif not fault.covers(error.code or 0, error.unit or 0, error.stream or 0, error.address or 0):
        return f"interpreter: it must fault with {fault}, not {error}"
    return _different_bundles("interpreter: ", bundles, scalar.bundles)


def _matrix(lines: Sequence[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(lines), np.uint8).reshape(-1, LINE_BYTES)


def _is_explained(case: Case, faults: Sequence[Fault], found: tuple[int, int, int, int]) -> bool:
    """Tell whether hardware may report this fault."""
    if any(fault.covers(*found) for fault in faults):
        return True
    code = found[0]
    if case.environment.abort_after_polls is not None and code == FaultCode.ABORTED:
        return True
    return case.environment.may_stall and code in _STALLS


def _different(case: Case, scalar: Scalar, outcome: Outcome) -> str | None:
    """Compare all that a program without a fault brings."""
    if outcome.completed != len(case.requests):
        return f"{outcome.completed} requests ended, not {len(case.requests)}"
    if len(outcome.bundles) != len(scalar.bundles):
        return f"{len(outcome.bundles)} bundles, not {len(scalar.bundles)}"
    if len(outcome.rows) != len(scalar.rows) or outcome.part:
        return f"{len(outcome.rows)} rows and {len(outcome.part)} bytes, not {len(scalar.rows)}"
    row_bytes = sum(len(row) for row in scalar.rows)
    if outcome.row_bytes not in (None, row_bytes):
        return f"{outcome.row_bytes} bytes of rows, not {row_bytes}"
    return (
        _different_bundles("", outcome.bundles, scalar.bundles)
        or _different_rows(case, outcome.rows, scalar.rows)
        or _different_reads(case, scalar, outcome)
        or _different_counters(case, scalar, outcome)
    )


def _different_prefix(case: Case, first: Scalar, outcome: Outcome) -> str | None:
    """Compare what was delivered of the tokens before the first fault."""
    return _different_bundles("", outcome.bundles, first.bundles) or _different_rows(
        case, outcome.rows, first.rows
    )


def _different_bundles(who: str, found: Bundles, wanted: Bundles) -> str | None:
    for number, (have, want) in enumerate(zip(found, wanted, strict=False)):
        if have[0] != want[0]:
            return f"{who}bundle {number}: events {have[0]:#x}, not {want[0]:#x}"
        for i, (value, expected) in enumerate(zip(have[1], want[1], strict=True)):
            if not isinstance(expected, Unknown) and value != expected:
                return f"{who}bundle {number}: scalar {i} is {value:#x}, not {expected:#x}"
    return None


def _different_rows(case: Case, found: Sequence[bytes], wanted: Sequence[bytes]) -> str | None:
    bus_bytes = case.config.bus_bytes
    for number, (have, want) in enumerate(zip(found, wanted, strict=False)):
        if len(have) != -(-len(want) // bus_bytes) * bus_bytes:
            return f"row {number}: {len(have)} bytes in whole beats, not {len(want)}"
        if have[: len(want)] != want:
            return f"row {number} of {len(want)} bytes: {have[: len(want)].hex()}, not {want.hex()}"
    return None


def _different_reads(case: Case, scalar: Scalar, outcome: Outcome) -> str | None:
    """Compare what was read with what the program asks for, beat for beat."""
    bus_bytes = case.config.bus_bytes
    wanted: Tally[int] = Tally()
    spans = [(address, LINE_BYTES) for _, _, address in scalar.lines_read]
    spans += [(address, -(-size // bus_bytes) * bus_bytes) for _, address, size in scalar.rows_read]
    for address, size in spans:
        wanted.update(range(address, address + size, 8))
    found: Tally[int] = Tally()
    for address, size in outcome.reads:
        found.update(range(address, address + size, 8))
    if found == wanted:
        return None
    more, less = found - wanted, wanted - found
    return (
        f"reads: {len(more)} words too many from {min(more, default=0):#x}, "
        f"{len(less)} missing from {min(less, default=0):#x}"
    )


def _misread(case: Case, outcome: Outcome) -> str | None:
    """Find a read outside every region that the program names."""
    spans = case.named_spans()
    limits = sorted((base, -(-(base + size) // LINE_BYTES) * LINE_BYTES) for base, size in spans)
    merged: list[tuple[int, int]] = []
    for begin, end in limits:
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    assert all(low[1] < high[0] for low, high in pairwise(merged))
    for address, size in outcome.reads:
        if not any(begin <= address and address + size <= end for begin, end in merged):
            return f"read of {size} bytes at {address:#x} outside every region"
        if address + size > 1 << case.config.address_width_bits:
            return f"read of {size} bytes at {address:#x} beyond the address width"
    return None


def _different_counters(case: Case, scalar: Scalar, outcome: Outcome) -> str | None:
    """Compare the unit's counters, where they were read.

    They begin anew whenever the unit was at rest, so those of several requests say nothing. A cycle
    with a beat of a row and one of an index line counts as the former.
    """
    if not outcome.counters or len(case.requests) > 1:
        return None
    config = case.config
    bus_bytes = config.bus_bytes
    wanted = {
        int(Counter.BUNDLES): len(scalar.bundles),
        int(Counter.ROWS): len(scalar.rows_read),
        int(Counter.ROW_BYTES): sum(size for _, _, size in scalar.rows_read),
        int(Counter.ROW_BEATS): sum(-(-size // bus_bytes) for _, _, size in scalar.rows_read),
    }
    if not config.index_port_bits:
        wanted[int(Counter.INDEX_BEATS)] = len(scalar.lines_read) * config.line_beats
    lines = Tally((unit, stream) for unit, stream, _ in scalar.lines_read)
    for unit in range(config.traversal_units):
        for stream in range(config.streams_per_unit):
            wanted[stream_counter(unit, stream, config)] = lines[unit, stream]
    rows = Tally(entry for entry, _, _ in scalar.rows_read)
    for entry in range(config.row_entries):
        wanted[row_counter(entry, config)] = rows[entry]
    for number, value in wanted.items():
        if outcome.counters[number] != value:
            name = Counter(number).name if number < len(Counter) else str(number)
            return f"counter {name} is {outcome.counters[number]}, not {value}"
    return None
