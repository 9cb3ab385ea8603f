"""Each form of the access unit's text becomes its record, or an error that names the op."""

from __future__ import annotations

import pytest

from ember_hw.compiler.backend.assemble import assemble_text
from ember_hw.compiler.program import Callback, Operand, Patch
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import AssemblyError
from ember_hw.isa import (
    AluOperation,
    BoundSource,
    Event,
    Microcode,
    Source,
    StreamSource,
    disassemble,
)
from ember_hw.isa import assemble as assemble_records

CONFIG = AcceleratorConfig(name="test", traversal_units=3, data_width_bits=128)
ARGUMENTS = """
    au.arg a0 "x" : memref<?xi32>
    au.arg a1 "n" : index
    au.arg a2 "tab" : memref<?x?xf32>
    au.arg a3 "tab.pitch" : index
    au.arg a4 "bytes" : memref<?x?xi8>
    au.arg a5 "half" : memref<?xf16>
"""
#: Bags t0 with bounds s0 and s1, lookups t1.
UNITS = """
    au.tu t0 = 0 to a1 step 1
    au.mem s0 on t0 = a0[t0] : i32
    au.mem s1 on t0 = a0[t0 + 1] : i32
    au.tu t1 under t0 = s0 to s1 step 1
"""

LOOKUPS = f"{UNITS} au.mem s2 on t1 = a0[t1] : i32"
PARTS = f"{LOOKUPS} au.tu t2 under t1 = 0 to 20 step 8"


def program(body: str) -> str:
    return f'au.program @p target "small" {{ {ARGUMENTS} {body} }}'


def records(body: str) -> dict[str, dict[str, int]]:
    """Return the fields that are not 0."""
    microcode = assemble_text(program(body), CONFIG).microcode
    return {
        path: {name: value for name, value in fields.items() if value}
        for path, fields in microcode.records.items()
    }


def patches(body: str, record: str) -> set[Patch]:
    found = assemble_text(program(body), CONFIG).patches
    return {patch for patch in found if patch.record == record}


def refused(body: str, config: AcceleratorConfig = CONFIG) -> str:
    with pytest.raises(AssemblyError) as raised:
        assemble_text(program(body), config)
    return str(raised.value)


# Bounds


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ("-1 to 5", {"lower_immediate": -1, "upper_immediate": 5}),
        (
            "s0 to s0 + 8",
            {
                "lower_source": Source.SLOT,
                "upper_source": BoundSource.LOWER_PLUS,
                "upper_immediate": 8,
            },
        ),
        ("0 to t0", {"upper_source": BoundSource.SLOT}),
        (
            "t0 to s0",
            {
                "lower_source": Source.SLOT,
                "upper_source": BoundSource.SLOT,
                "upper_export": 1,
            },
        ),
    ],
)
def test_bounds(bounds: str, expected: dict[str, int]) -> None:
    body = "au.tu t0 = 0 to a1 step 1 au.mem s0 on t0 = a0[t0] : i32 "
    found = records(f"{body} au.tu t1 under t0 = {bounds} step 3")["unit1"]
    assert found == {"enable": 1, "step": 3, **expected}


def test_arguments_are_bounds_by_patch() -> None:
    assert patches("au.tu t0 = a1 to a3 step 1", "unit0") == {
        Patch("unit0", "lower_immediate", "n"),
        Patch("unit0", "upper_immediate", "tab.pitch"),
    }


def test_step_fits_its_field() -> None:
    assert refused("au.tu t0 = 0 to a1 step 65536") == (
        "au: 'au.tu t0': field 'step' of record 'unit0' must be from 0 to 65535, not 65536"
    )


# Memory streams


