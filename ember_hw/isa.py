"""The microcode: the only definition of its records, fields and words.

A program for the access unit is a fixed set of records, one for each physical part: a header, one
for each traversal unit and each of its memory streams, one for each row entry, one for the issue
stage. `layouts` builds their layouts for a config; encoder, decoder, text, RTL and documentation
read those. Each record begins on a 32-bit word, fields follow from bit 0 in the order below.

Slots
-----
Inside a record of a unit a *slot* selects a value: 0 the unit's induction value, 1 to S its memory
streams, S + 1 its ALU (in pair mode: stream 0's value in the next iteration), S + 2 onwards the
values inherited from the unit above, which are that unit's *exports*. Row entries and the issue
stage select among the exports of the innermost unit.

Events
------
Bit ``e * L + k`` of an event mask stands for event e (begin 0, iterate 1, end 2) of level k of L.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from amaranth.lib import enum  # pyright: ignore[reportMissingTypeStubs]  # amaranth has none

from ember_hw.config import VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.errors import AssemblyError

#: Raised by every change to the records below.
ISA_VERSION = 1

WORD_BITS = 32


class BoundSource(enum.IntEnum, shape=2):
    """Where a loop bound comes from."""

    IMMEDIATE = 0
    SLOT = 1
    LOWER_PLUS = 2  # upper bound only: lower bound + immediate


class Source(enum.IntEnum, shape=1):
    """Where an operand comes from."""

    IMMEDIATE = 0
    SLOT = 1


class AluOperation(enum.IntEnum, shape=2):
    """What a unit's ALU computes; results keep the low 32 bits."""

    ADD = 0
    SUB = 1
    MUL = 2
    SHL = 3  # by the low five bits of b


class ElementSize(enum.IntEnum, shape=2):
    """Size of a memory stream's element, as log2 of its bytes."""

    BYTES_1 = 0
    BYTES_2 = 1
    BYTES_4 = 2
    BYTES_8 = 3


class Hint(enum.IntEnum, shape=2):
    """What a memory hierarchy may do with a row or line."""

    NONE = 0
    NON_TEMPORAL = 1  # will not be used again soon
    KEEP = 2  # will be used again soon


class Event(enum.IntEnum, shape=2):
    """Events of a level."""

    BEGIN = 0
    ITERATE = 1
    END = 2


EVENT_NAMES = {Event.BEGIN: "beg", Event.ITERATE: "ite", Event.END: "end"}


class FieldKind(enum.Enum):
    """How a field's bits are read."""

    UNSIGNED = "unsigned"
    SIGNED = "signed"
    ENUM = "enum"
    EVENTS = "events"


@dataclass(frozen=True)
class Field:
    """One field of a record.

    `limit`, where set, is the number of legal values when that is fewer than the width admits.
    """

    name: str
    width_bits: int
    description: str
    kind: FieldKind = FieldKind.UNSIGNED
    choices: type[enum.IntEnum] | None = None
    limit: int | None = None

    @property
    def least(self) -> int:
        """Smallest legal value."""
        return -(1 << (self.width_bits - 1)) if self.kind is FieldKind.SIGNED else 0

    @property
    def most(self) -> int:
        """Largest legal value."""
        if self.choices is not None:
            return max(int(choice) for choice in self.choices)
        if self.limit is not None:
            return self.limit - 1
        return (1 << (self.width_bits - (self.kind is FieldKind.SIGNED))) - 1


