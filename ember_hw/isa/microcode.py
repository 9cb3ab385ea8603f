"""A program's records as checked values, to and from words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ember_hw.config import AcceleratorConfig
from ember_hw.errors import AssemblyError
from ember_hw.isa.fields import WORD_BITS, FieldKind, RecordLayout
from ember_hw.isa.records import ISA_VERSION, layouts, microcode_words


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
        """Return a copy with some fields changed, by (path, field); these are checked.

        Raises
        ------
        AssemblyError
            A record or field does not exist, or a value is out of the field's range.
        """
        known = layouts(self.config)
        records: dict[str, Mapping[str, int]] = dict(self.records)
        changed: dict[str, dict[str, int]] = {}
        for (path, name), value in changes.items():
            if path not in known:
                raise AssemblyError(f"record must be one of {', '.join(known)}, not {path!r}")
            check_field(known[path], name, value)
            if path not in changed:
                records[path] = changed[path] = dict(self.records[path])
            changed[path][name] = int(value)
        # The other records were checked when this microcode was made.
        copy = object.__new__(Microcode)
        object.__setattr__(copy, "config", self.config)
        object.__setattr__(copy, "records", records)
        return copy

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
