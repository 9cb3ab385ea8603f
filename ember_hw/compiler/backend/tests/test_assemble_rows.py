"""Rows and parts of rows become row entries, or an error that names the op."""

from __future__ import annotations

import pytest

from ember_hw.compiler.backend.assemble import assemble_text
from ember_hw.compiler.backend.tests.test_assemble import (
    CONFIG,
    LOOKUPS,
    PARTS,
    patches,
    program,
    records,
    refused,
)
from ember_hw.compiler.program import Operand, Patch
from ember_hw.isa import Hint, Source


def test_whole_row() -> None:
    body = f"{LOOKUPS} au.row r0 on t1 = a2[s2 * 32] len 20 : f32 {{nontemporal}}"
    body += " au.push t1 ite id 1 (r0)"
    assert records(body)["row0"] == {
        "events": 1 << 4,
        "pitch": 128,
        "length": 80,
        "hint": Hint.NON_TEMPORAL,
    }
    assert patches(body, "row0") == {
        Patch("row0", "base", "tab"),
        Patch("row0", "region_bytes", "tab.bytes"),
        Patch("row0", "rows", "tab.rows"),
    }


def test_row_that_will_be_used_again() -> None:
    body = f"{LOOKUPS} au.row r0 on t1 = a2[s2 * 32] len 20 : f32 {{keep}}"
    assert records(f"{body} au.push t1 ite id 1 (r0)")["row0"]["hint"] == Hint.KEEP


def test_row_of_arguments() -> None:
    body = f"{LOOKUPS} au.row r0 on t1 = a2[s2 * a3] len a1 : f32 au.push t1 ite id 1 (r0)"
    assert {Patch("row0", "pitch", "tab.pitch", 4), Patch("row0", "length", "n", 4)} < patches(
        body, "row0"
    )


def test_row_of_bytes_may_have_computed_shape() -> None:
    body = f"{LOOKUPS} au.row r0 on t1 = a4[s2 * s0] len s1 : i8 au.push t1 ite id 1 (r0)"
    found = records(body)["row0"]
    # s0 and s1, the bounds, stay where unit 0 exports them; s2 takes the next number.
    assert found == {
        "events": 1 << 4,
        "index_export": 2,
        "pitch_source": Source.SLOT,
        "length_source": Source.SLOT,
        "length_export": 1,
    }
    assert records(body)["unit1"]["export2"] == 2


#: Table t0 with descriptor s0, s1, s2, lookups t1.
TABLES = """
    au.tu t0 = 0 to a1 step 1
    au.mem s0 on t0 = a0[t0] : i32
    au.mem s1 on t0 = a0[t0 + 8] : i32
    au.alu s2 on t0 = shl s1, 2
    au.tu t1 under t0 = 0 to 9 step 1
    au.mem s3 on t1 = a0[t1] : i32
"""


def test_table_of_computed_place_and_shape() -> None:
    body = f"{TABLES} au.row r0 on t1 = a2[s3 * s2] at s0 rows s1 len s2 : f32 {{bytes}}"
    body += " au.push t1 ite id 1 (r0)"
    assert records(body)["row0"] == {
        "events": 1 << 4,
        "base_source": Source.SLOT,
        "rows_source": Source.SLOT,
        "rows_export": 1,
        "pitch_source": Source.SLOT,
        "pitch_export": 2,
        "length_source": Source.SLOT,
        "length_export": 2,
        "index_export": 3,
    }
    assert patches(body, "row0") == {
        Patch("row0", "base", "tab"),
        Patch("row0", "region_bytes", "tab.bytes"),
    }


def test_constants_of_a_table_count_bytes_too() -> None:
    body = f"{TABLES} au.row r0 on t1 = a2[s3 * a1] at s0 rows 7 len 24 : f32 {{bytes}}"
    body += " au.push t1 ite id 1 (r0)"
    found = records(body)["row0"]
    assert (found["rows"], found["length"], found["index_export"]) == (7, 24, 1)
    assert Patch("row0", "pitch", "n") in patches(body, "row0")


