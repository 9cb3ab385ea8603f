"""What a binding makes of a user's call, and what a binding is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

from ember_hw.compiler.program import Program
from ember_hw.host.memory_layout import Region


@dataclass(frozen=True, eq=False)
class Output:
    """What an array that the program writes is before the run.

    Attributes
    ----------
    shape : tuple of int
        Its shape.
    fill : number or array
        Its value: one for all elements, or an array of the shape, which is copied.
    """

    shape: tuple[int, ...]
    fill: float | NDArray[Any] = 0


@dataclass(frozen=True, eq=False)
class Request:
    """One run of a program, checked, in the form that every device takes.

    Attributes
    ----------
    arrays : mapping of str to array
        Memref arguments of the function by symbol, but tables and outputs; each of the dtype of its
        type, of any strides. Never written.
    scalars : mapping of str to int
        Its index arguments by symbol.
    outputs : mapping of str to Output
        Memref arguments that the program writes.
    lookups : int or None
        Lookups of the run, as the report calls them; None where the call doesn't tell.
    finish : callable
        Takes the outputs by symbol after the run and returns what the user gets.
    rows : mapping of str to int array (N,)
        Rows that the run reads of a table, where the binding knows them; all of the others.
    gathered : int, optional
        Iterations in sum that a nest must make of its outermost loop whose bounds come from memory,
        where there is one: the lookups of an embedding bag, the edges of a graph. With it, a lookup
        that gets lost on the way is an error. None where that isn't known.
    located : callable, optional
        Takes the regions of the program's tables by symbol and returns further arrays, which
        depend on where tables lie.
    """

    arrays: Mapping[str, NDArray[Any]]
    scalars: Mapping[str, int]
    outputs: Mapping[str, Output]
    lookups: int | None
    finish: Callable[[Mapping[str, NDArray[Any]]], Any]
    rows: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    gathered: int | None = None
    located: Callable[[Mapping[str, Region]], Mapping[str, NDArray[Any]]] | None = None


class Binding(Protocol):
    """How programs of one kind are called; a module of this package is one."""

    def check(self, program: Program) -> None:
        """Refuse a program whose tables aren't those of its model, before they are loaded.

        Raises
        ------
        ProgramError
            They aren't.
        """
        ...

    def request(self, program: Program, inputs: Any) -> Request:
        """Check a call and bring it into the one form; nothing here touches a device.

        Raises
        ------
        ProgramError
            The inputs aren't those that the program takes.
        TypeError, ValueError, IndexError
            They break a rule of the kind.
        """
        ...

    def reference(self, program: Program, inputs: Any) -> Any:
        """Return what `Device.run` must return, bit for bit, computed without microcode."""
        ...
