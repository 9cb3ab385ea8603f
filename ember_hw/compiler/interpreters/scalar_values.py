"""What `scalar_microcode` works on and may end with: values, faults, memory that errs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from ember_hw.registers import FaultCode


class Unknown(Enum):
    """Values that are no number."""

    UNDEFINED = "undefined"  # no program may rely on it
    BAD = "bad"  # it comes from a load at fault


Value: TypeAlias = "int | Unknown"


def wrap(value: int) -> int:
    """Return the 32-bit two's complement value with the same low bits.

    Examples
    --------
    >>> wrap(1 << 31)
    -2147483648
    """
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


@dataclass(frozen=True)
class Fault:
    """A fault; what is at fault at one place may be reported by any address below `end`."""

    code: FaultCode
    unit: int
    stream: int
    address: int
    end: int

    def covers(self, code: int, unit: int, stream: int, address: int) -> bool:
        """Tell whether hardware may report this fault so."""
        same = (self.code, self.unit, self.stream) == (code, unit, stream)
        return same and self.address <= address < self.end


class Stopped(Exception):
    """The first fault of a program, where faults are not collected."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


class UndefinedError(Exception):
    """The program relies on a value that is not defined."""


class TooLongError(Exception):
    """The program has more tokens than allowed."""


@dataclass(frozen=True)
class Response:
    """Memory that answers with an error: base address, bytes, and the fault it leads to."""

    base: int
    size_bytes: int
    code: FaultCode