ADDRESSES: list[tuple[str, dict[str, int], set[Patch]]] = [
    ("a0[t1] : i32", {"signed": 1, "size": 2, "induction": 1}, set()),
    ("a0[1 * t1 + -3] : i32", {"signed": 1, "size": 2, "induction": 1, "first": -3}, set()),
    ("a5[t1] : f16", {"size": 1, "induction": 1}, set()),
    ("a0[t1] : i32 {nontemporal}", {"signed": 1, "size": 2, "induction": 1, "hint": 1}, set()),
    ("a0[t1] : i32 {keep}", {"signed": 1, "size": 2, "induction": 1, "hint": 2}, set()),
    ("a0[7] : i32", {"signed": 1, "size": 2, "first": 7}, set()),
    (
        "a0[t1 + a1] : i32",
        {"signed": 1, "size": 2, "induction": 1},
        {Patch("unit1.stream0", "first", "n")},
    ),
    (
        "a0[2 * a1 + 5] : i32",
        {"signed": 1, "size": 2},
        {Patch("unit1.stream0", "first", "n", 2, 5)},
    ),
    (
        "a0[2 * a1 + t1] : i32",
        {"signed": 1, "size": 2, "induction": 1},
        {Patch("unit1.stream0", "first", "n", 2)},
    ),
    ("a0[3 * 5 + t1] : i32", {"signed": 1, "size": 2, "induction": 1, "first": 15}, set()),
    (
        "a0[s0 * 24 + t1] : i32",
        {"signed": 1, "size": 2, "induction": 1, "outer_enable": 1, "outer_pitch": 24},
        set(),
    ),
    (
        "a2[s0 * a3 + t1] : f32",
        {"size": 2, "induction": 1, "outer_enable": 1},
        {Patch("unit1.stream0", "outer_pitch", "tab.pitch")},
    ),
    (
        "a0[t1 + s1] : i32",
        {"signed": 1, "size": 2, "induction": 1, "outer_enable": 1, "outer_export": 1}
        | {"outer_pitch": 1},
        set(),
    ),
    (
        "a0[t0 + 4] : i32",
        {"signed": 1, "size": 2, "first": 4, "outer_enable": 1, "outer_pitch": 1},
        set(),
    ),
]


@pytest.mark.parametrize(("memory", "fields", "patched"), ADDRESSES)
def test_addresses(memory: str, fields: dict[str, int], patched: set[Patch]) -> None:
    body = f"{UNITS} au.mem s2 on t1 = {memory}"
    symbol = {"a0": "x", "a2": "tab", "a5": "half"}[memory[:2]]
    assert records(body)["unit1.stream0"] == {"enable": 1, **fields}
    assert patches(body, "unit1.stream0") == patched | {
        Patch("unit1.stream0", "base", symbol),
        Patch("unit1.stream0", "elements", f"{symbol}.elements"),
    }


_FORM = (
    "address must be the unit's own value, plus at most one value from above times a constant, "
    "plus a constant"
)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("t1 * s0", "s0 must be scaled by a constant, not by t1"),
        ("s9", "s9 must be of a unit above to select an address, not of the same"),
        ("t1 * 3", _FORM),
        ("t1 * a1", _FORM),
        ("t1 + t1", _FORM),
        ("s0 + s1", _FORM),
        ("a1 * a3 + t1", "a1 must be scaled by an integer, not by a3"),
        ("2 * a1 + a3", "constant of an address must hold 1 argument, not also a3"),
        (
            "s0 * 131072 + t1",
            "field 'outer_pitch' of record 'unit1.stream1' must be from 0 to 131071, not 131072",
        ),
        (
            "t1 + 2147483648",
            "field 'first' of record 'unit1.stream1' must be from -2147483648 to 2147483647, "
            "not 2147483648",
        ),
    ],
)
def test_addresses_without_a_record(address: str, problem: str) -> None:
    body = f"{UNITS} au.mem s9 on t1 = a0[t1] : i32 au.mem s2 on t1 = a0[{address}] : i32"
    assert refused(body) == f"au: 'au.mem s2 on t1': {problem}"


def test_input_queue_takes_the_place_of_memory() -> None:
    body = f"{UNITS} au.mem s2 on t1 = a0[t1] : i32 {{nontemporal, queue}}"
    assert refused(body) == (
        "au: 'au.mem s2 on t1': needs the input queue, config 'test' has 0 (limit input_queue)"
    )
    assembly = assemble_text(program(body), CONFIG.with_changes(input_queue=1))
    assert assembly.microcode.get("unit1.stream0", "source") == StreamSource.QUEUE
    assert [patch for patch in assembly.patches if patch.record == "unit1.stream0"] == [
        Patch("unit1.stream0", "elements", "x.elements")
    ]


# Arguments of a request