@dataclass(frozen=True)
class RecordLayout:
    """One record.

    Parameters
    ----------
    path : str
        ``header``, ``unit0``, ``unit0.stream1``, ``row0``, ``issue``, ..
    fields : tuple of Field
        In bit order, the first at bit 0.
    first_word : int
        Number of its first word in a program.
    """

    path: str
    fields: tuple[Field, ...]
    first_word: int

    @property
    def width_bits(self) -> int:
        """Bits of all fields."""
        return sum(f.width_bits for f in self.fields)

    @property
    def words(self) -> int:
        """32-bit words the record fills."""
        return -(-self.width_bits // WORD_BITS)

    def field(self, name: str) -> Field:
        """Return the field of that name.

        Raises
        ------
        AssemblyError
            The record has no such field.
        """
        for candidate in self.fields:
            if candidate.name == name:
                return candidate
        legal = ", ".join(f.name for f in self.fields)
        raise AssemblyError(f"field of record {self.path!r} must be one of {legal}, not {name!r}")


def _bits(choices: int) -> int:
    """Return the width of a selector among that many values."""
    return max(1, (choices - 1).bit_length())


def _choice(name: str, choices: type[enum.IntEnum], description: str) -> Field:
    width_bits = max(int(c) for c in choices).bit_length()
    return Field(name, width_bits, description, FieldKind.ENUM, choices)


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
        slot("lower_slot", "inherited value that is the lower bound"),
        Field("lower_immediate", value, "lower bound", FieldKind.SIGNED),
        _choice("upper_source", BoundSource, "where the upper bound (exclusive) comes from"),
        slot("upper_slot", "inherited value that is the upper bound"),
        Field(
            "upper_immediate",
            value,
            "upper bound, or its distance from the lower bound",
            FieldKind.SIGNED,
        ),
        Field("step", 16, "distance of two induction values; never 0"),
        _choice("alu_operation", AluOperation, "what the ALU slot holds: a (operation) b"),
        slot("alu_a_slot", "operand a"),
        _choice("alu_b_source", Source, "where operand b comes from"),
        slot("alu_b_slot", "operand b"),
        Field("alu_immediate", value, "operand b", FieldKind.SIGNED),
        *(slot(f"export{i}", f"value handed down as export {i}") for i in range(config.exports)),
    )


def _stream_fields(config: AcceleratorConfig) -> tuple[Field, ...]:
    slot_bits, slots = _bits(config.slots), config.slots
    return (
        Field("enable", 1, "the program uses this stream"),
        _choice("size", ElementSize, "bytes of an element"),
        Field("signed", 1, "elements shorter than 4 bytes are sign-extended"),
        Field("base", config.address_width_bits, "byte address of the region, a multiple of 64"),
        Field(
            "region_bytes",
            config.address_width_bits,
            "bytes of the region; an element beyond it is a fault",
        ),
        Field("first", VALUE_WIDTH_BITS, "byte offset of the element that slot values of 0 select"),
        Field(
            "slot", slot_bits, "induction or inherited value that selects the element", limit=slots
        ),
        Field("shift", 4, "the slot's value counts elements of 2 ** shift bytes"),
        Field("second_enable", 1, "a second value takes part in the address"),
        Field(
            "second_slot", slot_bits, "inherited value that selects the outer element", limit=slots
        ),
        Field("second_pitch", 20, "bytes between two outer elements"),
        _choice("hint", Hint, "what a memory hierarchy may do with the line"),
    )


def _row_fields(config: AcceleratorConfig) -> tuple[Field, ...]:
    export_bits, exports = _bits(config.exports), config.exports

    def export(name: str, description: str) -> Field:
        return Field(name, export_bits, description, limit=exports)

    return (
        Field("events", config.events, "events that fetch this row", FieldKind.EVENTS),
        export("index_export", "value that is the row's index"),
        _choice("base_source", Source, "where the table's address comes from"),
        Field(
            "base", config.address_width_bits, "byte address of row 0, a multiple of the bus width"
        ),
        export("base_export", "value that is the table's address in units of 64 bytes"),
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
        Field("offset_shift", 4, "the value counts elements of 2 ** offset_shift bytes"),
        Field(
            "clip", 17, "bytes of the whole row, where offset_enable is set: the part is cut there"
        ),
        _choice("hint", Hint, "what a memory hierarchy may do with the row"),
    )


