"""A compiled program: its nests (microcode, what is written into it at launch, callbacks), tables.

A program is pure data. `Nest.bind` makes the microcode of one launch of a part of it; `save` and
`load` keep it in one file (see `program_file`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES
from ember_hw.compiler.nest import Callback, Nest, Operand, Patch
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import ProgramError

if TYPE_CHECKING:
    from ember_hw.compiler.backend.execute_code import ExecuteCode

__all__ = [
    "OPT_LEVELS",
    "Argument",
    "Callback",
    "Extent",
    "JsonValue",
    "Nest",
    "Operand",
    "Patch",
    "Program",
]

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

#: An extent of scratch memory: a number, or a value of the program's host code by name.
Extent: TypeAlias = "int | str"

OPT_LEVELS = (0, 1, 2, 3)


@dataclass(frozen=True)
class Argument:
    """What the function takes: a symbol and its type, ``index`` or ``memref<?x?xf32>``.

    Parameters
    ----------
    symbol : str
        Its name.
    type : str
        As in the IR.
    role : str
        "argument": the caller or the program has it. "scratch": the host makes it for each run,
        and nothing comes back.
    shape : tuple of Extent
        Of scratch memory.
    """

    symbol: str
    type: str
    role: Literal["argument", "scratch"] = "argument"
    shape: tuple[Extent, ...] = ()

    @cached_property
    def is_memory(self) -> bool:
        """Whether it is a memref."""
        return self.type.startswith("memref<")

    @cached_property
    def extents(self) -> tuple[int | None, ...]:
        """Extents of a memref as far as the type states them, None for the others."""
        texts = self._memory[1].split("x")[:-1]
        return tuple(None if text == "?" else int(text) for text in texts)

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether an array of this shape is one of the memref's type."""
        extents = self.extents
        return len(shape) == len(extents) and all(
            extent in (None, found) for extent, found in zip(extents, shape, strict=True)
        )

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of a memref's elements on the host; `index` is int64.

        Raises
        ------
        ProgramError
            There is none.
        """
        element = self._memory[2]
        if element == "!ember.quantized":  # the bytes of its rows
            return np.dtype(np.uint8)
        if element not in ELEMENT_DTYPES:
            raise ProgramError(
                f"elements of argument {self.symbol!r} must be "
                f"{', '.join(ELEMENT_DTYPES)}, not {element!r}"
            )
        return ELEMENT_DTYPES[element]

    @cached_property
    def _memory(self) -> re.Match[str]:
        found = re.match(r"memref<((?:[?\d]+x)*)(!?[\w.]+)", self.type)
        assert found, f"a memref, not {self.type}"
        return found


@dataclass(frozen=True, eq=False)
class Program:
    """A compiled program.

    Parameters
    ----------
    name : str
        What reports call it.
    config : AcceleratorConfig
        The access unit it was compiled for.
    opt_level : int
        0 to 3.
    nests : tuple of Nest
        At least one; they run one after another, and each may read what those before it wrote.
    arguments : tuple of Argument
        What the function takes, in the order of the IR, then scratch memory.
    host_code : ExecuteCode, optional
        Its entry computes the extents of scratch memory before the first nest.
    ir : mapping of str to str
        IR text by level: scf, slc, slcvec, dlc, au.
    model : mapping of str to JSON value
        What the host has to know of the source: `kind`, which chooses the binding
        (`ember_hw.host.bindings`), and what that kind needs.
    tables : mapping of str to array
        Weights by symbol.
    seed : int, optional
        Seed the weights came from, where they came from one.
    versions : mapping of str to str
        Versions of the packages that compiled it.

    Raises
    ------
    ValueError
        A part contradicts another, for example a nest for another config.
    """

    name: str
    config: AcceleratorConfig
    opt_level: int
    nests: tuple[Nest, ...]
    arguments: tuple[Argument, ...] = ()
    host_code: ExecuteCode | None = None
    ir: Mapping[str, str] = field(default_factory=dict[str, str])
    model: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    tables: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if self.opt_level not in OPT_LEVELS:
            raise ValueError(f"opt_level must be 0, 1, 2 or 3, not {self.opt_level!r}")
        if not self.nests:
            raise ValueError(f"nests of program {self.name!r} must be at least 1, not 0")
        for nest in self.nests:
            if nest.microcode.config != self.config:
                raise ValueError(
                    f"microcode must be for config {self.config.name!r}, "
                    f"not {nest.microcode.config.name!r}"
                )
        symbols = [argument.symbol for argument in self.arguments]
        if len(set(symbols)) != len(symbols):
            raise ValueError(f"symbols of arguments must be distinct, not {symbols!r}")

    @property
    def placement(self) -> tuple[tuple[str, str, str], ...]:
        """Name of each nest, what runs its execute code ("host" or "fabric"), and why or how."""
        return tuple(
            (nest.name, nest.execute, nest.reason or (nest.fabric.operation if nest.fabric else ""))
            for nest in self.nests
        )

    @property
    def microcode_words(self) -> int:
        """Words of the microcode of all nests."""
        return sum(len(nest.microcode.encode()) for nest in self.nests)

    def save(self, path: str | Path) -> None:
        """Write the program to one file, which `load` reads."""
        from ember_hw.compiler import program_file

        program_file.save(self, path)

    @staticmethod
    def load(path: str | Path, config: AcceleratorConfig | None = None) -> Program:
        """Read a program from a file.

        Parameters
        ----------
        path : path-like
            What `save` wrote.
        config : AcceleratorConfig, optional
            The config of the device it shall run on.

        Raises
        ------
        ProgramError
            The file is damaged, was made for another ISA version, or for another config than the
            one given.
        """
        from ember_hw.compiler import program_file

        return program_file.load(path, config)
