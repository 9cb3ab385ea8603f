"""What a microcode record is made of: fields, and the enumerations some of them choose from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from amaranth.lib import enum  # pyright: ignore[reportMissingTypeStubs]  # amaranth has none

from ember_hw.errors import AssemblyError

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


class StreamSource(enum.IntEnum, shape=1):
    """Where a memory stream's lines come from: memory, or the input queue."""

    MEMORY = 0
    QUEUE = 1


class AluOperation(enum.IntEnum, shape=2):
    """What a unit's ALU computes; results keep the low 32 bits."""

    ADD = 0
    SUB = 1
    MUL = 2
    RSUB = 3  # b - a


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

    @cached_property
    def least(self) -> int:
        """Smallest legal value."""
        return -(1 << (self.width_bits - 1)) if self.kind is FieldKind.SIGNED else 0

    @cached_property
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
        found = self._by_name.get(name)
        if found is None:
            legal = ", ".join(self._by_name)
            raise AssemblyError(
                f"field of record {self.path!r} must be one of {legal}, not {name!r}"
            )
        return found

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        return {f.name: f for f in self.fields}