def _issue_fields(config: AcceleratorConfig) -> tuple[Field, ...]:
    export_bits, exports = _bits(config.exports), config.exports
    return (
        Field("events", config.events, "events that the execute side is told of", FieldKind.EVENTS),
        *(
            Field(
                f"scalar{i}_export",
                export_bits,
                f"value that is scalar {i} of a bundle",
                limit=exports,
            )
            for i in range(config.bundle_scalars)
        ),
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


def event_mask(events: Iterable[tuple[Event, int]], config: AcceleratorConfig) -> int:
    """Return the mask of some (event, level) pairs."""
    mask = 0
    for event, level in events:
        mask |= 1 << event_bit(event, level, config)
    return mask


@dataclass(frozen=True)
class Microcode:
    """A program's records as field values, every one checked.

    Parameters
    ----------
    config : AcceleratorConfig
        What the program was made for.
    records : mapping of path to mapping of field to int
        Fields that are not named are 0; the header's version is filled in.

    Raises
    ------
    AssemblyError
        A record or field does not exist, or a value is out of the field's range.
    """

    config: AcceleratorConfig
    records: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, dict[str, int]])

    def __post_init__(self) -> None:
        known = layouts(self.config)
        complete: dict[str, dict[str, int]] = {}
        for path in self.records:
            if path not in known:
                raise AssemblyError(f"record must be one of {', '.join(known)}, not {path!r}")
        for path, layout in known.items():
            given = self.records.get(path, {})
            for name, value in given.items():
                check_field(layout, name, value)
            complete[path] = {f.name: int(given.get(f.name, 0)) for f in layout.fields}
        if "version" not in self.records.get("header", {}):
            complete["header"]["version"] = ISA_VERSION
        object.__setattr__(self, "records", complete)

    def get(self, path: str, name: str) -> int:
        """Return a field's value."""
        return self.records[path][name]

    def with_field(self, path: str, name: str, value: int) -> Microcode:
        """Return a copy with one field changed, checked again."""
        return self.with_fields({(path, name): value})

    def with_fields(self, changes: Mapping[tuple[str, str], int]) -> Microcode:
        """Return a copy with some fields changed, by (path, field)."""
        records = {path: dict(values) for path, values in self.records.items()}
        for (path, name), value in changes.items():
            records.setdefault(path, {})[name] = value
        return Microcode(self.config, records)

    def encode(self) -> list[int]:
        """Return the program's 32-bit words, in the order of their addresses."""
        words: list[int] = []
        for path, layout in layouts(self.config).items():
            bits, position = 0, 0
            for f in layout.fields:
                bits |= (self.records[path][f.name] & ((1 << f.width_bits) - 1)) << position
                position += f.width_bits
            words += [(bits >> (WORD_BITS * i)) & 0xFFFF_FFFF for i in range(layout.words)]
        return words

    @staticmethod
    def decode(words: list[int], config: AcceleratorConfig) -> Microcode:
        """Read a program back from its words.

        Raises
        ------
        AssemblyError
            The number of words is wrong, a word is not 32 bits, or a field's value is illegal.
        """
        expected = microcode_words(config)
        if len(words) != expected:
            raise AssemblyError(
                f"microcode must be {expected} words for config {config.name!r}, not {len(words)}"
            )
        records: dict[str, dict[str, int]] = {}
        for path, layout in layouts(config).items():
            bits = 0
            for i in range(layout.words):
                word = words[layout.first_word + i]
                if not 0 <= word < 1 << WORD_BITS:
                    raise AssemblyError(
                        f"microcode word {layout.first_word + i} must be 32 bits, not {word!r}"
                    )
                bits |= word << (WORD_BITS * i)
            records[path] = {}
            for f in layout.fields:
                value = bits & ((1 << f.width_bits) - 1)
                if f.kind is FieldKind.SIGNED and value >> (f.width_bits - 1):
                    value -= 1 << f.width_bits
                records[path][f.name] = value
                bits >>= f.width_bits
            if bits:
                raise AssemblyError(f"padding of record {path!r} must be 0, not {bits:#x}")
        return Microcode(config, records)


