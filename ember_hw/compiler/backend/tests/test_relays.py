"""What a unit has no room for goes to relays, and only that; names, events and order stay."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from ember_hw.compiler.backend.assemble import assemble
from ember_hw.compiler.backend.exports import LimitError
from ember_hw.compiler.backend.relays import add_relays
from ember_hw.compiler.dialects.au import AU, ProgramOp
from ember_hw.config import AcceleratorConfig

CONFIG = AcceleratorConfig(name="test", data_width_bits=128, traversal_units=4, row_entries=3)
ARGUMENTS = """
  au.arg a0 "x" : memref<?xi32>
  au.arg a1 "n" : index
  au.arg a2 "tab" : memref<?x?xf32>
"""


def parse(body: str) -> ProgramOp:
    context = Context()
    for dialect in (Builtin, AU):
        context.load_dialect(dialect)
    module = Parser(context, f'au.program @p target "test" {{ {ARGUMENTS} {body} }}').parse_module()
    module.verify()
    program = module.body.block.first_op
    assert isinstance(program, ProgramOp)
    return program


def relayed(body: str, config: AcceleratorConfig = CONFIG) -> list[str]:
    """Return the records that aren't arguments; the program must assemble and be readable again."""
    program = add_relays(parse(body), config)
    program.verify()
    assemble(program, config)
    lines = [line.strip() for line in str(program).splitlines()[1:-1]]
    return [line for line in lines if not line.startswith("au.arg")]


def refused(body: str, config: AcceleratorConfig = CONFIG) -> str:
    with pytest.raises(LimitError) as raised:
        add_relays(parse(body), config)
    assert raised.value.limit == "traversal_units"
    return str(raised.value)


FITS = """
  au.tu t0 = 0 to a1 step 1
  au.mem s0 on t0 = a0[t0] : i32
  au.mem s1 on t0 = a0[t0 + 1] : i32
  au.alu s2 on t0 = sub s1, s0
  au.push t0 ite id 1 (s2)
"""


def test_a_program_that_fits_stays_as_it_is() -> None:
    program = parse(FITS)
    assert add_relays(program, CONFIG) is program


def test_a_memory_stream_too_many_goes_to_a_relay_with_its_rows_and_push() -> None:
    body = """
      au.tu t0 = 0 to a1 step 1
      au.mem s0 on t0 = a0[t0] : i32
      au.mem s1 on t0 = a0[t0 + 8] : i32
      au.mem s2 on t0 = a0[t0 + 16] : i32
      au.row r0 on t0 = a2[s0 * 16] len 4 : f32
      au.row r1 on t0 = a2[s2 * 16] len 4 : f32
      au.push t0 ite id 1 (t0, r0, r1)
      au.push t0 end id 2 ()
    """
    assert relayed(body) == [
        "au.tu t0 = 0 to a1 step 1",
        "au.mem s0 on t0 = a0[t0] : i32",
        "au.mem s1 on t0 = a0[t0 + 8] : i32",
        "au.row r0 on t0 = a2[s0 * 16] len 4 : f32",
        "au.tu t1 under t0 = 0 to 1 step 1 {relay}",
        "au.mem s2 on t1 = a0[t0 + 16] : i32",
        "au.row r1 on t1 = a2[s2 * 16] len 4 : f32",
        "au.push t1 ite id 1 (t0, r0, r1)",
        "au.push t0 end id 2 ()",
    ]
    assert len(relayed(body, CONFIG.with_changes(streams_per_unit=3))) == 8


def test_a_second_alu_op_takes_the_value_of_a_relay() -> None:
    assert relayed(
        """
        au.tu t0 = 0 to a1 step 1
        au.mem s0 on t0 = a0[t0] : i32
        au.alu s1 on t0 = mul s0, 3
        au.alu s2 on t0 = sub 7, t0
        au.tu t1 under t0 = s1 to s2 step 1
        au.push t1 ite id 1 (t1)
        """
    ) == [
        "au.tu t0 = 0 to a1 step 1",
        "au.mem s0 on t0 = a0[t0] : i32",
        "au.alu s1 on t0 = mul s0, 3",
        "au.tu t2 under t0 = t0 to t0 + 1 step 1 {relay}",
        "au.alu s2 on t2 = sub 7, t2",
        "au.tu t1 under t2 = s1 to s2 step 1",
        "au.push t1 ite id 1 (t1)",
    ]


