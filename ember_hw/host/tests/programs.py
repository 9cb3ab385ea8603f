"""Hand-assembled programs of an EmbeddingBag sum at each opt level, for tests of the host alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.backend.execute_code import (
    Case,
    Compute,
    Constant,
    ExecuteCode,
    Extent,
    For,
    GetVariable,
    Increment,
    Load,
    Memory,
    Pop,
    ReadRow,
    Statement,
    Store,
    Variable,
)
from ember_hw.compiler.program import (
    Argument,
    Callback,
    Nest,
    Operand,
    Patch,
    Program,
)
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import BoundSource, ElementSize, Event, Microcode, Source, event_mask

# What an export of a unit with 2 streams takes; an export that isn't named keeps what it holds.
# Export 0 is the bag from unit 0 on; 1 and 2 hold its bounds, then the column, the index or value.
IV, S0, NEXT = 1, 2, 4


def bag_program(
    table: NDArray[np.float32],
    opt_level: int = 3,
    *,
    config: AcceleratorConfig | None = None,
    index_dtype: str = "int64",
    include_last_offset: bool = False,
    two_dimensional: bool = False,
) -> Program:
    """Assemble `out[b] = sum of table[idx[off[b]:off[b + 1]]]`."""
    config = config or AcceleratorConfig()
    assert config.streams_per_unit == 2
    columns = table.shape[1]
    size = {"int32": ElementSize.BYTES_4, "int64": ElementSize.BYTES_8}[index_dtype]
    records: dict[str, dict[str, int]] = {
        "unit0": {
            **_loop(0),
            "pair": 1,
            **{"export0": IV, "export1": S0, "export2": NEXT},
        },
        "unit0.stream0": _stream(ElementSize.BYTES_8),
        "unit1": {
            "enable": 1,
            "lower_source": Source.SLOT,
            "lower_export": 1,
            "upper_source": BoundSource.SLOT,
            "upper_export": 2,
            "step": 1,
            "export2": S0,
        },
        "unit1.stream0": _stream(size),
    }
    patches = [
        Patch("unit0", "upper_immediate", "B"),
        *_elements("unit0.stream0", "off"),
        *_elements("unit1.stream0", "idx"),
    ]
    level = 1 if opt_level >= 2 else 2
    events = [(Event.ITERATE, level)] + ([(Event.END, 1)] if opt_level == 3 else [])
    issue = {"events": event_mask(events, config)}
    if opt_level == 3:
        operands = (Operand("row", 0, "f32"),)
    else:
        operands = (Operand("scalar", 0, "index"),)
    if opt_level == 2:
        operands += (Operand("row", 0, "f32"),)
    if opt_level >= 1:
        records["row0"] = {
            "events": event_mask([(Event.ITERATE, level)], config),
            "index_export": 2,
            "length": 4 * columns,
        }
        patches += [
            *_region("row0", "tab"),
            Patch("row0", "pitch", "tab.pitch", scale=4),
            Patch("row0", "rows", "tab.rows"),
        ]
    if opt_level == 1:
        lanes = min(config.bus_bytes // 4, 16)
        records["unit2"] = {
            **_loop(columns),
            "step": lanes,
            "export1": IV,
        }
        records["row0"] |= {
            "length": 4 * lanes,
            "offset_enable": 1,
            "offset_export": 1,
            "offset_size": ElementSize.BYTES_4,
            "clip": 4 * columns,
        }
        operands += (Operand("scalar", 1, "index"), Operand("row", 0, "f32"))
    if opt_level == 0:
        records["unit2"] = {
            **_loop(columns),
            **{"export1": IV, "export2": S0},
        }
        records["unit2.stream0"] = {
            **_stream(ElementSize.BYTES_4),
            "outer_enable": 1,
            "outer_export": 2,
        }
        patches += _elements("unit2.stream0", "tab")
        patches += [Patch("unit2.stream0", "outer_pitch", "tab.pitch")]
        operands += (Operand("scalar", 1, "index"), Operand("scalar", 2, "f32", "tab"))
    records["issue"] = issue
    callbacks = [Callback(1, level, Event.ITERATE, operands)]
    if opt_level == 3:
        callbacks.append(Callback(2, 1, Event.END))
    index = {"int32": "i32", "int64": "i64"}[index_dtype]
    symbols = {
        "off": "memref<?xi64>",
        "idx": f"memref<?x{index}>",
        "tab": "memref<?x?xf32>",
        "out": "memref<?x?xf32>",
    }
    return Program(
        name="bag",
        config=config,
        opt_level=opt_level,
        nests=(
            Nest(
                "bag",
                Microcode(config, records),
                tuple(patches),
                {},
                tuple(callbacks),
                bag_code(opt_level, records["row0"]["length"] // 4 if opt_level == 1 else columns),
            ),
        ),
        arguments=tuple(Argument(*pair) for pair in {**symbols, "B": "index"}.items()),
        model={
            "kind": "embedding_bag",
            "name": "weight",
            "num_embeddings": table.shape[0],
            "embedding_dim": columns,
            "index_dtype": index_dtype,
            "include_last_offset": include_last_offset,
            "two_dimensional": two_dimensional,
            "input_names": ["indices"] if two_dimensional else ["indices", "offsets"],
            "indices_name": "indices",
            "offsets_name": None if two_dimensional else "offsets",
            "size_limits": [],
        },
        tables={"tab": table},
        seed=7,
        versions={"ember_hw": "0"},
    )


def bag_code(opt_level: int, row_elements: int) -> ExecuteCode:
    """Return `out[b] += row`, or an element or a part of it, for a popped or counted bag."""
    memory = Memory("out", "f32", 2, is_written=True)
    zero, one = Constant("zero", "index", 0), Constant("one", "index", 1)
    bag = GetVariable("b", 0) if opt_level == 3 else Pop("b", "index")
    add = (
        Load("a", "out", ("b", "d")),
        Compute("n", "f32", "addf", ("a", "v")),
        Store("out", ("b", "d"), "n"),
    )
    if opt_level == 0:
        return ExecuteCode(
            (memory,), cases=(Case(1, (bag, Pop("d", "index"), Pop("v", "f32"), *add)),)
        )
    pops: tuple[Statement, ...] = (
        (Pop("row", "row<f32>"), bag) if opt_level == 3 else (bag, Pop("row", "row<f32>"))
    )
    entry: tuple[Statement, ...] = (zero, one, Constant("length", "index", row_elements))
    read = ReadRow("v", "row", "k")
    if opt_level == 1:
        pops = (bag, Pop("column", "index"), Pop("row", "row<f32>"))
        place: Statement = Compute("d", "index", "addi", ("column", "k"))
        entry = (*entry, Extent("columns", "out", 1))
        rest = (
            Compute("room", "index", "subi", ("columns", "column")),
            Compute("end", "index", "minsi", ("room", "length")),
        )
        loop = For("k", "zero", "end", "one", (place, read, *add))
        return ExecuteCode((memory,), entry=entry, cases=(Case(1, (*pops, *rest, loop)),))
    loop = For("d", "zero", "length", "one", (ReadRow("v", "row", "d"), *add))
    cases = (Case(1, (*pops, loop)),)
    if opt_level == 2:
        return ExecuteCode((memory,), entry=entry, cases=cases)
    counted = Case(2, (Increment(0, 1),))
    return ExecuteCode((memory,), (Variable(0, "index", "zero"),), entry, (*cases, counted))


def with_rows(program: Program, rows: int) -> Program:
    """Return a program of one nest whose row entry takes the table for one of so many rows."""
    (nest,) = program.nests
    nest = replace(
        nest,
        patches=tuple(patch for patch in nest.patches if patch.field != "rows"),
        microcode=nest.microcode.with_field("row0", "rows", rows),
    )
    return replace(program, nests=(nest,))


def _loop(upper: int) -> dict[str, int]:
    return {"enable": 1, "upper_immediate": upper, "step": 1}


def _stream(size: ElementSize) -> dict[str, int]:
    return {"enable": 1, "size": size, "signed": 1, "induction": 1}


def _elements(record: str, symbol: str) -> list[Patch]:
    return [Patch(record, "base", symbol), Patch(record, "elements", f"{symbol}.elements")]


def _region(record: str, symbol: str) -> list[Patch]:
    return [Patch(record, "base", symbol), Patch(record, "region_bytes", f"{symbol}.bytes")]