def test_part_of_a_row() -> None:
    body = f"{PARTS} au.row r0 on t2 = a2[s2 * a3 + t2] len 8 clip t2 to 20 : f32"
    body += " au.push t2 ite id 1 (r0)"
    found = records(body)["row0"]
    assert found == {
        "events": 1 << 5,
        "length": 32,
        "offset_enable": 1,
        "offset_export": 1,
        "offset_size": 2,
        "clip": 80,
    }


@pytest.mark.parametrize(
    ("units", "row", "problem"),
    [
        (LOOKUPS, "a2[3 * a3] len 4", "row number must be a value, not 3"),
        (
            LOOKUPS,
            "a2[s2 * a3] at 4 len 4",
            "distance of a table must be a value, not 4",
        ),
        (
            LOOKUPS,
            "a2[s2 * s0] len 4",
            "pitch must be an integer or argument, not s0: only of bytes may it be a value",
        ),
        (
            LOOKUPS,
            "a2[s2 * a3] len s0",
            "length must be an integer or argument, not s0: only of bytes may it be a value",
        ),
        (
            LOOKUPS,
            "a2[s2 * a3 + 4] len 4",
            "offset of a part must be a unit's value, not 4",
        ),
        (
            LOOKUPS,
            "a2[s2 * a3] len 4 clip 0 to a1",
            "offset of a part must be a unit's value, not absent",
        ),
        (
            LOOKUPS,
            "a2[s2 * a3 + t1] len 4",
            "clip must be t1 to an integer or argument, not absent",
        ),
        (
            LOOKUPS,
            "a2[s2 * a3 + t1] len 4 clip t0 to a1",
            "clip must be t1 to an integer or argument, not t0 to a1",
        ),
        (
            LOOKUPS,
            "a2[s2 * a3 + t1] len 4 clip t1 to s0",
            "clip must be t1 to an integer or argument, not t1 to s0",
        ),
        (
            LOOKUPS,
            "a2[s2 * a3 + t1] len 4 clip t1 to a1",
            "lower bound of t1 must be a multiple of 4 elements, the bus width of config 'test', "
            "not s0",
        ),
        (
            f"{LOOKUPS} au.tu t2 under t1 = 0 to 20 step 6",
            "a2[s2 * a3 + t2] len 4 clip t2 to a1",
            "step of t2 must be a multiple of 4 elements, the bus width of config 'test', not 6",
        ),
        (
            PARTS,
            "a2[s2 * a3 + t2] len 7 clip t2 to a1",
            "length must be a multiple of 4 elements, the bus width of config 'test', not 7",
        ),
        (
            LOOKUPS,
            "a2[s2 * a3] len 70000",
            "field 'length' of record 'row0' must be from 0 to 65535, not 280000",
        ),
    ],
)
def test_rows_without_a_record(units: str, row: str, problem: str) -> None:
    unit = "t2" if "t2 under" in units else "t1"
    body = f"{units} au.row r0 on {unit} = {row} : f32 au.push {unit} ite id 1 (r0)"
    assert refused(body) == f"au: 'au.row r0 on {unit}': {problem}"


@pytest.mark.parametrize(
    ("pushes", "times"),
    [
        ("", 0),
        ("au.push t1 ite id 1 (r0, r0)", 2),
        ("au.push t1 ite id 1 (r0) au.push t2 ite id 2 (r0)", 2),
    ],
)
def test_row_is_pushed_once(pushes: str, times: int) -> None:
    body = f"{PARTS} au.row r0 on t1 = a2[s2 * a3] len 4 : f32 {pushes}"
    assert refused(body) == f"au: 'au.row r0 on t1': must be pushed once, not {times} times"


def test_limit_of_rows() -> None:
    rows = [f"au.row r{n} on t1 = a2[s2 * a3] len 4 : f32" for n in range(3)]
    body = f"{LOOKUPS} {' '.join(rows[:2])} au.push t1 ite id 1 (r1, r0)"
    assert assemble_text(program(body), CONFIG).callbacks[0].operands == (
        Operand("row", 1, "f32"),
        Operand("row", 0, "f32"),
    )
    body = f"{LOOKUPS} {' '.join(rows)} au.push t1 ite id 1 (r1, r0, r2)"
    assert refused(body) == (
        "au: 'au.row r2 on t1': needs row entry 2, config 'test' has 2 (limit row_entries)"
    )
