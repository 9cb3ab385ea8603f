"""Which choices of the microcode a set of programs has used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ember_hw.config import AcceleratorConfig
from ember_hw.isa import Field, FieldKind, Microcode, layouts

_MOST_CHOICES = 32


def _choices(known: Field) -> list[int]:
    """Return the values of a field that chooses; none of one that is a number."""
    if known.choices is not None:
        return [int(choice) for choice in known.choices]
    if known.kind is FieldKind.EVENTS:
        return list(range(known.width_bits))
    is_selector = known.limit is not None and known.limit <= _MOST_CHOICES
    if is_selector or known.width_bits == 1:
        return list(range(known.most + 1))
    return []


def _kind(path: str) -> str:
    """Return a record's path without its numbers."""
    return re.sub(r"\d", "", path)


@dataclass
class Coverage:
    """Choices seen: opcodes, sources, sizes, selectors, flags, event bits.

    Attributes
    ----------
    seen : set of (config, record kind, field, value)
        For a field of events, the number of a bit that was set.
    """

    seen: set[tuple[str, str, str, int]] = field(default_factory=set[tuple[str, str, str, int]])

    def note(self, microcode: Microcode) -> None:
        """Take note of what a program uses, in its units, streams and rows that are on."""
        config = microcode.config
        for path, layout in layouts(config).items():
            record = microcode.records[path]
            if not record.get("enable", 1) or (path.startswith("row") and not record["events"]):
                continue
            for known in layout.fields:
                value = record[known.name]
                values = [value]
                if known.kind is FieldKind.EVENTS:
                    values = [bit for bit in range(known.width_bits) if value >> bit & 1]
                if _choices(known):
                    self.seen |= {(config.name, _kind(path), known.name, v) for v in values}

    def missing(self, config: AcceleratorConfig) -> Iterator[str]:
        """Yield what no program of a config has used, of all that it could."""
        for path, layout in layouts(config).items():
            if path == "header" or any(character in path for character in "123456789"):
                continue  # one unit, stream and row stand for all
            for known in layout.fields:
                if known.name == "enable" or (known.name == "source" and not config.input_queue):
                    continue
                for value in _choices(known):
                    if (config.name, _kind(path), known.name, value) not in self.seen:
                        yield f"{_kind(path)}.{known.name}={value}"

    def total(self, config: AcceleratorConfig) -> int:
        """Return the number of choices that there are."""
        empty = Coverage()
        return sum(1 for _ in empty.missing(config))
