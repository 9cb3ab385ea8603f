"""A compiled program: its nests (microcode, what is written into it at launch, callbacks), tables.

A program is pure data. `Nest.bind` makes the microcode of one launch of a part of it; `save` and
`load` keep it in one file (see `program_file`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.backend.check_microcode import check_microcode
from ember_hw.config import VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.errors import ProgramError
from ember_hw.isa import Event, Microcode, layouts

if TYPE_CHECKING:
    from ember_hw.compiler.backend.execute_code import ExecuteCode

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

#: The values a program is launched with, by symbol. A memref argument "tab" has `tab` (byte address
#: of its region), `tab.bytes` and `tab.elements` (size of the region), `tab.rows` and `tab.pitch`
#: (distance of two rows in elements); an index argument "B" has its value.
Environment: TypeAlias = Mapping[str, int]

#: An extent of scratch memory: a number, or a value of the program's host code by name.
Extent: TypeAlias = "int | str"

OPT_LEVELS = (0, 1, 2, 3)

#: What the host holds a memref's elements in, by the name of their type.
ELEMENT_DTYPES = {
    "f32": "float32",
    "f64": "float64",
    "f16": "float16",
    "index": "int64",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
}


@dataclass(frozen=True)
class Patch:
    """A field that the launch fills in: ``field = scale * environment[symbol] + addend``.

    Parameters
    ----------
    record, field : str
        Where the value goes, as in `isa.layouts`.
    symbol : str
        Whose value it is.
    scale, addend : int
        What turns the symbol's unit into the field's, for example elements into bytes.
    """

    record: str
    field: str
    symbol: str
    scale: int = 1
    addend: int = 0

    def __str__(self) -> str:
        text = self.symbol if self.scale == 1 else f"{self.scale} * {self.symbol}"
        return f"{text} + {self.addend}" if self.addend else text


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

    @property
    def is_memory(self) -> bool:
        """Whether it is a memref."""
        return self.type.startswith("memref<")

    @property
    def extents(self) -> tuple[int | None, ...]:
        """Extents of a memref as far as the type states them, None for the others."""
        texts = self._memory[1].split("x")[:-1]
        return tuple(None if text == "?" else int(text) for text in texts)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of a memref's elements on the host; `index` is int64.

        Raises
        ------
        ProgramError
            There is none.
        """
        element = self._memory[2]
        if element not in ELEMENT_DTYPES:
            raise ProgramError(
                f"elements of argument {self.symbol!r} must be "
                f"{', '.join(ELEMENT_DTYPES)}, not {element!r}"
            )
        return np.dtype(ELEMENT_DTYPES[element])

    @property
    def _memory(self) -> re.Match[str]:
        found = re.match(r"memref<((?:[?\d]+x)*)(\w+)", self.type)
        assert found, f"a memref, not {self.type}"
        return found


@dataclass(frozen=True)
class Kernel:
    """A named execute-side kernel and its parameters."""

    name: str
    parameters: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])


@dataclass(frozen=True)
class Operand:
    """An operand of a callback: scalar `index` of the bundle, or row entry `index`.

    `dtype` is the element type of memory for loaded values and rows (``f32``, ``i8``, ..),
    ``index`` for values the access unit computes; `symbol` the memory, empty for the latter.
    """

    kind: Literal["scalar", "row"]
    index: int
    dtype: str
    symbol: str = field(default="", compare=False)


@dataclass(frozen=True)
class Callback:
    """Code of the execute side that one event of one level starts.

    Parameters
    ----------
    id : int
        Control token, 1 or more; 0 is the end of the program.
    level : int
        Traversal unit whose event it is, 0 outermost.
    event : Event
        Which of its events.
    operands : tuple of Operand
        In the order in which the callback takes them.
    kernel : Kernel, optional
        What runs; None in programs that were assembled from text.
    """

    id: int
    level: int
    event: Event
    operands: tuple[Operand, ...] = ()
    kernel: Kernel | None = None


