"""Splits a nest between the reduce unit and the host: microcode of the unit, and the host's part.

What becomes of a nest where the config has a reduce unit:

- its rows are pooled or copied there, and the host's part only places results (`Nest.execute` is
  "fabric");
- or the host runs its execute code: then each row leaves the unit as it came, as a result, and the
  host's part is the whole code. That is so with `execute="host"`, and where the unit can't run the
  code; `Nest.reason` says why.
- Rows that the unit can't even copy don't leave such hardware at all: the nest has no fabric part,
  and a device with a reduce unit refuses it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Literal

from ember_hw.compiler.backend.dot_host import dot_host
from ember_hw.compiler.backend.dot_match import Dot, folds_rows, match_dot
from ember_hw.compiler.backend.exports import LimitError
from ember_hw.compiler.backend.reduce_host import narrowing_host, pooled_host, unpooled_host
from ember_hw.compiler.backend.reduce_match import (
    CODED,
    FORMATS,
    HostReason,
    Pooling,
    copies_rows,
    match_pooling,
)
from ember_hw.compiler.backend.reduce_values import Values
from ember_hw.compiler.dialects.au import ProgramOp
from ember_hw.compiler.dialects.au_program import AccessProgram, MemoryStream, read_program
from ember_hw.compiler.dialects.quantized import QuantizedType
from ember_hw.compiler.nest import FabricPart, Nest, Patch, ResultRow
from ember_hw.errors import UnsupportedError
from ember_hw.isa import Event, ReduceOperation, RowFormat, Source, event_bit
from ember_hw.isa.reduce import (
    ACCUMULATOR_BEATS,
    EMPTY,
    NUMBER_BYTES,
    STORED_BYTES,
    factor_bytes,
)

__all__ = ["Execute", "not_in_fabric", "split_nest"]

Execute = Literal["auto", "host", "fabric"]

_NAMES = {ReduceOperation.SUM: "sum", ReduceOperation.MAXIMUM: "maximum"}


def split_nest(
    nest: Nest,
    program: ProgramOp,
    execute: Execute,
    own_tables: Collection[str] = (),
    remark: str = "",
) -> Nest:
    """Return a nest with what the reduce unit does of it, or with the reason why it does nothing.

    Parameters
    ----------
    nest : Nest
        With its code.
    program : ProgramOp
        The access program that it was assembled from.
    execute : "auto", "host" or "fabric"
        As `ember_hw.compile`.
    own_tables : collection of str, optional
        Tables of the program that no other nest reads: only their rows may lie as the unit wants
        rows of codes.
    remark : str, optional
        What has been tried in vain, told behind the reason.

    Raises
    ------
    UnsupportedError
        `execute` is "fabric", and the unit can't run the nest.
    """
    if nest.microcode.config.execute != "reduce":
        reason = "the config has no reduce unit"
        return replace(nest, reason=reason)
    access = read_program(program)
    try:
        if execute == "host":
            raise HostReason("execute='host' was asked for")
        return _in_fabric(nest, access, own_tables)
    except HostReason as refusal:
        reason = f"{refusal}; {remark}" if remark else str(refusal)
        nest = replace(nest, reason=reason)
        if execute == "fabric":
            raise not_in_fabric(nest) from None
        return _through_fabric(nest, access)


def not_in_fabric(nest: Nest) -> UnsupportedError:
    """Return the error that a nest must run in the fabric, and the host would run it."""
    return UnsupportedError(
        f"execute code of nest {nest.name!r} must fit the reduce unit with "
        f"execute='fabric', but {nest.reason}; execute='auto' runs it on the host"
    )


def _in_fabric(nest: Nest, program: AccessProgram, own_tables: Collection[str]) -> Nest:
    """Return a nest whose rows are pooled or copied by the unit."""
    _check_rows(program, nest)
    assert nest.code is not None
    if copies_rows(nest.code):
        return _passed(nest, program, "copy")
    values = Values(nest.code, program, nest.callbacks, nest.microcode.config)
    if nest.microcode.config.reduce_dot and folds_rows(nest.code):
        dot = match_dot(nest.code, program, nest.callbacks, values)
        return _summed_across(nest, program, dot)
    takes_codes = bool(nest.microcode.config.int8_rows)
    pooling = match_pooling(nest.code, program, nest.callbacks, values, takes_codes=takes_codes)
    nest = _pooled(nest, program, pooling)
    return _turned(nest, pooling, own_tables) if pooling.element in CODED else nest


def _turned(nest: Nest, pooling: Pooling, own_tables: Collection[str]) -> Nest:
    """Return a nest whose table has scale and bias in front of each row's codes."""
    record = f"row{pooling.entry}"
    (symbol,) = (p.symbol for p in nest.patches if (p.record, p.field) == (record, "base"))
    if symbol not in own_tables:
        raise HostReason(
            "rows of codes are turned as their table is loaded, and "
            f"{symbol!r} is no table that this nest alone reads"
        )
    assert nest.fabric is not None
    is_half = CODED[pooling.element]
    part = replace(nest.fabric, turned={symbol: factor_bytes(RowFormat.INT8, is_half)})
    microcode = nest.microcode.with_fields({("reduce", "half_scale"): int(is_half)})
    return replace(nest, fabric=part, microcode=microcode)