def test_arguments_of_a_request_are_inherited_values() -> None:
    text = f"""au.program @p target "small" {{
        {ARGUMENTS}
        au.arg a6 "idx.first" : index {{request}}
        au.arg a7 "B" : index {{request}}
        au.arg a8 "never" : index {{request}}
        au.arg a9 "off.first" : index {{request}}
        au.tu t0 = 0 to a7 step 1
        au.mem s0 on t0 = a0[t0 + a9] : i32
        au.next s1 on t0 = s0
        au.tu t1 under t0 = s0 to s1 step 1
        au.mem s2 on t1 = a0[t1 + a6] : i32
        au.push t1 ite id 1 (s2, a6)
    }}"""
    assembly = assemble_text(text, CONFIG)
    found = {a.symbol: assembly.registers.get(a.symbol) for a in assembly.arguments}
    assert (found["B"], found["idx.first"], found["off.first"]) == (0, 1, 2)
    assert found["never"] is None
    assert found["n"] is None
    microcode = assembly.microcode
    assert not [patch for patch in assembly.patches if patch.field in ("first", "upper_immediate")]
    unit0, outer = microcode.records["unit0"], microcode.records["unit0.stream0"]
    assert (unit0["upper_source"], unit0["upper_export"]) == (BoundSource.SLOT, 0)
    assert (outer["outer_export"], outer["outer_pitch"], outer["induction"]) == (2, 1, 1)
    # idx.first, the second scalar, stays in 1; B and off.first make room for the bounds.
    assert [unit0[f"export{i}"] for i in range(4)] == [2, 0, 4, 0]
    assert [microcode.get("unit1", f"export{i}") for i in range(4)] == [2, 0, 0, 0]
    assert microcode.get("unit1.stream0", "outer_export") == 1


# ALU


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("add t1, 3", {"alu_immediate": 3}),
        ("mul 3, t1", {"alu_operation": AluOperation.MUL, "alu_immediate": 3}),
        ("sub t1, -1", {"alu_operation": AluOperation.SUB, "alu_immediate": -1}),
        ("sub t1, t0", {"alu_operation": AluOperation.SUB, "alu_b_source": 1, "alu_b_slot": 3}),
        ("sub t0, t1", {"alu_operation": AluOperation.RSUB, "alu_b_source": 1, "alu_b_slot": 3}),
        ("sub 9, s2", {"alu_operation": AluOperation.RSUB, "alu_a_slot": 1, "alu_immediate": 9}),
        ("shl t1, 4", {"alu_operation": AluOperation.MUL, "alu_immediate": 16}),
        ("shl t1, 31", {"alu_operation": AluOperation.MUL, "alu_immediate": -(2**31)}),
        ("add t1, s2", {"alu_b_source": Source.SLOT, "alu_b_slot": 1}),
    ],
)
def test_alu(operation: str, expected: dict[str, int]) -> None:
    body = "au.tu t0 = 0 to a1 step 1 au.tu t1 under t0 = 0 to 4 step 1"
    body += f" au.mem s2 on t1 = a0[t1] : i32 au.alu s3 on t1 = {operation}"
    found = records(body)["unit1"]
    assert found == {"enable": 1, "step": 1, "upper_immediate": 4, **expected}


def test_alu_takes_an_argument() -> None:
    body = f"{UNITS} au.alu s3 on t1 = add a1, t1"
    assert Patch("unit1", "alu_immediate", "n") in patches(body, "unit1")


@pytest.mark.parametrize("operands", ["add a1, 2", "sub t0, s0", "mul 3, t0", "shl t0, 2"])
def test_alu_needs_a_value_of_its_unit(operands: str) -> None:
    lhs, rhs = operands[4:].split(", ")
    assert refused(f"{UNITS} au.alu s3 on t1 = {operands}") == (
        f"au: 'au.alu s3 on t1': an operand must be t1 or a stream of it, not {lhs} and {rhs}"
    )


@pytest.mark.parametrize("distance", ["s0", "a1", "-1", "32"])
def test_distance_of_a_shift_is_an_integer(distance: str) -> None:
    assert refused(f"{UNITS} au.alu s3 on t1 = shl t1, {distance}") == (
        f"au: 'au.alu s3 on t1': distance of shl must be an integer from 0 to 31, not {distance}"
    )


# Pushes


def test_callbacks_share_scalars_and_keep_their_operands() -> None:
    body = f"""{LOOKUPS}
        au.push t0 beg id 4 ()
        au.push t1 ite id 2 (s2, t0)
        au.push t1 end id 1 (t0, s0)"""
    assembly = assemble_text(program(body), CONFIG)
    assert assembly.callbacks == (
        Callback(1, 1, Event.END, (Operand("scalar", 1, "index"), Operand("scalar", 2, "i32"))),
        Callback(2, 1, Event.ITERATE, (Operand("scalar", 0, "i32"), Operand("scalar", 1, "index"))),
        Callback(4, 0, Event.BEGIN),
    )
    assert assembly.microcode.get("issue", "events") == 1 << 0 | 1 << 4 | 1 << 7


