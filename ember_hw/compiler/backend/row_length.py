"""The longest row that microcode can say, and the opt level that takes a longer one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from ember_hw.compiler.dialects.au import ProgramOp
from ember_hw.compiler.dialects.au_program import MemoryStream, read_program
from ember_hw.compiler.dialects.quantized import QuantizedType
from ember_hw.compiler.program import OPT_LEVELS
from ember_hw.compiler.quantized_rows import RowFormat
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import UnsupportedError
from ember_hw.isa import layouts


def check_row_lengths(
    programs: Sequence[ProgramOp],
    tables: Mapping[str, NDArray[Any]],
    names: Mapping[str, str],
    opt_level: int,
    config: AcceleratorConfig,
    stacks: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Refuse tables whose rows don't fit the microcode, and say at which opt level they would.

    Parameters
    ----------
    programs : sequence of ProgramOp
        What reads them.
    tables : mapping of str to array
        Tables by symbol; those of one dimension have no rows.
    names : mapping of str to str
        How messages call tables; by their symbols, if not at all.
    opt_level : int
        Of the programs.
    config : AcceleratorConfig
        The access unit.
    stacks : mapping of str to sequence of str, optional
        Symbols of the tables that lie in one memory, by its symbol.

    Raises
    ------
    UnsupportedError
        A row is too long; names the table.
    """
    read = {symbol for program in programs for symbol in _tables_read(program)}
    quantized = {symbol: row for program in programs for symbol, row in _quantized(program)}
    for symbol, members in (stacks or {}).items():
        if symbol in read:
            read.update(members)
        if symbol in quantized:
            quantized.update(dict.fromkeys(members, quantized[symbol]))
    for symbol, table in tables.items():
        if table.ndim < 2 or symbol not in read:
            continue
        longest, columns = longest_rows(config, table.itemsize), table.shape[-1]
        if symbol in quantized:
            form, length = quantized[symbol]
            columns = form.elements(columns) if length is None else length
            # They are sent whole at every level.
            longest = [(longest[-1] - form.extra_bytes) * form.codes_per_byte] * len(longest)
        if columns <= longest[opt_level]:
            continue
        enough = [level for level in OPT_LEVELS if columns <= longest[level]]
        remedy = f"compile with opt_level={enough[-1]}" if enough else "split the table by columns"
        raise UnsupportedError(
            f"embedding_dim of table {names.get(symbol, symbol)!r} must be at most "
            f"{longest[opt_level]} at opt_level {opt_level} on config {config.name!r}, "
            f"not {columns}; {remedy}"
        )


def longest_rows(config: AcceleratorConfig, element_bytes: int) -> list[int]:
    """Return the elements of the longest row by opt level: as elements, as parts, whole, whole."""

    def most(record: str, field: str) -> int:
        return layouts(config)[record].field(field).most

    # Elements are addressed by the distance of rows, which are padded to whole beats.
    distance = most("unit0.stream0", "outer_pitch") * element_bytes
    distance = distance // config.bus_bytes * config.bus_bytes
    length = most("row0", "length")
    return [count // element_bytes for count in (distance, most("row0", "clip"), length, length)]


def _quantized(op: ProgramOp) -> Iterator[tuple[str, tuple[RowFormat, int | None]]]:
    """Yield the symbol of each memory of quantised rows, with format and elements of a row.

    Of rows whose length is loaded there is no number.
    """
    program = read_program(op)
    symbols = {argument.number: argument.symbol for argument in program.arguments}
    for row in program.rows:
        if isinstance(row.element_type, QuantizedType):
            length = None if row.in_bytes else row.length.number
            yield symbols[row.base], (row.element_type.format, length)


def _tables_read(op: ProgramOp) -> set[str]:
    """Return the symbols of memories that a program reads rows of, or elements of rows."""
    program = read_program(op)
    symbols = {argument.number: argument.symbol for argument in program.arguments}
    streams = [s for s in program.streams if isinstance(s, MemoryStream) and s.scale is not None]
    return {symbols[item.base] for item in (*program.rows, *streams)}
