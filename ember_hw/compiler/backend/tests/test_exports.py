"""Values take their slots in text order and are handed down as far as they are read."""

from __future__ import annotations

import pytest

from ember_hw.compiler.backend.assemble import assemble_text
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import AssemblyError

CONFIG = AcceleratorConfig(name="test", traversal_units=3, streams_per_unit=2, exports=3)
ARGUMENTS = 'au.arg a0 "x" : memref<?xi32>\nau.arg a1 "n" : index\n'


def program(body: str) -> str:
    return f'au.program @p target "test" {{ {ARGUMENTS} {body} }}'


def refused(body: str, config: AcceleratorConfig = CONFIG) -> str:
    with pytest.raises(AssemblyError) as raised:
        assemble_text(program(body), config)
    return str(raised.value)


def test_a_value_passes_through_the_units_between() -> None:
    microcode = assemble_text(
        program(
            """
            au.tu t0 = 0 to a1 step 1
            au.mem s0 on t0 = a0[t0] : i32
            au.mem s1 on t0 = a0[t0 + 1] : i32
            au.tu t1 under t0 = s0 to s1 step 1
            au.alu s2 on t1 = add t1, t0
            au.tu t2 under t1 = 0 to 4 step 1
            au.push t2 ite id 1 (t2, s2, s1)
            """
        ),
        CONFIG,
    ).microcode
    # Slots: induction 0, streams 1 and 2, ALU 3, inherited 4 to 6.
    unit0, unit1, unit2 = (microcode.records[f"unit{k}"] for k in range(3))
    # t0 is read by the ALU of t1, s0 and s1 are bounds.
    assert [unit0[f"export{i}"] for i in range(3)] == [0, 1, 2]
    assert (unit1["lower_slot"], unit1["upper_slot"]) == (5, 6)
    assert (unit1["alu_a_slot"], unit1["alu_b_slot"]) == (0, 4)
    # s1 is pushed below, s2 too; t0 and s0 end here.
    assert [unit1[f"export{i}"] for i in range(2)] == [6, 3]
    # At the leaf in order of definition: s1, s2, t2.
    assert [unit2[f"export{i}"] for i in range(3)] == [4, 5, 0]
    issue = microcode.records["issue"]
    assert [issue[f"scalar{i}_export"] for i in range(3)] == [2, 1, 0]


def test_source_of_the_next_value_is_stream_0() -> None:
    microcode = assemble_text(
        program(
            """
            au.tu t0 = 0 to a1 step 1
            au.mem s0 on t0 = a0[t0] : i32
            au.mem s1 on t0 = a0[t0 * 2] : i32
            au.next s2 on t0 = s1
            au.push t0 ite id 1 (s0, s1, s2)
            """
        ),
        CONFIG,
    ).microcode
    assert microcode.get("unit0", "pair") == 1
    shifts = [microcode.get(f"unit0.stream{s}", "shift") for s in range(2)]
    assert shifts == [3, 2]
    exports = [microcode.get("unit0", f"export{i}") for i in range(3)]
    assert exports == [2, 1, 3]


UNITS = """
    au.tu t0 = 0 to a1 step 1
    au.mem s0 on t0 = a0[t0] : i32
    au.mem s1 on t0 = a0[t0 + 1] : i32
"""


@pytest.mark.parametrize("units", [1, 2, 3, 4])
def test_limit_of_units(units: int) -> None:
    config = CONFIG.with_changes(traversal_units=units)
    body = "au.tu t0 = 0 to 2 step 1 "
    body += " ".join(f"au.tu t{k} under t{k - 1} = 0 to 2 step 1" for k in range(1, units))
    assert assemble_text(program(body), config).microcode.get(f"unit{units - 1}", "enable") == 1
    assert refused(f"{body} au.tu t9 under t{units - 1} = 0 to 2 step 1", config) == (
        f"au: 'au.tu t9': needs unit {units}, config 'test' has {units} (limit traversal_units)"
    )


def test_limit_of_streams() -> None:
    assemble_text(program(UNITS), CONFIG)
    assert refused(f"{UNITS} au.mem s4 on t0 = a0[t0 + 2] : i32") == (
        "au: 'au.mem s4 on t0': needs stream 2 of unit t0, config 'test' has 2 "
        "(limit streams_per_unit)"
    )


def test_limit_of_alus() -> None:
    body = f"{UNITS} au.next s2 on t0 = s1"
    assemble_text(program(body), CONFIG)
    assert refused(f"{body} au.alu s3 on t0 = add t0, 1") == (
        "au: 'au.alu s3 on t0': needs the ALU of unit t0, which 'au.next s2 on t0' holds; "
        "a unit has 1"
    )


def test_limit_of_exports() -> None:
    body = f"{UNITS} au.alu s2 on t0 = add t0, 1 au.push t0 ite id 1 (s0, s1, s2"
    assemble_text(program(f"{body})"), CONFIG.with_changes(bundle_scalars=4))
    config = CONFIG.with_changes(bundle_scalars=4)
    assert refused(f"{body}, t0)", config) == (
        "au: 'au.tu t0': needs export 3 for s2, config 'test' has 3 (limit exports)"
    )