def _through_fabric(nest: Nest, program: AccessProgram) -> Nest:
    """Return a nest whose rows leave the unit as they came, if they can."""
    try:
        _check_rows(program, nest)
        return _passed(nest, program, "rows")
    except HostReason:
        return nest


def _check_rows(program: AccessProgram, nest: Nest) -> None:
    """Refuse a nest that sends other things than whole rows of one length."""
    if not program.rows:
        raise HostReason("it has no rows: opt level 0 sends elements, levels 2 and 3 send rows")
    if any(row.clip is not None for row in program.rows):
        raise HostReason("its rows come in parts: opt levels 2 and 3 send them whole")
    if any(isinstance(stream, MemoryStream) and stream.queue for stream in program.streams):
        raise HostReason("its indices come over the input queue, and the host has to know them")
    lengths = {(row.length, row.in_bytes, str(row.element_type)) for row in program.rows}
    if len(lengths) > 1:
        raise HostReason("its rows have several lengths, and the unit's results have one")


def _pooled(nest: Nest, program: AccessProgram, pooling: Pooling) -> Nest:
    config = nest.microcode.config
    (row,) = program.rows
    scalar = _length_scalar(nest, pooling.entry)
    try:
        host, place = pooled_host(
            program, nest, pooling, length=None if scalar is None else row.length
        )
    except LimitError as error:
        raise HostReason(f"the host's part doesn't fit its walk: {error}") from error
    emits = 1 << event_bit(Event.END, pooling.level + 1, config)
    iterates = 1 << event_bit(Event.ITERATE, max(pooling.level, 0), config)
    step = {
        "emit_events": emits,
        "operation": int(pooling.operation),
        "scaled": int(pooling.weight is not None),
        "scalar": pooling.weight.scalar if pooling.weight else 0,
    }
    name = _NAMES[pooling.operation]
    part = FabricPart(
        operation=f"weighted {name}" if pooling.weight is not None else name,
        host=host,
        results=(ResultRow(0, iterates, place),),
        begins={pooling.store.symbol: EMPTY[pooling.operation]},
    )
    told = nest.microcode.get("issue", "events") | emits
    steps = {pooling.entry: step}
    format = FORMATS.get(pooling.element, RowFormat.INT8)
    extra = factor_bytes(format, CODED.get(pooling.element, False))
    nest = _with_microcode(nest, part, format, scalar, steps, told, extra)
    weights = FORMATS[pooling.weight.element] if pooling.weight else RowFormat.FP32
    fields = {("reduce", "weight_format"): int(weights)}
    return replace(nest, microcode=nest.microcode.with_fields(fields))


def _summed_across(nest: Nest, program: AccessProgram, dot: Dot) -> Nest:
    """Return a nest whose rows are summed across: a result for each iteration that folds some."""
    config, get = nest.microcode.config, nest.microcode.get
    if _length_scalar(nest, dot.rows[0].entry) is not None:
        raise HostReason("the length of its rows is loaded, and the unit sums across rows of one")
    try:
        host = dot_host(program, nest, dot)
    except LimitError as error:
        raise HostReason(f"the host's part doesn't fit its walk: {error}") from error
    iterates = 1 << event_bit(Event.ITERATE, dot.callback.level, config)
    results = (ResultRow(0, iterates, None),)
    part = FabricPart(operation="sum across", host=host, results=results)
    steps = {
        row.entry: {"place": int(row.place), "negated": int(row.is_negated)} for row in dot.rows
    }
    steps[dot.rows[-1].entry] |= {"emit_events": iterates}
    told = get("issue", "events") | iterates
    nest = _with_microcode(nest, part, FORMATS[dot.rows[0].element], None, steps, told)
    joins = {"fold": dot.fold, "second": dot.second, "third": dot.third}
    fields = {("reduce", name): int(value) for name, value in joins.items()}
    return replace(nest, microcode=nest.microcode.with_fields(fields))


