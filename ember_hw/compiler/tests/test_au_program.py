# pyright: basic
"""`au` programs built op by op, and read as plain data."""

import pytest
from xdsl.dialects.builtin import (
    IndexType,
    MemRefType,
    bf16,
    f16,
    f32,
    f64,
    f128,
    i8,
    i32,
    i64,
)

from ember_hw.compiler.dialects import au
from ember_hw.compiler.dialects.au_program import (
    AluStream,
    Argument,
    MemoryStream,
    NextStream,
    Push,
    Row,
    Unit,
    element_bytes,
    read_program,
)
from ember_hw.compiler.dialects.au_slots import Slot, SlotAttr, SlotKind
from ember_hw.compiler.ir_text import parse_module

INDEX = IndexType()
INDICES = MemRefType(INDEX, [-(2**63)])
TABLE = MemRefType(f32, [-(2**63), -(2**63)])


def unit(number):
    return Slot(SlotKind.UNIT, number)


def stream(number):
    return Slot(SlotKind.STREAM, number)


def argument(number):
    return Slot(SlotKind.ARGUMENT, number)


def integer(value):
    return Slot(SlotKind.INTEGER, value)


def row(number):
    return Slot(SlotKind.ROW, number)


def program():
    return au.ProgramOp(
        "eb",
        "small",
        [
            au.ArgOp(0, "off", INDICES),
            au.ArgOp(1, "tab", TABLE),
            au.ArgOp(2, "D", INDEX),
            au.TuOp(0, integer(0), argument(2), 1),
            au.MemOp(0, 0, 0, unit(0), INDEX, scale=integer(2), offset=integer(1)),
            au.NextOp(1, 0, 0),
            au.AluOp(2, 0, au.AluOperation.SHL, stream(0), integer(3)),
            au.TuOp(1, stream(0), stream(0), 8, under=0, upper_offset=4),
            au.RowOp(
                0,
                1,
                1,
                unit(1),
                argument(2),
                integer(8),
                f32,
                offset=unit(0),
                clip=(unit(1), argument(2)),
                nontemporal=True,
            ),
            au.PushOp(1, au.Event.ITERATE, 1, [stream(2), row(0)]),
            au.PushOp(0, au.Event.END, 2),
        ],
    )


def test_read_program_gives_every_record_in_order():
    op = program()
    op.verify()
    data = read_program(op)
    assert (data.name, data.target) == ("eb", "small")
    assert data.arguments == (
        Argument(0, "off", INDICES),
        Argument(1, "tab", TABLE),
        Argument(2, "D", INDEX),
    )
    assert data.units == (
        Unit(0, None, integer(0), argument(2), None, 1),
        Unit(1, 0, stream(0), stream(0), 4, 8),
    )
    assert data.streams == (
        MemoryStream(0, 0, 0, unit(0), integer(2), integer(1), INDEX, False),
        NextStream(1, 0, 0),
        AluStream(2, 0, au.AluOperation.SHL, stream(0), integer(3)),
    )
    clip = (unit(1), argument(2))
    assert data.rows == (Row(0, 1, 1, unit(1), argument(2), unit(0), integer(8), clip, f32, True),)
    assert data.pushes == (
        Push(1, au.Event.ITERATE, 1, (stream(2), row(0))),
        Push(0, au.Event.END, 2, ()),
    )


def test_a_program_survives_its_text():
    module = parse_module(str(program()))
    (again,) = module.body.block.ops
    assert isinstance(again, au.ProgramOp)
    assert read_program(again) == read_program(program())


def test_arguments_are_found_by_symbol():
    data = read_program(program())
    assert data.argument("D").number == 2
    assert data.argument("tab").is_memory
    assert not data.argument("D").is_memory
    with pytest.raises(KeyError) as error:
        data.argument("B")
    assert error.value.args == ("symbol must be an argument of eb (off, tab, D), not 'B'",)


@pytest.mark.parametrize(
    ("element_type", "size"),
    [(i8, 1), (f16, 2), (bf16, 2), (i32, 4), (f32, 4), (f64, 8), (i64, 8), (INDEX, 8)],
)
def test_element_sizes(element_type, size):
    assert element_bytes(element_type) == size


def test_element_bytes_knows_the_types_of_memory_only():
    with pytest.raises(KeyError, match="'f128'"):
        element_bytes(f128)


@pytest.mark.parametrize("name", ["s", "s01", "x1", "t-1", "1"])
def test_other_names_are_no_slots(name):
    assert Slot.from_name(name) is None


def test_slot_names_are_their_text():
    for slot in (unit(3), stream(12), row(0), argument(7)):
        assert Slot.from_name(str(slot)) == slot
    assert str(SlotAttr.integer(-5)) == "#au.slot<-5>"


RELAYED = """au.program @p target "small" {
  au.arg a0 "x" : memref<?xindex>
  au.tu t0 = 0 to 4 step 1
  au.mem s0 on t0 = a0[t0 * 8 + t0 + 3] : index {keep}
  au.tu t1 under t0 = s0 to s0 + 1 step 1 {relay}
  au.mem s1 on t1 = a0[t0 * 2 + t1 + -1] : index
}"""


def test_relays_and_constants_behind_an_offset_are_read_and_printed() -> None:
    module = parse_module(RELAYED)
    assert [line.strip() for line in str(module).splitlines()[1:-1]] == [
        line.strip() for line in RELAYED.splitlines()
    ]
    (op,) = module.ops
    assert isinstance(op, au.ProgramOp)
    program = read_program(op)
    assert [unit.is_relay for unit in program.units] == [False, True]
    assert [s.constant for s in program.streams if isinstance(s, MemoryStream)] == [3, -1]


VIEWED = """
func.func @f(%m: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  slc.for %i = %c0 to %n step %c1 : index -> !slc.stream<index> {
    %t = slc.view %m at %i rows %n len %n pitch %n : memref<?xf32>[!slc.stream<index>, index, \
index, index] to memref<?x?xf32, strided<[?, 1], offset: ?>>
    %v = slc.mem_stream %t[%i, %i] {keep = true} : memref<?x?xf32, strided<[?, 1], offset: ?>>\
[!slc.stream<index>, !slc.stream<index>] into !slc.stream<f32>
    slc.yield
  }
  func.return
}""".replace("\\\n", "")


def test_views_and_hints_are_read_and_printed() -> None:
    text = str(parse_module(VIEWED))
    assert [line.strip() for line in text.splitlines()[1:-1]] == [
        line.strip() for line in VIEWED.strip().splitlines()
    ]
    assert str(parse_module(text)) == text