def test_a_load_at_what_a_load_of_the_unit_gave_goes_below() -> None:
    assert relayed(
        """
        au.tu t0 = 0 to a1 step 1
        au.mem s0 on t0 = a0[t0] : i32
        au.mem s1 on t0 = a0[s0 * 4 + t0 + 2] : i32
        au.mem s2 on t0 = a0[t0 * 2] : i32
        au.push t0 ite id 1 (s1, s2)
        """
    )[2:] == [
        "au.tu t1 under t0 = t0 to t0 + 1 step 1 {relay}",
        "au.mem s1 on t1 = a0[s0 * 4 + t1 + 2] : i32",
        "au.mem s2 on t1 = a0[t0 * 2] : i32",
        "au.push t1 ite id 1 (s1, s2)",
    ]


def test_what_needs_a_stream_of_a_relay_goes_below_it() -> None:
    lines = relayed(
        """
        au.tu t0 = 0 to a1 step 1
        au.mem s0 on t0 = a0[t0 * 8 + t0] : i32
        au.mem s1 on t0 = a0[s0] : i32
        au.alu s2 on t0 = add s1, s0
        au.push t0 ite id 1 (s1, s2)
        """
    )
    assert lines[1:] == [
        "au.tu t1 under t0 = t0 to t0 + 1 step 1 {relay}",
        "au.mem s0 on t1 = a0[t0 * 8 + t1] : i32",
        "au.tu t2 under t1 = 0 to 1 step 1 {relay}",
        "au.mem s1 on t2 = a0[s0] : i32",
        "au.alu s2 on t2 = add s1, s0",
        "au.push t2 ite id 1 (s1, s2)",
    ]


def test_rows_of_a_number_that_stays_the_same_take_the_value_of_a_relay() -> None:
    lines = relayed(
        """
        au.tu t0 = 0 to a1 step 1
        au.row r0 on t0 = a2[0 * 16] len 4 : f32
        au.row r1 on t0 = a2[a1 * 16] len 4 : f32
        au.push t0 ite id 1 (r0, r1)
        """
    )
    assert lines[1:] == [
        "au.tu t1 under t0 = 0 to 0 + 1 step 1 {relay}",
        "au.row r0 on t1 = a2[t1 * 16] len 4 : f32",
        "au.tu t2 under t1 = a1 to a1 + 1 step 1 {relay}",
        "au.row r1 on t2 = a2[t2 * 16] len 4 : f32",
        "au.push t2 ite id 1 (r0, r1)",
    ]


def test_the_source_of_a_next_value_keeps_its_place_on_the_unit() -> None:
    lines = relayed(
        """
        au.tu t0 = 0 to a1 step 1
        au.mem s0 on t0 = a0[t0 + 8] : i32
        au.mem s1 on t0 = a0[t0 + 16] : i32
        au.mem s2 on t0 = a0[t0] : i32
        au.next s3 on t0 = s2
        au.tu t1 under t0 = s2 to s3 step 1
        au.push t1 ite id 1 (s0, s1)
        """
    )
    assert "au.mem s1 on t2 = a0[t0 + 16] : i32" in lines
    assert "au.next s3 on t0 = s2" in lines


FIVE = """
  au.tu t0 = 0 to a1 step 1
  au.alu s0 on t0 = mul t0, 3
  au.alu s1 on t0 = mul t0, 5
  au.alu s2 on t0 = mul t0, 7
  au.push t0 ite id 1 (s0, s1, s2)
"""


def test_units_that_are_missing_are_named_with_the_stream_and_a_config_that_would_do() -> None:
    assert refused(FIVE, CONFIG.with_changes(traversal_units=2)) == (
        "au: 'au.alu s2 on t0': needs a relay below t0, so 3 units in all, config 'test' has 2 "
        "(limit traversal_units; a config with 3 would do)"
    )
    body = FIVE + "au.tu t1 under t0 = 0 to 3 step 1\n au.alu s3 on t1 = add t1, 1\n"
    body += "au.alu s4 on t1 = add t1, 2\n au.push t1 ite id 2 (s3, s4)"
    assert refused(body) == (
        "au: 'au.alu s4 on t1': needs a relay below t1, so 5 units in all, config 'test' has 4 "
        "(limit traversal_units; no config has 5)"
    )
