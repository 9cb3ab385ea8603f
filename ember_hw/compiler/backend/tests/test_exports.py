"""Values take their places in text order and are handed down as far as they are read."""

from __future__ import annotations

import numpy as np
import pytest

from ember_hw.compiler.backend.assemble import assemble_text
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import AssemblyError

CONFIG = AcceleratorConfig(
    name="test", traversal_units=3, streams_per_unit=2, exports=3, bundle_scalars=3
)
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
    # Own values: induction 1, streams 2 and 3, ALU 4; 0 keeps what is inherited.
    unit0, unit1, unit2 = (microcode.records[f"unit{k}"] for k in range(3))
    # Scalars take the first numbers in the order of their push: t2, s2, s1. Until t2 and s2 exist
    # their numbers serve t0, which t1 reads, and s0, its lower bound.
    assert [unit0[f"export{i}"] for i in range(3)] == [2, 1, 3]
    assert (unit1["lower_export"], unit1["upper_export"]) == (0, 2)
    # Of the ALU's slots, induction is 0 and the inherited values begin at 3.
    assert (unit1["alu_a_slot"], unit1["alu_b_slot"]) == (0, 4)
    assert [unit1[f"export{i}"] for i in range(3)] == [0, 4, 0]
    assert [unit2[f"export{i}"] for i in range(3)] == [1, 0, 0]


@pytest.mark.parametrize("seed", range(20))
def test_as_many_exports_as_values_alive_are_enough(seed: int) -> None:
    rng = np.random.default_rng(seed)
    levels, values = range(4), range(2)
    # The level whose exports are the last to hold each value; a stream of the next one reads it.
    last = {(level, n): int(rng.integers(level, 4)) for level in levels for n in values}
    config = CONFIG.with_changes(traversal_units=4, streams_per_unit=8, exports=16)
    body = ""
    for level in levels:
        under = f" under t{level - 1}" if level else ""
        body += f"au.tu t{level}{under} = 0 to 2 step 1\n"
        for _, n in [value for value in last if value[0] == level]:
            body += f"au.mem s{2 * level + n} on t{level} = a0[t{level}] : i32\n"
        for number, (owner, n) in enumerate(v for v in last if last[v] == level - 1):
            name = 100 + 10 * level + number
            body += f"au.mem s{name} on t{level} = a0[t{level} + s{2 * owner + n}] : i32\n"
    pushed = ", ".join(f"s{2 * owner + n}" for owner, n in last if last[owner, n] == 3)
    body += f"au.push t3 ite id 1 ({pushed})"
    alive = max(sum(owner <= k <= end for (owner, _), end in last.items()) for k in levels)
    scalars = max(1, pushed.count("s"))
    assemble_text(program(body), config.with_changes(exports=alive, bundle_scalars=scalars))
    if alive > max(2, scalars):
        fewer = config.with_changes(exports=alive - 1, bundle_scalars=scalars)
        assert f"needs export {alive - 1} for " in refused(body, fewer)


def test_source_of_the_next_value_is_stream_0() -> None:
    microcode = assemble_text(
        program(
            """
            au.tu t0 = 0 to a1 step 1
            au.mem s0 on t0 = a0[t0] : i32
            au.mem s1 on t0 = a0[t0 + 2] : i32
            au.next s2 on t0 = s1
            au.push t0 ite id 1 (s0, s1, s2)
            """
        ),
        CONFIG,
    ).microcode
    assert microcode.get("unit0", "pair") == 1
    firsts = [microcode.get(f"unit0.stream{s}", "first") for s in range(2)]
    assert firsts == [2, 0]
    exports = [microcode.get("unit0", f"export{i}") for i in range(3)]
    assert exports == [3, 2, 4]


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
    body = f"{UNITS} au.tu t1 under t0 = s0 to s1 step 1 au.push t1 ite id 1 (t0)"
    assemble_text(program(body), CONFIG)
    config = CONFIG.with_changes(exports=2, bundle_scalars=2)
    assert refused(body, config) == (
        "au: 'au.tu t0': needs export 2 for s1, config 'test' has 2 (limit exports)"
    )


def test_limit_of_arguments_of_a_request() -> None:
    def text(count: int) -> str:
        arguments = [f'au.arg a{n} "x{n}" : index {{request}}' for n in range(count)]
        alus = [f"au.alu s{n} on t{n} = add t{n}, a{n}" for n in range(count)]
        units = [f"au.tu t{n}{f' under t{n - 1}' if n else ''} = 0 to 2 step 1" for n in range(4)]
        body = "\n".join([*arguments, *units, *alus])
        return f'au.program @p target "test" {{ {body} }}'

    config = CONFIG.with_changes(traversal_units=4)
    assembly = assemble_text(text(3), config)
    registers = [assembly.registers.get(a.symbol) for a in assembly.arguments]
    assert registers == [0, 1, 2]
    with pytest.raises(AssemblyError) as raised:
        assemble_text(text(4), config)
    assert str(raised.value) == (
        "au: 'au.arg a3': needs argument 3 of a request, config 'test' has 3 (limit exports)"
    )
