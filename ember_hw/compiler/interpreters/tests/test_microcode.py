"""Faults, arguments, requests and the input queue in the microcode interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.compiler.interpreters.tests.microcode import (
    DATA,
    ROWS,
    TABLE,
    Records,
    Regions,
    collect,
)
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import ProgramError
from ember_hw.isa import ISA_VERSION, Event, Microcode, event_mask
from ember_hw.registers import NO_UNIT, FaultCode

CONFIG = AcceleratorConfig(
    name="test",
    data_width_bits=64,
    traversal_units=2,
    exports=2,
    bundle_scalars=1,
    max_burst_beats=8,
    input_queue=1,
)


def loop(**changes: dict[str, int]) -> Records:
    """Return a loop of 4 iterations that loads rows by index from DATA, with fields changed."""
    records: Records = {
        "unit0": {"enable": 1, "step": 1, "upper_immediate": 4, "export0": 2},
        "unit0.stream0": {
            "enable": 1,
            "size": 3,
            "signed": 1,
            "base": DATA,
            "elements": 8,
            "induction": 1,
        },
        "row0": {
            "events": event_mask([(Event.ITERATE, 0)], CONFIG),
            "base": TABLE,
            "region_bytes": 64 * (ROWS + 8),
            "pitch": 64,
            "length": 64,
            "rows": ROWS,
        },
        "issue": {"events": event_mask([(Event.ITERATE, 0)], CONFIG)},
    }
    for path, fields in changes.items():
        records.setdefault(path, {}).update(fields)
    return records


def indices(*values: int) -> Regions:
    data = np.zeros(8, "<i8")
    data[: len(values)] = values
    return [(DATA, data.view(np.uint8)), (TABLE, np.arange(64 * ROWS).astype(np.uint8))]


FAULTS: dict[str, tuple[Records, Regions, tuple[int, int, int, int], str]] = {
    "version": (
        loop(header={"version": ISA_VERSION + 1}),
        indices(),
        (FaultCode.BAD_VERSION, NO_UNIT, 0, 0),
        "BAD_VERSION: the program's ISA version must be the hardware's; compile it again",
    ),
    "step": (
        loop(unit0={"step": 0}),
        indices(),
        (FaultCode.ILLEGAL_MICROCODE, NO_UNIT, 0, 0),
        "ILLEGAL_MICROCODE: a unit or more must be enabled, outermost first without a hole, "
        "with steps of 1 or more",
    ),
    "stream": (
        loop(unit0={"upper_immediate": 9}),
        indices(),
        (FaultCode.STREAM_OUT_OF_BOUNDS, 0, 0, 8),
        "STREAM_OUT_OF_BOUNDS (unit 0, stream 0, element 0x8): "
        "a memory stream must read within its region",
    ),
    "before the region": (
        loop(unit0={"lower_immediate": -1}),
        indices(),
        (FaultCode.STREAM_OUT_OF_BOUNDS, 0, 0, 0xFFFF_FFFF),
        "STREAM_OUT_OF_BOUNDS (unit 0, stream 0, element 0xffffffff): "
        "a memory stream must read within its region",
    ),
    "pair": (
        loop(unit0={"upper_immediate": 8, "pair": 1}),
        indices(),
        (FaultCode.STREAM_OUT_OF_BOUNDS, 0, 0, 8),
        "STREAM_OUT_OF_BOUNDS (unit 0, stream 0, element 0x8): "
        "a memory stream must read within its region",
    ),
    "index": (
        loop(),
        indices(0, ROWS, -1),
        (FaultCode.INDEX_OUT_OF_RANGE, NO_UNIT, 0, ROWS),
        "INDEX_OUT_OF_RANGE (row entry 0, index 0x8): an index must be a row of its table",
    ),
    "negative index": (
        loop(),
        indices(0, -1),
        (FaultCode.INDEX_OUT_OF_RANGE, NO_UNIT, 0, 0xFFFF_FFFF),
        "INDEX_OUT_OF_RANGE (row entry 0, index 0xffffffff): an index must be a row of its table",
    ),
    "part": (
        loop(row0={"offset_enable": 1, "offset_size": 3, "clip": 40, "length": 8}),
        indices(4, 5),
        (FaultCode.ROW_OUT_OF_BOUNDS, NO_UNIT, 0, 5),
        "ROW_OUT_OF_BOUNDS (row entry 0, index 0x5): "
        "a row, or the part of it, must have bytes, begin on a beat and lie in pitch and region, "
        "and exports must fit the fields they stand in for",
    ),
    "no length": (
        loop(row0={"length": 0}),
        indices(4),
        (FaultCode.ROW_OUT_OF_BOUNDS, NO_UNIT, 0, 4),
        "ROW_OUT_OF_BOUNDS (row entry 0, index 0x4): "
        "a row, or the part of it, must have bytes, begin on a beat and lie in pitch and region, "
        "and exports must fit the fields they stand in for",
    ),
    "beyond the region": (
        loop(row0={"region_bytes": 64 * 5 - 1}),
        indices(3, 4),
        (FaultCode.ROW_OUT_OF_BOUNDS, NO_UNIT, 0, 4),
        "ROW_OUT_OF_BOUNDS (row entry 0, index 0x4): "
        "a row, or the part of it, must have bytes, begin on a beat and lie in pitch and region, "
        "and exports must fit the fields they stand in for",
    ),
    "region of rows beyond the address width": (
        loop(row0={"region_bytes": (1 << 40) - TABLE + 1}),
        indices(3, 4),
        (FaultCode.ADDRESS_OVERFLOW, NO_UNIT, 0, 3),
        "ADDRESS_OVERFLOW (row entry 0, index 0x3): "
        "an element, or the region of a row, must lie within the address width",
    ),
    "stream beyond the address width": (
        loop(**{"unit0.stream0": {"base": (1 << 40) - 64, "first": 6, "elements": 20}}),
        [((1 << 40) - 64, np.zeros(64, np.uint8)), *indices()],
        (FaultCode.ADDRESS_OVERFLOW, 0, 0, 8),
        "ADDRESS_OVERFLOW (unit 0, stream 0, element 0x8): "
        "an element, or the region of a row, must lie within the address width",
    ),
    "input queue without a line": (
        loop(**{"unit0.stream0": {"source": 1}}),
        indices(),
        (FaultCode.MEMORY_STALLED, NO_UNIT, 0, 0),
        "MEMORY_STALLED: memory must answer within WATCHDOG cycles",
    ),
    "length": (
        loop(row0={"length_source": 1}),
        indices(4, 0),
        (FaultCode.ROW_OUT_OF_BOUNDS, NO_UNIT, 0, 0),
        "ROW_OUT_OF_BOUNDS (row entry 0, index 0x0): "
        "a row, or the part of it, must have bytes, begin on a beat and lie in pitch and region, "
        "and exports must fit the fields they stand in for",
    ),
    "pitch that is no multiple of the bus width": (
        loop(row0={"pitch_source": 1}),
        indices(4, 5, 7),
        (FaultCode.ROW_OUT_OF_BOUNDS, NO_UNIT, 0, 4),
        "ROW_OUT_OF_BOUNDS (row entry 0, index 0x4): "
        "a row, or the part of it, must have bytes, begin on a beat and lie in pitch and region, "
        "and exports must fit the fields they stand in for",
    ),
    "row longer than its pitch": (
        loop(row0={"pitch_source": 1}),
        indices(0, 5),
        (FaultCode.ROW_OUT_OF_BOUNDS, NO_UNIT, 0, 0),
        "ROW_OUT_OF_BOUNDS (row entry 0, index 0x0): "
        "a row, or the part of it, must have bytes, begin on a beat and lie in pitch and region, "
        "and exports must fit the fields they stand in for",
    ),
    "wide value": (
        loop(),
        indices(0, 1 << 31),
        (FaultCode.VALUE_TOO_WIDE, 0, 0, 1 << 31),
        "VALUE_TOO_WIDE (unit 0, stream 0, low word 0x80000000): "
        "an 8-byte element must fit in 32 bits, signed",
    ),
    "no memory for a stream": (
        loop(**{"unit0.stream0": {"base": 0x4000}}),
        indices(),
        (FaultCode.READ_DECODE_ERROR, 0, 0, 0x4000),
        "READ_DECODE_ERROR (unit 0, stream 0, address 0x4000): "
        "memory answered DECERR: no memory at this address",
    ),
    "no memory for a row": (
        loop(row0={"rows": 9}),
        indices(1, 8),
        (FaultCode.READ_DECODE_ERROR, NO_UNIT, 0, TABLE + 512),
        "READ_DECODE_ERROR (row entry 0, address 0x8200): "
        "memory answered DECERR: no memory at this address",
    ),
}


@pytest.mark.parametrize(
    ("records", "regions", "expected", "text"), FAULTS.values(), ids=FAULTS.keys()
)
def test_fault(
    records: Records, regions: Regions, expected: tuple[int, int, int, int], text: str
) -> None:
    *_, error = collect(Microcode(CONFIG, records), regions)
    assert error is not None
    assert (error.code, error.unit, error.stream, error.address) == expected
    assert str(error) == f"access unit fault {text}"


@pytest.mark.parametrize(
    "changes",
    [
        {"unit0": {"enable": 0}},
        {"unit0": {"enable": 0}, "unit1": {"enable": 1, "step": 1}},
        {"unit1": {"enable": 1}},
    ],
)
def test_illegal_microcode(changes: dict[str, Any]) -> None:
    *_, error = collect(Microcode(CONFIG, loop(**changes)), indices())
    assert error is not None
    assert error.code == FaultCode.ILLEGAL_MICROCODE


def test_undefined_microcode_is_refused() -> None:
    with pytest.raises(ProgramError) as raised:
        execute(Microcode(CONFIG, loop(row0={"base": TABLE + 4})), indices())
    assert str(raised.value) == "base of row0 must be a multiple of 8 bytes, not 0x8004"


def test_an_earlier_fault_further_down_comes_first() -> None:
    # Unit 0 faults in its third iteration, unit 1 in the second: programs run depth first.
    records: Records = {
        "unit0": {"enable": 1, "step": 1, "upper_immediate": 3, "export0": 1},
        "unit0.stream0": {"enable": 1, "base": DATA, "elements": 2, "induction": 1},
        "unit1": {"enable": 1, "step": 1, "upper_immediate": 1},
        "unit1.stream0": {"enable": 1, "base": DATA, "elements": 1},
    }
    records["unit1.stream0"] |= {"outer_enable": 1, "outer_pitch": 7}
    *_, error = collect(Microcode(CONFIG, records), indices())
    assert error is not None
    assert (error.unit, error.stream, error.address) == (1, 0, 7)


def test_table_address_from_a_value() -> None:
    records = loop(row0={"base_source": 1, "base_export": 0, "index_export": 1})
    found = collect(Microcode(CONFIG, records), indices(0, 1, 6, 0), requests=[[9, 1]])
    assert found[1] == [bytes(i % 256 for i in range(64 * n, 64 * n + 64)) for n in (1, 2, 7, 1)]
    assert found[2] is None


def test_requests_run_one_after_another_with_their_arguments() -> None:
    records: Records = {
        "unit0": {"enable": 1, "step": 1, "lower_source": 1, "upper_source": 1, "upper_export": 1},
        "issue": {"events": event_mask([(Event.ITERATE, 0)], CONFIG)},
    }
    records["unit0"]["export0"] = 1
    bundles, _, error = collect(
        Microcode(CONFIG, records), [], requests=[[3, 6], [5, 5], [0xFFFF_FFFF, 1]]
    )
    assert error is None
    iterate, end = (event_mask([(event, 0)], CONFIG) for event in (Event.ITERATE, Event.END))
    assert [events for events, _ in bundles] == [
        *(iterate, iterate, iterate | end),
        end,
        *(iterate, iterate | end),
    ]
    defined = [scalars[0] for events, scalars in bundles if events & iterate]
    assert defined == [3, 4, 5, 0xFFFF_FFFF, 0]
    assert collect(Microcode(CONFIG, records), [], requests=[]) == ([], [], None)


def test_input_queue_brings_a_line_at_each_change_and_each_request() -> None:
    records = loop(
        unit0={"pair": 1, "upper_immediate": 9, "export0": 2, "export1": 3},
        row0={"events": 0},
        **{"unit0.stream0": {"source": 1, "elements": 10}},
    )
    records["unit0"]["export1"] = CONFIG.streams_per_unit + 2
    lines = np.arange(4 * 8).astype("<i8").view(np.uint8).reshape(4, 64)
    for chunk_tokens in (1, 4, 1 << 16):
        bundles, _, error = collect(
            Microcode(CONFIG, records),
            [],
            requests=[(), ()],
            lines={(0, 0): lines},
            chunk_tokens=chunk_tokens,
        )
        assert error is None
        # Elements 0 to 8 of two lines, then as many of the next two.
        assert [scalars[0] for _, scalars in bundles] == [*range(9), *range(16, 25)]


def test_arguments_are_32_bits_wide_and_no_more_than_exports() -> None:
    microcode = Microcode(CONFIG, loop())
    with pytest.raises(ValueError, match="arguments") as raised:
        execute(microcode, [], requests=[(), (1, 2, 3)])
    assert str(raised.value) == "arguments of request 1 must be at most 2, not 3"
    for value in (1 << 32, -(1 << 31) - 1):
        with pytest.raises(ValueError, match="argument") as raised:
            execute(microcode, [], requests=[(0, value)])
        text = f"argument 1 of request 0 must be 32 bits wide, not {value!r}"
        assert str(raised.value) == text


def test_lines_are_64_bytes() -> None:
    with pytest.raises(ValueError, match="lines") as raised:
        execute(Microcode(CONFIG, loop()), [], lines={(0, 1): np.zeros((2, 32), np.uint8)})
    assert str(raised.value) == (
        "lines of unit 0, stream 1 must be uint8 of shape (N, 64), not uint8 of shape (2, 32)"
    )


def test_chunks_stay_small() -> None:
    records = loop(unit0={"upper_immediate": 8})
    chunks = list(execute(Microcode(CONFIG, records), indices(), chunk_row_bytes=200))
    assert [len(chunk.row_beats) for chunk in chunks] == [24, 24, 16]
    assert [len(chunk.events) for chunk in chunks] == [3, 3, 2]
    chunks = list(execute(Microcode(CONFIG, records), indices(), chunk_tokens=5))
    assert [len(chunk.events) for chunk in chunks] == [5, 3]
