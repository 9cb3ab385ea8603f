"""The records of a program, their fields in bit order, and where each begins."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from amaranth.lib import enum  # pyright: ignore[reportMissingTypeStubs]  # amaranth has none

from ember_hw.config import VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.isa.fields import (
    AluOperation,
    BoundSource,
    ElementSize,
    Event,
    Field,
    FieldKind,
    Hint,
    RecordLayout,
    Source,
    StreamSource,
)
from ember_hw.isa.reduce import reduce_header_fields, reduce_step_fields, result_fields

#: Raised by every change to the records below, or to what a host must know of the registers.
ISA_VERSION = 3


def _bits(choices: int) -> int:
    """Return the width of a selector among that many values."""
    return max(1, (choices - 1).bit_length())


def _choice(name: str, choices: type[enum.IntEnum], description: str) -> Field:
    width_bits = max(int(c) for c in choices).bit_length()
    return Field(name, width_bits, description, FieldKind.ENUM, choices)


def _export(name: str, description: str, config: AcceleratorConfig) -> Field:
    return Field(name, _bits(config.exports), description, limit=config.exports)


def _header_fields(config: AcceleratorConfig) -> tuple[Field, ...]:
    return (
        Field("version", 8, "ISA_VERSION the program was made for"),
        Field(
            "outstanding_reads",
            10,
            "row reads in flight at most; 0: as many as the hardware has",
            limit=config.outstanding_reads + 1,
        ),
    )


def _unit_fields(config: AcceleratorConfig) -> tuple[Field, ...]:
    slot_bits, slots = _bits(config.slots), config.slots
    own = config.streams_per_unit + 1
    choices = own + 2
    value = VALUE_WIDTH_BITS

    def slot(name: str, description: str) -> Field:
        return Field(name, slot_bits, description, limit=slots)

    return (
        Field(
            "enable",
            1,
            "the program uses this unit; units are used outermost first, without a hole",
        ),
        Field("pair", 1, "the ALU slot holds stream 0's value in the next iteration"),
        _choice("lower_source", Source, "where the lower bound comes from"),
        _export("lower_export", "inherited value that is the lower bound", config),
        Field("lower_immediate", value, "lower bound", FieldKind.SIGNED),
        _choice("upper_source", BoundSource, "where the upper bound (exclusive) comes from"),
        _export("upper_export", "inherited value that is the upper bound", config),
        Field(
            "upper_immediate",
            value,
            "upper bound, or its distance from the lower bound",
            FieldKind.SIGNED,
        ),
        Field("step", 16, "distance of two induction values; never 0"),
        _choice("alu_operation", AluOperation, "what the ALU computes: a (operation) b"),
        Field("alu_a_slot", _bits(own), "operand a, a value of the unit's own", limit=own),
        _choice("alu_b_source", Source, "where operand b comes from"),
        slot("alu_b_slot", "operand b"),
        Field("alu_immediate", value, "operand b", FieldKind.SIGNED),
        *(
            Field(
                f"export{i}",
                _bits(choices),
                f"value handed down as export {i}: 0 the inherited one, 1 the induction value, "
                "2.. the streams, the last the ALU",
                limit=choices,
            )
            for i in range(config.exports)
        ),
    )


def _stream_fields(config: AcceleratorConfig) -> tuple[Field, ...]:
    return (
        Field("enable", 1, "the program uses this stream"),
        _choice("source", StreamSource, "where its lines come from"),
        _choice("size", ElementSize, "bytes of an element"),
        Field("signed", 1, "elements shorter than 4 bytes are sign-extended"),
        Field("base", config.address_width_bits, "byte address of element 0, a multiple of 64"),
        Field("elements", VALUE_WIDTH_BITS, "elements of the region; one beyond it is a fault"),
        Field("first", VALUE_WIDTH_BITS, "element number, before the rest", FieldKind.SIGNED),
        Field("induction", 1, "the induction value is added to the element number"),
        Field("outer_enable", 1, "an inherited value times outer_pitch is added to it"),
        _export("outer_export", "inherited value that selects the outer element", config),
        Field("outer_pitch", 17, "elements between two outer elements"),
        _choice("hint", Hint, "what a memory hierarchy may do with the line"),
    )


def _row_fields(config: AcceleratorConfig) -> tuple[Field, ...]:
    def export(name: str, description: str) -> Field:
        return _export(name, description, config)

    address = config.address_width_bits
    return (
        Field("events", config.events, "events that fetch this row", FieldKind.EVENTS),
        export("index_export", "value that is the row's index"),
        Field("base", address, "byte address of the region, a multiple of the bus width"),
        Field("region_bytes", address, "bytes of the region; a row that ends beyond it is a fault"),
        _choice("base_source", Source, "whether the table begins at the base, or beyond it"),
        export("base_export", "value that is the table's distance from base in units of 64 bytes"),
        _choice("pitch_source", Source, "where the distance of rows comes from"),
        Field("pitch", 20, "bytes between two rows, a multiple of the bus width"),
        export("pitch_export", "value that is the distance of rows in bytes"),
        _choice("length_source", Source, "where the row's length comes from"),
        Field("length", 16, "bytes of a row, 1 or more"),
        export("length_export", "value that is the row's length in bytes"),
        _choice("rows_source", Source, "where the number of rows comes from"),
        Field("rows", VALUE_WIDTH_BITS, "rows of the table; an index beyond it is a fault"),
        export("rows_export", "value that is the number of rows"),
        Field(
            "offset_enable", 1, "only a part of the row is fetched: `length` bytes from an offset"
        ),
        export("offset_export", "value that selects the part"),
        _choice("offset_size", ElementSize, "what the value counts"),
        Field(
            "clip", 17, "bytes of the whole row, where offset_enable is set: the part is cut there"
        ),
        _choice("hint", Hint, "what a memory hierarchy may do with the row"),
    )


def _issue_fields(config: AcceleratorConfig) -> tuple[Field, ...]:
    return (
        Field("events", config.events, "events that the execute side is told of", FieldKind.EVENTS),
    )


@lru_cache(maxsize=64)
def layouts(config: AcceleratorConfig) -> dict[str, RecordLayout]:
    """Return the layouts of all records by path, in the order of their words.

    Parameters
    ----------
    config : AcceleratorConfig
        Gives the number of records and the width of selectors and addresses.
    """
    kinds: list[tuple[str, tuple[Field, ...]]] = [("header", _header_fields(config))]
    for unit in range(config.traversal_units):
        kinds.append((f"unit{unit}", _unit_fields(config)))
        for stream in range(config.streams_per_unit):
            kinds.append((f"unit{unit}.stream{stream}", _stream_fields(config)))
    for row in range(config.row_entries):
        kinds.append((f"row{row}", _row_fields(config)))
    kinds.append(("issue", _issue_fields(config)))
    if config.execute == "reduce":
        kinds.append(("reduce", reduce_header_fields(config)))
        for row in range(config.row_entries):
            kinds.append((f"reduce{row}", reduce_step_fields(config)))
    if config.results == "memory":
        kinds.append(("result", result_fields(config)))

    result: dict[str, RecordLayout] = {}
    word = 0
    for path, record_fields in kinds:
        result[path] = RecordLayout(path, record_fields, word)
        word += result[path].words
    return result


def microcode_words(config: AcceleratorConfig) -> int:
    """Return the number of 32-bit words of a program."""
    last = list(layouts(config).values())[-1]
    return last.first_word + last.words


def event_bit(event: Event, level: int, config: AcceleratorConfig) -> int:
    """Return the bit number of an event of a level."""
    return int(event) * config.traversal_units + level


def events_in_order(levels: int) -> list[tuple[Event, int]]:
    """Return the events of a bundle, (event, level), in the order in which they happen."""
    inwards = [(event, k) for k in range(levels) for event in (Event.BEGIN, Event.ITERATE)]
    return inwards + [(Event.END, k) for k in reversed(range(levels))]


def event_mask(events: Iterable[tuple[Event, int]], config: AcceleratorConfig) -> int:
    """Return the mask of some (event, level) pairs."""
    mask = 0
    for event, level in events:
        mask |= 1 << event_bit(event, level, config)
    return mask