def _passed(nest: Nest, program: AccessProgram, operation: Literal["copy", "rows"]) -> Nest:
    """Return a nest each of whose rows leaves as a result."""
    get = nest.microcode.get
    scalar = _length_scalar(nest, 0)
    if scalar is not None and isinstance(program.rows[0].element_type, QuantizedType):
        raise HostReason("the length of rows of codes is loaded, and is not a result's")
    try:
        host = unpooled_host(program, nest)
    except LimitError as error:
        raise HostReason(f"the host's part doesn't fit its walk: {error}") from error
    masks = {number: get(f"row{number}", "events") for number in range(len(program.rows))}
    steps = {
        number: {"emit_events": mask, "operation": int(ReduceOperation.COPY)}
        for number, mask in masks.items()
    }
    results = tuple(ResultRow(number, mask, None) for number, mask in masks.items())
    format = _copied_format(nest, program) if operation == "copy" else RowFormat.FP32
    if format is not RowFormat.FP32:
        host = narrowing_host(host)
    part = FabricPart(operation=operation, host=host, results=results)
    return _with_microcode(nest, part, format, scalar, steps, get("issue", "events"))


def _copied_format(nest: Nest, program: AccessProgram) -> RowFormat:
    """Return the format as which rows are copied: fp32, which keeps every bit, if they fit words.

    Others, and those whose length comes with a request, are widened, as results have numbers of 4
    bytes; the host makes them narrow again.
    """
    comes = any((patch.record, patch.field) == ("row0", "length") for patch in nest.patches)
    if not comes and not nest.microcode.get("row0", "length") % NUMBER_BYTES:
        return RowFormat.FP32
    return FORMATS.get(str(program.rows[0].element_type), RowFormat.FP32)


def _length_scalar(nest: Nest, entry: int) -> int | None:
    """Return the scalar of the bundle that tells a row's bytes; None if none does."""
    get, config = nest.microcode.get, nest.microcode.config
    if get(f"row{entry}", "length_source") == Source.IMMEDIATE:
        return None
    scalar = get(f"row{entry}", "length_export")
    if scalar >= config.bundle_scalars:
        raise HostReason("no scalar of its bundles tells the length of its rows")
    return scalar


def _with_microcode(
    nest: Nest,
    part: FabricPart,
    format: RowFormat,
    length_scalar: int | None,
    steps: Mapping[int, Mapping[str, int]],
    told: int,
    extra_bytes: int = 0,
) -> Nest:
    """Return a nest with the records of the reduce unit; `extra_bytes` of a row are no numbers.

    Raises
    ------
    HostReason
        Its rows don't fit the accumulator.
    """
    config = nest.microcode.config
    entry = min(steps)
    place = (f"row{entry}", "length")
    changes = [patch for patch in nest.patches if (patch.record, patch.field) == place]
    wide = NUMBER_BYTES // STORED_BYTES[format]
    length = 0 if changes else wide * (nest.microcode.get(*place) - extra_bytes)
    most = ACCUMULATOR_BEATS * config.bus_bytes
    if length > most or length % NUMBER_BYTES:
        raise HostReason(
            f"a result of {length} bytes is no multiple of {NUMBER_BYTES} up to {most}, "
            f"which the accumulator holds"
        )
    fields: dict[tuple[str, str], int] = {
        ("issue", "events"): told,
        ("reduce", "format"): int(format),
        ("reduce", "length"): length,
    }
    if length_scalar is not None:
        if wide > 1:
            raise HostReason("the length of rows that are widened is loaded, and is not a result's")
        fields |= {
            ("reduce", "length_source"): int(Source.SLOT),
            ("reduce", "length_scalar"): length_scalar,
        }
    for number, step in steps.items():
        fields |= {(f"reduce{number}", name): value for name, value in step.items()}
    patches = [
        Patch(
            *("reduce", "length", patch.symbol),
            scale=wide * patch.scale,
            addend=wide * (patch.addend - extra_bytes),
        )
        for patch in changes
    ]
    return replace(
        nest,
        microcode=nest.microcode.with_fields(fields),
        patches=(*nest.patches, *patches),
        fabric=part,
    )