def test_dtype_of_next_and_alu() -> None:
    body = """
        au.tu t0 = 0 to a1 step 1 au.mem s0 on t0 = a0[t0] : i32 au.next s1 on t0 = s0
        au.tu t1 under t0 = 0 to 2 step 1 au.alu s2 on t1 = add t1, 1
        au.push t1 ite id 1 (s1, s2)"""
    (callback,) = assemble_text(program(body), CONFIG).callbacks
    assert [operand.dtype for operand in callback.operands] == ["i32", "index"]


@pytest.mark.parametrize("operand", ["3", "a1"])
def test_constants_are_not_pushed(operand: str) -> None:
    assert refused(f"{LOOKUPS} au.push t1 ite id 1 ({operand})") == (
        f"au: 'au.push t1 ite': operand must be a value or row, not {operand}"
    )


def test_limit_of_scalars() -> None:
    body = f"{LOOKUPS} au.push t1 ite id 1 (s0, s1, s2) au.push t0 ite id 2 (s0, t0)"
    assert refused(body, CONFIG.with_changes(bundle_scalars=3)) == (
        "au: 'au.push t0 ite': needs scalar 3 for t0, config 'test' has 3 (limit bundle_scalars)"
    )


def test_ids_are_distinct() -> None:
    assert refused(f"{LOOKUPS} au.push t1 ite id 1 () au.push t1 end id 1 ()") == (
        "au: 'au.push': id must be given once, not 1 again"
    )


# Text


def test_words_and_text_are_a_fixed_point() -> None:
    body = f"{PARTS} au.row r0 on t2 = a2[s2 * a3 + t2] len 8 clip t2 to 20 : f32"
    microcode = assemble_text(program(f"{body} au.push t2 ite id 1 (t0, r0)"), CONFIG).microcode
    assert Microcode.decode(microcode.encode(), CONFIG) == microcode
    assert assemble_records(disassemble(microcode), CONFIG) == microcode


def test_target_gives_the_config() -> None:
    assembly = assemble_text(program("au.tu t0 = 0 to a1 step 1"))
    assert assembly.config == AcceleratorConfig.preset("small")
    assert [argument.symbol for argument in assembly.arguments] == (
        ["x", "n", "tab", "tab.pitch", "bytes", "half"]
    )
    assert assembly.arguments[2].type == "memref<?x?xf32>"


def test_target_is_a_preset() -> None:
    with pytest.raises(AssemblyError) as raised:
        assemble_text('au.program @p target "huge" { au.tu t0 = 0 to 1 step 1 }')
    assert str(raised.value) == (
        "target of au.program: preset must be one of default, small, tiny, tables, large, "
        "not 'huge'"
    )


@pytest.mark.parametrize("count", [0, 2])
def test_text_holds_one_program(count: int) -> None:
    names = [f"p{number}" for number in range(count)]
    text = " ".join(program("au.tu t0 = 0 to a1 step 1").replace("@p", f"@{n}") for n in names)
    with pytest.raises(AssemblyError) as raised:
        assemble_text(f"builtin.module {{ {text} }}", CONFIG)
    assert str(raised.value) == f"text must hold 1 au.program, not {count}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("au.program {", "expect symbol name"),
        ('au.program @p target "tiny" {}', "number of root units of an au.program must be 1"),
    ],
)
def test_text_is_legal(text: str, reason: str) -> None:
    with pytest.raises(AssemblyError) as raised:
        assemble_text(text, CONFIG)
    assert str(raised.value).startswith("text must be a legal au.program: ")
    assert reason in str(raised.value)


def test_program_has_the_parts_of_the_assembly() -> None:
    assembly = assemble_text(program("au.tu t0 = 0 to a1 step 1"), CONFIG)
    made = assembly.program(opt_level=1, ir={"au": "text"})
    assert (made.name, made.opt_level, made.config) == ("p", 1, CONFIG)
    assert (made.nests[0].patches, made.arguments, made.ir) == (
        assembly.patches,
        assembly.arguments,
        {"au": "text"},
    )