@dataclass(frozen=True, eq=False)
class Nest:
    """One access program and the compute loop behind it.

    Parameters
    ----------
    name : str
        What messages call it.
    microcode : Microcode
        Its records; patched fields are 0.
    patches : tuple of Patch
        Fields that `bind` fills in.
    registers : mapping of str to int
        The ARGUMENT register that carries the value of each symbol that a request brings.
    callbacks : tuple of Callback
        Execute side, by id.
    code : ExecuteCode, optional
        What the callbacks do; None in programs that were assembled from text.

    Raises
    ------
    ValueError
        A part contradicts another, for example a patch of a field that does not exist.
    """

    name: str
    microcode: Microcode
    patches: tuple[Patch, ...] = ()
    registers: Mapping[str, int] = field(default_factory=dict[str, int])
    callbacks: tuple[Callback, ...] = ()
    code: ExecuteCode | None = None

    def __post_init__(self) -> None:
        config = self.microcode.config
        known = layouts(config)
        for patch in self.patches:
            fields = [f.name for f in known[patch.record].fields] if patch.record in known else []
            if patch.field not in fields:
                raise ValueError(
                    f"patch must name a field of the microcode, "
                    f"not {patch.field!r} of record {patch.record!r}"
                )
        registers = list(self.registers.values())
        if len(set(registers)) != len(registers):
            raise ValueError(f"registers of arguments must be distinct, not {registers!r}")
        for register in registers:
            if not 0 <= register < config.exports:
                raise ValueError(
                    f"register of an argument must be from 0 to {config.exports - 1}, "
                    f"not {register!r}"
                )
        for callback in self.callbacks:
            _check_callback(callback, config)
        ids = [callback.id for callback in self.callbacks]
        if len(set(ids)) != len(ids):
            raise ValueError(f"callback ids must be distinct, not {ids!r}")

    @property
    def symbols_read(self) -> tuple[str, ...]:
        """Symbols whose regions the access unit reads, in the order of the patches."""
        bases = (patch.symbol for patch in self.patches if patch.field == "base")
        return tuple(dict.fromkeys(bases))

    def bind(self, environment: Environment) -> Microcode:
        """Return the microcode of one launch.

        Parameters
        ----------
        environment : mapping of str to int
            A value for each symbol that `patches` names.

        Raises
        ------
        ProgramError
            A symbol is missing, a value does not fit its field, or the microcode that results
            breaks a rule of `check_microcode`, for example an unaligned table.
        """
        known = layouts(self.microcode.config)
        changes: dict[tuple[str, str], int] = {}
        for patch in self.patches:
            value = patch.scale * self._value(patch.symbol, environment) + patch.addend
            target = known[patch.record].field(patch.field)
            if not target.least <= value <= target.most:
                raise ProgramError(
                    f"{patch} must be from {target.least} to {target.most} "
                    f"(field {patch.field!r} of record {patch.record!r}, {target.width_bits} bits "
                    f"on config {self.microcode.config.name!r}), not {value!r}: "
                    f"symbol {patch.symbol!r} is {environment[patch.symbol]!r}"
                )
            changes[patch.record, patch.field] = value
        bound = self.microcode.with_fields(changes)
        check_microcode(bound)
        return bound

    def request_arguments(self, environment: Environment) -> tuple[int, ...]:
        """Return what the ARGUMENT registers hold for one request; 0 where none is used.

        Parameters
        ----------
        environment : mapping of str to int
            A value for each symbol that a register carries.

        Raises
        ------
        ProgramError
            A symbol is missing, or a value doesn't fit 32 bits, signed.
        """
        values = [0] * self.microcode.config.exports
        least, most = -(1 << (VALUE_WIDTH_BITS - 1)), (1 << (VALUE_WIDTH_BITS - 1)) - 1
        for symbol, register in self.registers.items():
            value = self._value(symbol, environment)
            if not least <= value <= most:
                raise ProgramError(
                    f"argument {symbol!r} of a request must be from {least} to {most}, "
                    f"not {value!r}"
                )
            values[register] = value
        return tuple(values)

    def _value(self, symbol: str, environment: Environment) -> int:
        if symbol not in environment:
            raise ProgramError(
                f"environment of nest {self.name!r} must hold symbol {symbol!r}, "
                f"not only {', '.join(sorted(environment)) or 'nothing'}"
            )
        return environment[symbol]


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


def _check_callback(callback: Callback, config: AcceleratorConfig) -> None:
    if callback.id < 1:
        raise ValueError(f"callback id must be 1 or more, not {callback.id!r}")
    if not 0 <= callback.level < config.traversal_units:
        raise ValueError(
            f"level of callback {callback.id} must be from 0 to {config.traversal_units - 1}, "
            f"not {callback.level!r}"
        )
    limits = {"scalar": config.bundle_scalars, "row": config.row_entries}
    for operand in callback.operands:
        if operand.kind not in limits:
            raise ValueError(
                f"operand kind of callback {callback.id} must be 'scalar' or 'row', "
                f"not {operand.kind!r}"
            )
        if not 0 <= operand.index < limits[operand.kind]:
            raise ValueError(
                f"{operand.kind} of callback {callback.id} must be "
                f"from 0 to {limits[operand.kind] - 1}, not {operand.index!r}"
            )
