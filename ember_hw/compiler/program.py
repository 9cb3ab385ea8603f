"""A compiled program: microcode, what is written into it at launch, callbacks, tables.

A program is pure data. `Program.bind` makes the microcode of one launch of it; `save` and `load`
keep it in one file (see `program_file`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

from ember_hw.compiler.backend.check_microcode import check_microcode
from ember_hw.config import VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.errors import ProgramError
from ember_hw.isa import Event, Microcode, layouts

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

#: The values a program is launched with, by symbol. A memref argument "tab" has `tab` (byte address
#: of its region), `tab.bytes` and `tab.elements` (size of the region), `tab.rows` and `tab.pitch`
#: (distance of two rows in elements); an index argument "B" has its value.
Environment: TypeAlias = Mapping[str, int]

OPT_LEVELS = (0, 1, 2, 3)


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
    """What the host provides: a symbol and its type, ``index`` or ``memref<?x?xf32>``.

    `register` is the ARGUMENT register that carries the value with each request; None if the launch
    writes it into the microcode, or nothing reads it.
    """

    symbol: str
    type: str
    register: int | None = None


@dataclass(frozen=True)
class Kernel:
    """A named execute-side kernel and its parameters."""

    name: str
    parameters: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])


@dataclass(frozen=True)
class Operand:
    """An operand of a callback: scalar `index` of the bundle, or row entry `index`.

    `dtype` is the element type of memory for loaded values and rows (``f32``, ``i8``, ..),
    ``index`` for values the access unit computes.
    """

    kind: Literal["scalar", "row"]
    index: int
    dtype: str


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
    microcode : Microcode
        Its records; patched fields are 0.
    patches : tuple of Patch
        Fields that `bind` fills in.
    arguments : tuple of Argument
        What the host provides, in the order of the IR.
    callbacks : tuple of Callback
        Execute side, by id.
    ir : mapping of str to str
        IR text by level: scf, slc, slcvec, dlc, au.
    model : mapping of str to JSON value
        The source module: num_embeddings, embedding_dim, names of its inputs, ..
    tables : mapping of str to array
        Weights by symbol.
    seed : int, optional
        Seed the weights came from, where they came from one.
    versions : mapping of str to str
        Versions of the packages that compiled it.

    Raises
    ------
    ValueError
        A part contradicts another, for example a patch of a field that does not exist.
    """

    name: str
    config: AcceleratorConfig
    opt_level: int
    microcode: Microcode
    patches: tuple[Patch, ...] = ()
    arguments: tuple[Argument, ...] = ()
    callbacks: tuple[Callback, ...] = ()
    ir: Mapping[str, str] = field(default_factory=dict[str, str])
    model: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    tables: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if self.opt_level not in OPT_LEVELS:
            raise ValueError(f"opt_level must be 0, 1, 2 or 3, not {self.opt_level!r}")
        if self.microcode.config != self.config:
            raise ValueError(
                f"microcode must be for config {self.config.name!r}, "
                f"not {self.microcode.config.name!r}"
            )
        known = layouts(self.config)
        for patch in self.patches:
            fields = [f.name for f in known[patch.record].fields] if patch.record in known else []
            if patch.field not in fields:
                raise ValueError(
                    f"patch must name a field of the microcode, "
                    f"not {patch.field!r} of record {patch.record!r}"
                )
        registers = [a.register for a in self.arguments if a.register is not None]
        if len(set(registers)) != len(registers):
            raise ValueError(f"registers of arguments must be distinct, not {registers!r}")
        for register in registers:
            if not 0 <= register < self.config.exports:
                raise ValueError(
                    f"register of an argument must be from 0 to {self.config.exports - 1}, "
                    f"not {register!r}"
                )
        for callback in self.callbacks:
            _check_callback(callback, self.config)
        ids = [callback.id for callback in self.callbacks]
        if len(set(ids)) != len(ids):
            raise ValueError(f"callback ids must be distinct, not {ids!r}")

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
        known = layouts(self.config)
        changes: dict[tuple[str, str], int] = {}
        for patch in self.patches:
            value = patch.scale * self._value(patch.symbol, environment) + patch.addend
            target = known[patch.record].field(patch.field)
            if not target.least <= value <= target.most:
                raise ProgramError(
                    f"{patch} must be from {target.least} to {target.most} "
                    f"(field {patch.field!r} of record {patch.record!r}, {target.width_bits} bits "
                    f"on config {self.config.name!r}), not {value!r}: "
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
        values = [0] * self.config.exports
        least, most = -(1 << (VALUE_WIDTH_BITS - 1)), (1 << (VALUE_WIDTH_BITS - 1)) - 1
        for argument in self.arguments:
            if argument.register is None:
                continue
            value = self._value(argument.symbol, environment)
            if not least <= value <= most:
                raise ProgramError(
                    f"argument {argument.symbol!r} of a request must be from {least} to {most}, "
                    f"not {value!r}"
                )
            values[argument.register] = value
        return tuple(values)

    def _value(self, symbol: str, environment: Environment) -> int:
        if symbol not in environment:
            raise ProgramError(
                f"environment of program {self.name!r} must hold symbol {symbol!r}, "
                f"not only {', '.join(sorted(environment)) or 'nothing'}"
            )
        return environment[symbol]

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