def check_field(layout: RecordLayout, name: str, value: object) -> None:
    """Check a value against its field's range.

    Raises
    ------
    AssemblyError
        The field does not exist, or the value is out of range.
    """
    f = layout.field(name)
    if isinstance(value, bool) or not isinstance(value, int) or not f.least <= value <= f.most:
        raise AssemblyError(
            f"field {name!r} of record {layout.path!r} must be an integer "
            f"from {f.least} to {f.most}, not {value!r}"
        )


def disassemble(microcode: Microcode) -> str:
    """Return a program as text, a line for each record.

    Fields that are 0 are left out, except the version.

    The text is what `assemble` reads: ``disassemble(assemble(text))`` is a fixed point.
    """
    lines: list[str] = []
    for path, layout in layouts(microcode.config).items():
        parts = [
            f"{f.name}={_format_value(f, microcode.get(path, f.name), microcode.config)}"
            for f in layout.fields
            if microcode.get(path, f.name) or f.name == "version"
        ]
        if parts:
            lines.append(f"{path}: " + " ".join(parts))
    return "\n".join(lines) + "\n"


def assemble(text: str, config: AcceleratorConfig) -> Microcode:
    """Read a program from the text form of `disassemble`; ``;`` begins a comment.

    Raises
    ------
    AssemblyError
        A line is malformed (the error names it), or a record, field or value is illegal.
    """
    records: dict[str, dict[str, int]] = {}
    known = layouts(config)
    for number, line in enumerate(text.splitlines(), 1):
        body = line.split(";", 1)[0].strip()
        if not body:
            continue
        path, colon, rest = body.partition(":")
        if not colon or path not in known:
            raise AssemblyError(
                f"line {number}: record must be one of {', '.join(known)}, not {path!r}"
            )
        if path in records:
            raise AssemblyError(f"line {number}: record {path!r} must stand once, not twice")
        records[path] = {}
        for item in rest.split():
            name, equals, value = item.partition("=")
            if not equals:
                raise AssemblyError(f"line {number}: item must be field=value, not {item!r}")
            if name in records[path]:
                raise AssemblyError(f"line {number}: field {name!r} must stand once, not twice")
            records[path][name] = _parse_value(known[path].field(name), value, config, number)
    return Microcode(config, records)


def _format_value(f: Field, value: int, config: AcceleratorConfig) -> str:
    if f.choices is not None:
        return f.choices(value).name.lower()
    if f.kind is FieldKind.EVENTS:
        pairs = [(event, level) for event in Event for level in range(config.traversal_units)]
        names = [f"{EVENT_NAMES[e]}{k}" for e, k in pairs if value >> event_bit(e, k, config) & 1]
        return "|".join(names)
    return f"{value:#x}" if f.name in ("base", "region_bytes") else str(value)


def _parse_value(f: Field, text: str, config: AcceleratorConfig, line: int) -> int:
    if f.choices is not None:
        legal = {choice.name.lower(): int(choice) for choice in f.choices}
        if text not in legal:
            raise AssemblyError(
                f"line {line}: {f.name} must be one of {', '.join(legal)}, not {text!r}"
            )
        return legal[text]
    if f.kind is FieldKind.EVENTS:
        events = {name: event for event, name in EVENT_NAMES.items()}
        mask = 0
        for name in text.split("|"):
            match = re.fullmatch(r"(beg|ite|end)(\d+)", name)
            if match is None or int(match[2]) >= config.traversal_units:
                raise AssemblyError(
                    f"line {line}: event must be beg, ite or end with a level "
                    f"below {config.traversal_units}, not {name!r}"
                )
            mask |= 1 << event_bit(events[match[1]], int(match[2]), config)
        return mask
    try:
        return int(text, 0)
    except ValueError:
        raise AssemblyError(f"line {line}: {f.name} must be an integer, not {text!r}") from None
