"""The microcode interpreter equals a scalar one on random programs, faults included."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.compiler.interpreters.scalar_microcode import (
    Scalar,
    Stopped,
    TooLongError,
    UndefinedError,
    Unknown,
)
from ember_hw.config import LINE_BYTES, AcceleratorConfig
from ember_hw.errors import DeviceError, ProgramError
from ember_hw.isa import ISA_VERSION, Event, Microcode, event_mask
from ember_hw.registers import NO_UNIT, FaultCode

Records = dict[str, dict[str, int]]
Regions = list[tuple[int, NDArray[np.uint8]]]

DATA, DATA_BYTES, WIDE, TABLE, ROWS = 0x1000, 512, 0x2000, 0x8000, 8
CONFIG = AcceleratorConfig(
    name="test",
    data_width_bits=64,
    traversal_units=2,
    exports=2,
    bundle_scalars=1,
    max_burst_beats=8,
    input_queue=1,
)


def memory(seed: int) -> Regions:
    """Return small numbers of any element size, some of 64 bits, and a table of 64-byte rows."""
    rng = np.random.default_rng(seed)
    small = rng.integers(-1, 7, DATA_BYTES // 8).astype("<i8").view(np.uint8)
    wide = np.array([3, 1 << 31, 1, -(1 << 31), -(1 << 31) - 1, 0], "<i8").view(np.uint8)
    table = rng.integers(0, 256, 64 * ROWS, np.uint8)
    return [(DATA, small), (WIDE, wide), (TABLE, table)]


def random_program(rng: random.Random) -> Microcode:
    """Return a program of any shape whose loops are short."""

    def one(*choices: int) -> int:
        return rng.choice(choices)

    def number(least: int, most: int) -> int:
        return rng.randint(least, most)

    config = AcceleratorConfig(
        data_width_bits=one(64, 128),
        traversal_units=number(1, 4),
        streams_per_unit=number(1, 2),
        row_entries=number(1, 3),
        exports=number(2, 4),
        bundle_scalars=number(1, 2),
        input_queue=1,
    )
    units = one(config.traversal_units, number(1, config.traversal_units))
    last_slot, last_export = config.slots - 1, config.exports - 1
    records: Records = {}
    for k in range(units):
        record = {
            "enable": 1,
            "step": one(1, 1, 1, 2, 3),
            "lower_source": one(0, 0, 0, 0, 0, 1),
            "lower_export": number(0, last_export),
            "lower_immediate": one(0, 0, 1, -1),
            "upper_source": one(2, 2, 2, 0, 0, 0, 1),
            "upper_export": number(0, last_export),
            "upper_immediate": one(4, 5, 6, 7, 8, 2, 0),
            "alu_operation": number(0, 3),
            "alu_a_slot": number(0, config.streams_per_unit),
            "alu_b_source": number(0, 1),
            "alu_b_slot": number(0, last_slot),
            "alu_immediate": number(-3, 33),
        }
        choices = config.streams_per_unit + 2
        record |= {f"export{i}": number(0, choices) for i in range(config.exports)}
        for s in range(config.streams_per_unit):
            size = number(0, 3)
            base, region_bytes = rng.choice(
                [(DATA, DATA_BYTES)] * 20 + [(WIDE, 48), (DATA, 16), (0x40, 64)]
            )
            records[f"unit{k}.stream{s}"] = {
                "enable": one(1, 1, 0),
                "source": one(0, 0, 1),
                "size": size,
                "signed": number(0, 1),
                "base": base,
                "elements": region_bytes >> size,
                "first": number(1, 9),
                "induction": one(1, 1, 0),
                "outer_enable": number(0, 1),
                "outer_export": number(0, last_export),
                "outer_pitch": number(0, 3),
            }
        record["pair"] = records[f"unit{k}.stream0"]["enable"] and number(0, 1)
        records[f"unit{k}"] = record
    for r in range(config.row_entries):
        bus_bytes = config.bus_bytes
        records[f"row{r}"] = {
            "events": number(0, (1 << config.events) - 1) & number(0, (1 << config.events) - 1),
            "index_export": number(0, last_export),
            "base": TABLE,
            "region_bytes": 64 * one(ROWS, ROWS, ROWS - 1),
            "base_source": one(*[0] * 5, 1),
            "base_export": number(0, last_export),
            "pitch": one(bus_bytes, 64),
            "length_source": one(*[0] * 9, 1),
            "length": one(1, bus_bytes, 40, 64),
            "length_export": number(0, last_export),
            "rows": one(ROWS - 2, ROWS, 1 << 31),
        }
        if one(0, 0, 0, 0, 0, 0, 0, 1):
            # A part: offsets in units of 8 bytes, unaligned on the wider bus where odd.
            part = {"offset_enable": 1, "offset_export": number(0, last_export)}
            part |= {"offset_size": 3, "clip": number(0, 64), "length": bus_bytes}
            records[f"row{r}"] |= part
    records["issue"] = {"events": number(0, (1 << config.events) - 1)}
    return Microcode(config, records)


def collect(
    microcode: Microcode, regions: Regions, **options: Any
) -> tuple[list[tuple[int, tuple[int, ...]]], list[bytes], DeviceError | None]:
    """Return all bundles and rows, and the fault that ended the run."""
    bundles: list[tuple[int, tuple[int, ...]]] = []
    rows: list[bytes] = []
    part = b""
    try:
        for chunk in execute(microcode, regions, **options):
            assert chunk.events.dtype == chunk.scalars.dtype == np.uint32
            assert chunk.row_beats.shape == (len(chunk.row_last), microcode.config.bus_bytes)
            for events, scalars in zip(chunk.events, chunk.scalars, strict=True):
                bundles.append((int(events), tuple(int(scalar) for scalar in scalars)))
            beats = zip(chunk.row_beats, chunk.row_last, chunk.row_keep, strict=True)
            for beat, last, keep in beats:
                assert not beat[keep:].any()
                part += beat[:keep].tobytes()
                if last:
                    rows.append(part)
                    part = b""
            assert not part, "a row must end within its chunk"
    except DeviceError as error:
        return bundles, rows, error
    return bundles, rows, None


@pytest.mark.parametrize("seed", range(300))
def test_equals_the_scalar_interpreter(seed: int) -> None:
    rng = random.Random(seed)
    microcode, regions = random_program(rng), memory(seed)
    requests = [
        [rng.randint(-2, 6) for _ in range(rng.randint(0, microcode.config.exports))]
        for _ in range(rng.choice([1, 1, 2, 5, 0]))
    ]
    few = np.random.default_rng(seed).integers(-1, 5, (400, LINE_BYTES // 8)).astype("<i8")
    queue = few.view(np.uint8)
    feeds = {(unit, stream): queue[unit + stream :] for unit in range(4) for stream in range(2)}
    if rng.random() < 0.2:
        feeds = {key: lines[:3] for key, lines in feeds.items()}
    chunk_tokens = rng.choice([1, 2, 7, 1 << 16])
    scalar = Scalar(
        microcode,
        [(base, content.tobytes()) for base, content in regions],
        requests=requests,
        lines={key: [line.tobytes() for line in lines] for key, lines in feeds.items()},
    )
    stopped: Stopped | None = None
    try:
        scalar.run()
    except Stopped as reason:
        stopped = reason
    except (TooLongError, UndefinedError):
        return
    bundles, rows, error = collect(
        microcode,
        regions,
        requests=requests,
        lines=feeds,
        chunk_tokens=chunk_tokens,
        chunk_row_bytes=64 * chunk_tokens,
    )
    if stopped is None:
        assert error is None
        assert len(bundles) == len(scalar.bundles)
        assert rows == scalar.rows
    else:
        assert error is not None
        found = (error.code, error.unit, error.stream, error.address)
        fault = stopped.fault
        assert found == (fault.code, fault.unit, fault.stream, fault.address)
        assert rows == scalar.rows[: len(rows)]
    for (events, scalars), (expected_events, expected) in zip(
        bundles, scalar.bundles, strict=False
    ):
        assert events == expected_events
        known = zip(scalars, expected, strict=True)
        assert all(value == wanted for value, wanted in known if not isinstance(wanted, Unknown))


# One test a fault, so that each is sure to be met.


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
