"""One nest of a program: microcode, what a launch writes into it, and what its events start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from ember_hw.compiler.backend.check_microcode import check_microcode
from ember_hw.config import VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.errors import ProgramError
from ember_hw.isa import Event, Field, Microcode, layouts

if TYPE_CHECKING:
    from ember_hw.compiler.backend.execute_code import ExecuteCode

__all__ = [
    "Callback",
    "Environment",
    "FabricPart",
    "Nest",
    "Operand",
    "Patch",
    "ResultRow",
    "replay_config",
]

#: The values a program is launched with, by symbol. A memref argument "tab" has `tab` (byte address
#: of its region), `tab.bytes` and `tab.elements` (size of the region), `tab.rows` and `tab.pitch`
#: (distance of two rows in elements); an index argument "B" has its value.
Environment: TypeAlias = Mapping[str, int]


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
    """

    id: int
    level: int
    event: Event
    operands: tuple[Operand, ...] = ()


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
    fabric : FabricPart, optional
        With a reduce unit in the config: what that does of the code, and what is left to the host.
    reason : str
        Why the host runs the code, if it does and somebody asked: a clause that ends a sentence.

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
    fabric: FabricPart | None = None
    reason: str = ""

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
    def execute(self) -> Literal["host", "fabric"]:
        """Where the execute code runs: rows that only pass the fabric are the host's."""
        return "fabric" if self.fabric is not None and self.fabric.operation != "rows" else "host"

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
        values: list[int] = []
        for patch, target in self._targets:
            value = patch.scale * self._value(patch.symbol, environment) + patch.addend
            if not target.least <= value <= target.most:
                raise ProgramError(
                    f"{patch} must be from {target.least} to {target.most} "
                    f"(field {patch.field!r} of record {patch.record!r}, {target.width_bits} bits "
                    f"on config {self.microcode.config.name!r}), not {value!r}: "
                    f"symbol {patch.symbol!r} is {environment[patch.symbol]!r}"
                )
            values.append(value)
        latest = self._latest
        if latest and latest[0][0] == values:
            return latest[0][1]
        places = ((patch.record, patch.field) for patch in self.patches)
        bound = self.microcode.with_fields(dict(zip(places, values, strict=True)))
        check_microcode(bound)
        latest[:] = [(values, bound)]
        return bound

    @cached_property
    def _targets(self) -> tuple[tuple[Patch, Field], ...]:
        """Patches with the fields that they fill in."""
        known = layouts(self.microcode.config)
        return tuple((patch, known[patch.record].field(patch.field)) for patch in self.patches)

    @cached_property
    def _latest(self) -> list[tuple[list[int], Microcode]]:
        """The latest binding: values of the patches, and what came of them."""
        return []

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


@dataclass(frozen=True)
class ResultRow:
    """A row of the host's part that is a result of the reduce unit.

    Parameters
    ----------
    entry : int
        Number by which the host's callbacks call it.
    events : int
        With any of these events of the host's bundles comes one.
    length_scalar : int, optional
        Scalar of the host's bundle that tells its bytes, where a value does.
    """

    entry: int
    events: int
    length_scalar: int | None = None


@dataclass(frozen=True, eq=False)
class FabricPart:
    """What the reduce unit does of a nest's execute code, and what is left to the host.

    The nest's microcode has the unit's records. For each result that leaves, the host's part has an
    event: it walks the loops outside of the pooled one, and runs the rest of the code, to which
    results are rows.

    Parameters
    ----------
    operation : str
        What the unit makes of rows: "sum", "maximum" (or "weighted" ones), "copy", "sum across" the
        columns of rows; or "rows": they pass as they are, and the host runs all of the code.
    host : Nest
        The host's part, for `replay_config`.
    results : tuple of ResultRow
        In the order in which those of one bundle come.
    begins : mapping of str to float
        What each array that is accumulated into must hold before the nest, all over.
    turned : mapping of str to int
        Tables whose rows the unit wants turned: so many of their last bytes, scale and bias, first.
    """

    operation: str
    host: Nest
    results: tuple[ResultRow, ...]
    begins: Mapping[str, float] = field(default_factory=dict[str, float])
    turned: Mapping[str, int] = field(default_factory=dict[str, int])


def replay_config(config: AcceleratorConfig) -> AcceleratorConfig:
    """Return what the host's walk over the loops of a program is made for.

    It is no hardware, and has as many streams and exports as any unit can have.
    """
    return config.with_changes(
        name=f"{config.name}, host",
        execute="queues",
        reduce_lanes=0,
        int8_rows=0,
        reduce_dot=0,
        results="stream",
        input_queue=0,
        streams_per_unit=8,
        exports=16,
        bundle_scalars=8,
    )


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
