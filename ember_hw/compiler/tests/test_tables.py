# pyright: basic
"""Tables of different shapes in one program: every level agrees, each table's rows are checked."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ember_hw.compiler import compile_function
from ember_hw.compiler.backend.exports import LimitError
from ember_hw.compiler.backend.lower import Lowered, lower
from ember_hw.compiler.frontend.emit_tables import emit_tables
from ember_hw.compiler.frontend.row_types import RowTypes
from ember_hw.compiler.interpreters import Schedule, interpret, run_au
from ember_hw.compiler.interpreters.microcode_function import run_microcode
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import OPT_LEVELS, run_pipeline
from ember_hw.compiler.tests.table_kernel import EB_TABLES, TABLE_BAGS, TABLE_ROWS
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import CheckError, CompileError, DeviceError
from ember_hw.host.device import open_device
from ember_hw.host.reference import bit_equal
from ember_hw.registers import FaultCode

#: A stream for each descriptor on the unit of the tables, exports for a row and a push.
CONFIG = AcceleratorConfig(name="tables", data_width_bits=128, streams_per_unit=5, exports=8)
#: The same with fewer streams and a unit more, which becomes a relay.
RELAYED = CONFIG.with_changes(traversal_units=4, streams_per_unit=3)
COLUMNS = (1, 7, 16)


def expected(arguments: dict[str, Any]) -> NDArray[np.float32]:
    """Return the bags of all tables, by loops that know nothing of views."""
    bags: list[NDArray[np.float32]] = []
    for table in range(len(TABLE_ROWS)):
        dim, pitch = (int(arguments[name][table]) // 4 for name in ("len", "dist"))
        base = 16 * int(arguments["place"][table])
        for bag in range(table * TABLE_BAGS, (table + 1) * TABLE_BAGS):
            total = np.zeros(dim, np.float32)
            for place in range(arguments["off"][bag], arguments["off"][bag + 1]):
                first = base + int(arguments["idx"][place]) * pitch
                total += arguments["flat"][first : first + dim]
            bags.append(total)
    return np.concatenate(bags)


@pytest.mark.parametrize("hardware", [False, True])
@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_every_pass_keeps_the_bags_of_every_table(opt_level: int, hardware: bool) -> None:
    module = parse_module(EB_TABLES.text)

    def observe(name: str, module: Any) -> None:
        for columns in COLUMNS:
            arguments = EB_TABLES.arguments(columns, 0)
            interpret(module, "kernel", list(arguments.values()), schedule=Schedule.LOCKSTEP)
            assert bit_equal(arguments["out"], expected(arguments)), name

    observe("scf", module)
    run_pipeline(module, opt_level, 4, hardware=hardware, observe=observe)


def test_traffic_is_a_length_an_index_and_the_row() -> None:
    counts: list[tuple[int, int]] = []
    for opt_level in OPT_LEVELS:
        module = parse_module(EB_TABLES.text)
        run_pipeline(module, opt_level, 4)
        arguments = EB_TABLES.arguments(7, 0)
        found = interpret(module, "kernel", list(arguments.values())).counts
        counts.append((found.tokens, found.data_entries))
    dims, lookups = np.array([7, 15, 1]), np.array([3, 3, 4])
    elements, vectors, rows = (lookups @ dims, lookups @ -(-dims // 4), lookups.sum())
    assert counts == [
        (elements, 3 * elements),
        (vectors, 4 * vectors),
        (rows, 2 * rows + vectors),
        (rows, 2 * rows + vectors),
    ]


@pytest.mark.parametrize("config", [CONFIG, RELAYED], ids=["streams", "relay"])
@pytest.mark.parametrize("opt_level", [2, 3])
def test_microcode_agrees(opt_level: int, config: AcceleratorConfig) -> None:
    module = parse_module(EB_TABLES.text)
    lowered = lower(module, opt_level, config)
    (program,) = lowered.programs
    assert re.search(r"\[s\d+ \* s\d+\] at s\d+ rows s\d+ len s\d+ : f32 \{bytes\}", str(program))
    for columns in COLUMNS:
        arguments = [EB_TABLES.arguments(columns, 1) for _ in range(2)]
        au, microcode = (list(values.values()) for values in arguments)
        counts = [
            run_au(lowered.programs, module, "kernel", au, arguments[0]).counts,
            run_microcode(lowered.assemblies, module, "kernel", microcode, arguments[1]).counts,
        ]
        assert counts[0] == counts[1]
        for values in arguments:
            assert bit_equal(values["out"], expected(values))


def test_a_program_of_tables_runs_on_a_device() -> None:
    program = compile_function(EB_TABLES.text, config=CONFIG)
    arguments = EB_TABLES.arguments(7, 2)
    inputs = {name: arguments[name] for name in program.model["input_names"]}  # type: ignore[index]
    out = open_device("interpreter", config=CONFIG).run(program, inputs)
    assert bit_equal(np.asarray(out), expected(arguments))


@pytest.mark.parametrize("table", range(len(TABLE_ROWS)))
def test_an_index_beyond_a_tables_own_rows_is_a_fault(table: int) -> None:
    module = parse_module(EB_TABLES.text)
    lowered: Lowered = lower(module, 3, CONFIG)
    arguments = EB_TABLES.arguments(7, 0)
    lookup = int(arguments["off"][table * TABLE_BAGS])
    arguments["idx"][lookup] = TABLE_ROWS[table]
    with pytest.raises(DeviceError) as raised:
        run_microcode(lowered.assemblies, module, "kernel", list(arguments.values()), arguments)
    assert raised.value.code == FaultCode.INDEX_OUT_OF_RANGE
    with pytest.raises(IndexError):
        interpret(parse_module(EB_TABLES.text), "kernel", list(arguments.values()))


@pytest.mark.parametrize(("opt_level", "op"), [(0, "slc.mem_stream"), (1, "slcvec.mem_stream")])
def test_tables_are_read_by_whole_rows_in_hardware(opt_level: int, op: str) -> None:
    with pytest.raises(CompileError) as raised:
        lower(parse_module(EB_TABLES.text), opt_level, CONFIG)
    assert str(raised.value) == (
        "table whose shape is loaded must be read by whole rows (opt_level 2 or 3), where its "
        f"number of rows is checked, not by elements (op {op!r} in function 'kernel')"
    )


def test_a_table_begins_at_a_multiple_of_64_bytes() -> None:
    text = EB_TABLES.text.replace("arith.muli %at, %c16", "arith.muli %at, %c4")
    with pytest.raises(CompileError) as raised:
        lower(parse_module(text), 3, CONFIG)
    assert str(raised.value) == (
        "place of a table must be a product with a multiple of 16, the elements of 64 bytes, not "
        "another value (op 'slc.view' in function 'kernel')"
    )


def quantized_tables(rows: str) -> str:
    return str(emit_tables("sum", "int64", weighted=False, types=RowTypes(rows)))


@pytest.mark.parametrize(
    ("rows", "old", "new", "message"),
    [
        (
            "q8f32",
            "arith.constant 8 : index",
            "arith.constant 4 : index",
            "length of a quantised row of a table must be its bytes less the 8 of scale and bias, "
            "not another value",
        ),
        (
            "q4f16",
            "arith.constant 2 : index",
            "arith.constant 3 : index",
            "count of codes must be a product of bytes and the 2 codes in one, not another value",
        ),
        (
            "q4f16",
            "arith.constant 128 : index",
            "arith.constant 64 : index",
            "place of a table must be a product with a multiple of 128, the elements of 64 bytes, "
            "not another value",
        ),
    ],
)
def test_bytes_of_quantised_rows_are_told_from_their_elements(
    rows: str, old: str, new: str, message: str
) -> None:
    text = quantized_tables(rows)
    assert lower(parse_module(text), 3, CONFIG).programs
    assert old in text
    with pytest.raises(CompileError) as raised:
        lower(parse_module(text.replace(old, new)), 3, CONFIG)
    assert str(raised.value).startswith(f"{message} (op 'slc.view' in function")


def test_a_length_in_elements_takes_an_alu() -> None:
    text = re.sub(r" *%D = arith.divsi.*\n", "", EB_TABLES.text).replace("%bytes =", "%D =")
    module = parse_module(text)
    lowered = lower(module, 3, CONFIG.with_changes(traversal_units=4, exports=9))
    assert re.search(r"au\.alu s\d+ on t\d = mul [st]\d+, 4", str(lowered.programs[0]))
    arguments = EB_TABLES.arguments(7, 0)
    right = expected(arguments)
    arguments["len"] //= 4
    run_microcode(lowered.assemblies, module, "kernel", list(arguments.values()), arguments)
    assert bit_equal(arguments["out"], right)


def test_exports_that_are_missing_are_named_where_units_are_not_the_reason() -> None:
    with pytest.raises(LimitError) as raised:
        lower(parse_module(EB_TABLES.text), 3, CONFIG.with_changes(exports=7))
    assert str(raised.value) == (
        "au: 'au.tu t1': needs export 7 for s7, config 'tables' has 7 (limit exports)"
    )


def test_a_view_that_leaves_its_memory_is_refused_by_the_interpreters() -> None:
    arguments = EB_TABLES.arguments(1, 0)
    arguments["place"][0] = 100
    size = arguments["flat"].size
    with pytest.raises(CheckError) as raised:
        interpret(parse_module(EB_TABLES.text), "kernel", list(arguments.values()))
    assert str(raised.value) == (
        f"view must lie in the {size} elements of its memory, not at 1600 with sizes (5, 1) and "
        "strides (32, 1)"
    )
    arguments = EB_TABLES.arguments(1, 0)
    arguments["flat"] = np.repeat(arguments["flat"], 2)[::2]
    with pytest.raises(CheckError) as raised:
        interpret(parse_module(EB_TABLES.text), "kernel", list(arguments.values()))
    assert str(raised.value) == (
        f"memory of a view must be one dimension without gaps, not of shape ({size},)"
    )
