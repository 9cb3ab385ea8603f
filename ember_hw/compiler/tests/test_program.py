"""Programs check their parts and bind to an environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from ember_hw.compiler.program import Argument, Callback, Nest, Operand, Patch, Program
from ember_hw.config import PRESETS
from ember_hw.errors import ProgramError
from ember_hw.isa import Event, Microcode

CONFIG = PRESETS["tiny"]
UNIT = {"unit0": {"enable": 1, "step": 1}}


def nest(**changes: Any) -> Nest:
    fields: dict[str, Any] = {"name": "p", "microcode": Microcode(CONFIG, UNIT)}
    return Nest(**(fields | changes))


def program(**changes: Any) -> Program:
    values: dict[str, Any] = {"name": "p", "config": CONFIG, "opt_level": 2, "nests": (nest(),)}
    return Program(**(values | changes))


def refused(make: Callable[..., Any] = nest, **changes: Any) -> str:
    with pytest.raises(ValueError, match=r"must") as raised:
        make(**changes)
    return str(raised.value)


def test_bind_fills_in_scaled_symbols() -> None:
    patches = (
        Patch("unit0", "upper_immediate", "B"),
        Patch("row0", "pitch", "tab.pitch", scale=4),
        Patch("row0", "base", "tab", addend=64),
    )
    given = nest(patches=patches)
    bound = given.bind({"B": 7, "tab.pitch": 16, "tab": 4096, "unused": 1})
    assert bound.get("unit0", "upper_immediate") == 7
    assert bound.get("row0", "pitch") == 64
    assert bound.get("row0", "base") == 4160
    assert given.microcode.get("row0", "pitch") == 0


@pytest.mark.parametrize(("environment", "found"), [({}, "nothing"), ({"D": 1, "A": 1}, "A, D")])
def test_missing_symbol(environment: dict[str, int], found: str) -> None:
    patches = (Patch("unit0", "upper_immediate", "B"),)
    with pytest.raises(ProgramError) as raised:
        nest(patches=patches).bind(environment)
    assert str(raised.value) == (f"environment of nest 'p' must hold symbol 'B', not only {found}")


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        (Patch("row0", "length", "D"), "D"),
        (Patch("row0", "length", "D", 4), "4 * D"),
        (Patch("row0", "length", "D", 4, 8), "4 * D + 8"),
        (Patch("row0", "length", "D", 1, 8), "D + 8"),
    ],
)
def test_value_out_of_range_names_symbol_and_limit(patch: Patch, text: str) -> None:
    with pytest.raises(ProgramError) as raised:
        nest(patches=(patch,)).bind({"D": 70000})
    assert str(raised.value) == (
        f"{text} must be from 0 to 65535 (field 'length' of record 'row0', 16 bits on config "
        f"'tiny'), not {70000 * patch.scale + patch.addend}: symbol 'D' is 70000"
    )


def test_bound_microcode_is_checked() -> None:
    given = nest(patches=(Patch("unit0.stream0", "base", "off"),)).microcode
    patched = nest(
        microcode=given.with_field("unit0.stream0", "enable", 1),
        patches=(Patch("unit0.stream0", "base", "off"),),
    )
    with pytest.raises(ProgramError) as raised:
        patched.bind({"off": 65})
    assert str(raised.value) == "base of unit0.stream0 must be a multiple of 64 bytes, not 0x41"


REQUESTED = {"idx.first": 2, "B": 0}


def test_registers_hold_what_a_request_carries() -> None:
    environment = {"B": 7, "idx.first": -3, "idx": 4096}
    assert nest(registers=REQUESTED).request_arguments(environment) == (7, 0, -3, 0)
    assert nest().request_arguments({}) == (0, 0, 0, 0)


def test_symbol_of_a_request_is_in_the_environment() -> None:
    with pytest.raises(ProgramError) as raised:
        nest(registers=REQUESTED).request_arguments({"B": 7})
    assert str(raised.value) == ("environment of nest 'p' must hold symbol 'idx.first', not only B")


@pytest.mark.parametrize("value", [1 << 31, -(1 << 31) - 1])
def test_argument_of_a_request_is_32_bits(value: int) -> None:
    given = nest(registers=REQUESTED)
    with pytest.raises(ProgramError) as raised:
        given.request_arguments({"B": value, "idx.first": 0})
    assert str(raised.value) == (
        f"argument 'B' of a request must be from -2147483648 to 2147483647, not {value}"
    )


@pytest.mark.parametrize(
    ("registers", "expected"),
    [
        ((1, 1), "registers of arguments must be distinct, not [1, 1]"),
        ((0, 4), "register of an argument must be from 0 to 3, not 4"),
        ((-1, 0), "register of an argument must be from 0 to 3, not -1"),
    ],
)
def test_registers_are_those_of_the_config(registers: tuple[int, int], expected: str) -> None:
    assert refused(registers={"x": registers[0], "y": registers[1]}) == expected


def test_opt_level_is_0_to_3() -> None:
    assert refused(program, opt_level=4) == "opt_level must be 0, 1, 2 or 3, not 4"


def test_microcode_is_for_the_config() -> None:
    assert (
        refused(program, config=PRESETS["small"])
        == "microcode must be for config 'small', not 'tiny'"
    )


@pytest.mark.parametrize(("record", "field"), [("unit0", "size"), ("unit7", "step")])
def test_patch_names_a_field(record: str, field: str) -> None:
    assert refused(patches=(Patch(record, field, "B"),)) == (
        f"patch must name a field of the microcode, not {field!r} of record {record!r}"
    )


@pytest.mark.parametrize(
    ("callback", "expected"),
    [
        (Callback(0, 0, Event.END), "callback id must be 1 or more, not 0"),
        (Callback(1, 3, Event.END), "level of callback 1 must be from 0 to 2, not 3"),
        (
            Callback(1, 0, Event.END, (Operand(cast(Any, "key"), 0, "f32"),)),
            "operand kind of callback 1 must be 'scalar' or 'row', not 'key'",
        ),
        (
            Callback(1, 0, Event.END, (Operand("row", 2, "f32"),)),
            "row of callback 1 must be from 0 to 1, not 2",
        ),
        (
            Callback(1, 0, Event.END, (Operand("scalar", -1, "f32"),)),
            "scalar of callback 1 must be from 0 to 3, not -1",
        ),
    ],
)
def test_callback_is_checked(callback: Callback, expected: str) -> None:
    assert refused(callbacks=(callback,)) == expected


def test_callback_ids_are_distinct() -> None:
    callbacks = (Callback(1, 0, Event.END), Callback(1, 1, Event.END))
    assert refused(callbacks=callbacks) == "callback ids must be distinct, not [1, 1]"


def test_a_program_has_a_nest() -> None:
    assert refused(program, nests=()) == "nests of program 'p' must be at least 1, not 0"


def test_symbols_are_distinct() -> None:
    arguments = (Argument("B", "index"), Argument("B", "memref<?xf32>"))
    assert refused(program, arguments=arguments) == (
        "symbols of arguments must be distinct, not ['B', 'B']"
    )


@pytest.mark.parametrize(
    ("type_", "extents", "dtype"),
    [
        ("memref<?xindex>", (None,), "int64"),
        ("memref<4x?xi8>", (4, None), "int8"),
        ("memref<?x?x3xf32, strided<[?, ?, 1], offset: ?>>", (None, None, 3), "float32"),
        ("memref<f64>", (), "float64"),
    ],
)
def test_a_memref_says_extents_and_dtype(
    type_: str, extents: tuple[int | None, ...], dtype: str
) -> None:
    argument = Argument("x", type_)
    assert argument.is_memory
    assert argument.extents == extents
    assert argument.dtype == dtype
    assert not Argument("B", "index").is_memory


def test_elements_without_a_dtype_are_refused() -> None:
    with pytest.raises(ProgramError) as raised:
        _ = Argument("x", "memref<?xi2>").dtype
    assert str(raised.value) == (
        "elements of argument 'x' must be f32, f64, f16, bf16, index, i64, i32, i16, i8, i1, "
        "not 'i2'"
    )


def test_symbols_that_the_access_unit_reads_are_those_of_its_bases() -> None:
    patches = (
        Patch("row0", "base", "tab"),
        Patch("row0", "rows", "tab.rows"),
        Patch("unit0.stream0", "base", "off"),
        Patch("row1", "base", "tab"),
    )
    assert nest(patches=patches).symbols_read == ("tab", "off")
