"""Loads go down where that leaves a unit without any, and nowhere else."""

from __future__ import annotations

import pytest

from ember_hw.compiler.backend.assemble import assemble
from ember_hw.compiler.backend.sink_loads import sink_loads
from ember_hw.compiler.backend.tests.test_relays import CONFIG, parse

TABLES = """
  au.tu t0 = 0 to a1 step 1
  au.mem s0 on t0 = a0[t0 * 4 + 1] : i32
  au.tu t1 under t0 = 0 to a1 step 1
  au.mem s1 on t1 = a0[t1] : i32
  au.tu t2 under t1 = 0 to s1 step 1
  au.mem s2 on t2 = a0[t2] : i32
  au.alu s3 on t2 = add s2, s0
  au.row r0 on t2 = a2[s3 * 16] len 4 : f32
  au.push t2 ite id 1 (r0)
  au.push t2 end id 2 (s0)
"""


def sunk(body: str) -> list[str]:
    """Return the units and streams; the program must assemble."""
    program = sink_loads(parse(body), CONFIG)
    program.verify()
    assemble(program, CONFIG)
    lines = [line.strip() for line in str(program).splitlines()]
    return [line for line in lines if line.startswith(("au.tu", "au.mem", "au.alu", "au.next"))]


def test_loads_that_are_read_further_down_are_made_beside_those_of_the_unit_below() -> None:
    assert sunk(TABLES) == [
        "au.tu t0 = 0 to a1 step 1",
        "au.tu t1 under t0 = 0 to a1 step 1",
        "au.mem s0 on t1 = a0[t0 * 4 + 1] : i32",
        "au.mem s1 on t1 = a0[t1] : i32",
        "au.tu t2 under t1 = 0 to s1 step 1",
        "au.mem s2 on t2 = a0[t2] : i32",
        "au.alu s3 on t2 = add s2, s0",
    ]


STAYS = {
    "bound": ("t1 under t0 = 0 to a1", "t1 under t0 = 0 to s0"),
    "arithmetic of the unit below": (
        "au.tu t2 under t1 = 0 to s1 step 1",
        "au.alu s9 on t1 = add s1, s0 au.tu t2 under t1 = 0 to s9 step 1",
    ),
    "address of the unit below": ("a0[t1]", "a0[s0 * 2 + t1]"),
    "a pair": (
        "au.tu t1 under t0 = 0 to a1",
        "au.next s9 on t0 = s0 au.tu t1 under t0 = 0 to s9",
    ),
    "a push of the unit": ("au.push t2 ite", "au.push t0 ite id 3 (s0) au.push t2 ite"),
    "a push before the unit below": ("au.push t2 ite", "au.push t1 beg id 3 (s0) au.push t2 ite"),
    "a row of the unit": (
        "au.push t2 ite",
        "au.row r1 on t0 = a2[s0 * 16] len 4 : f32 au.push t1 end id 3 (r1) au.push t2 ite",
    ),
    "no room below": (
        "au.tu t2 under",
        "au.mem s9 on t1 = a0[t1 + 1] : i32 au.tu t2 under",
    ),
    "elements too far apart": ("t0 * 4 + 1", "t0 * 131072 + 1"),
    "a factor that is an argument": ("t0 * 4 + 1", "t0 * a1 + 1"),
    "an offset that is an argument": ("t0 * 4 + 1", "t0 + a1"),
    "no loads below": ("au.mem s1 on t1 = a0[t1] : i32", "au.alu s1 on t1 = add t1, 1"),
}


@pytest.mark.parametrize("reason", STAYS)
def test_a_load_stays_where_it_is(reason: str) -> None:
    body = TABLES.replace(*STAYS[reason])
    assert body != TABLES
    program = parse(body)
    assert sink_loads(program, CONFIG) is program


def test_a_value_that_a_unit_below_pushes_may_come_from_there() -> None:
    body = TABLES.replace("au.push t2 ite id 1 (r0)", "au.push t2 ite id 1 (s0, r0)")
    assert "au.mem s0 on t1 = a0[t0 * 4 + 1] : i32" in sunk(body)
