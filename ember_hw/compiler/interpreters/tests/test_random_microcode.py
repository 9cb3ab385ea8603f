"""The microcode interpreter equals a scalar one on random programs, faults included."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ember_hw.compiler.interpreters.scalar_microcode import Scalar
from ember_hw.compiler.interpreters.scalar_values import (
    Stopped,
    TooLongError,
    UndefinedError,
    Unknown,
)
from ember_hw.compiler.interpreters.tests.microcode import (
    DATA,
    DATA_BYTES,
    ROWS,
    TABLE,
    WIDE,
    Records,
    Regions,
    collect,
)
from ember_hw.config import LINE_BYTES, AcceleratorConfig
from ember_hw.isa import Microcode


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
