"""A compilation that checks itself: every level runs in the interpreters, for one answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ember_hw.compiler.backend.assemble import Assembly
from ember_hw.compiler.dialects.au import ProgramOp
from ember_hw.compiler.dialects.quantized import QuantizedType
from ember_hw.compiler.element_dtypes import is_float
from ember_hw.compiler.example import copied, find_example
from ember_hw.compiler.interpreters import Schedule, interpret
from ember_hw.compiler.interpreters.au import run_au
from ember_hw.compiler.interpreters.microcode_function import run_microcode
from ember_hw.compiler.interpreters.values import as_memref
from ember_hw.compiler.transforms.ir_facts import argument_symbols
from ember_hw.errors import CheckError

SEED = 0


class CheckedSpec(Protocol):
    """A spec whose function a compilation can check."""

    def tables(self) -> dict[str, NDArray[Any]]:
        """Return the weights by symbol."""
        ...


class LevelCheck:
    """
    What a function does to its arguments, for each level to do the same.

    Parameters
    ----------
    module : ModuleOp
        Verified scf with one function; it is run once, and not kept.
    arguments : mapping of str to object
        A value of each argument by symbol, in their order; copied for each run.
    reference : mapping of str to array, optional
        What arrays must hold in the end, by symbol; by default what scf leaves.
    tables : collection of str
        Symbols of arrays that are only read, and not copied.
    """

    def __init__(
        self,
        module: ModuleOp,
        arguments: Mapping[str, Any],
        reference: Mapping[str, NDArray[Any]] | None = None,
        tables: Collection[str] = (),
    ) -> None:
        (function,) = (op for op in module.ops if isinstance(op, FuncOp))
        self.function = function.sym_name.data
        self.arguments = dict(arguments)
        self._source = "scf" if reference is None else "the exact reference"
        self._tables = frozenset(tables)
        self.expected = self._copied()
        if reference is None:
            interpret(module, self.function, list(self.expected.values()))
        else:
            self.expected |= reference
            self.check("import", module)

    def check(self, name: str, module: ModuleOp) -> None:
        """
        Run the module as it is after a pass.

        Raises
        ------
        CheckError
            An argument ends up with other bits than it should, NaN aside.
        """
        found = self._copied()
        interpret(module, self.function, list(found.values()), schedule=Schedule.LOCKSTEP)
        self._compare(f"IR after {name!r}", found)

    def check_au(self, programs: Sequence[ProgramOp], module: ModuleOp) -> None:
        """
        Run access programs against the execute side of their dlc module.

        Raises
        ------
        CheckError
            As `check`.
        """
        found = self._copied()
        environment = dict(_environment(found))
        values = list(found.values())
        schedule = Schedule.LOCKSTEP
        run_au(programs, module, self.function, values, environment, schedule=schedule)
        self._compare("program of the access unit", found)

    def check_microcode(self, assemblies: Sequence[Assembly], module: ModuleOp) -> None:
        """
        Run microcode against the execute side of its dlc module.

        Raises
        ------
        CheckError
            As `check`.
        """
        found = self._copied()
        environment = dict(_environment(found))
        run_microcode(assemblies, module, self.function, list(found.values()), environment)
        self._compare("microcode", found)

    def _copied(self) -> dict[str, Any]:
        return copied(self.arguments, self._tables)

    def _compare(self, what: str, found: Mapping[str, Any]) -> None:
        for symbol, array in found.items():
            if not isinstance(array, np.ndarray) or symbol in self._tables:
                continue
            array = cast("NDArray[Any]", array)
            expected = self.expected[symbol]
            same = _same(expected, array)
            if not same.all():
                place = tuple(int(i) for i in np.argwhere(~same)[0])
                raise CheckError(
                    f"{what} must leave {expected[place]!r} at {place} of {symbol!r}, "
                    f"as {self._source} does, not {array[place]!r}"
                )


def check_of(
    spec: CheckedSpec, module: ModuleOp, example_inputs: Mapping[str, Any] | None = None
) -> LevelCheck:
    """
    Return the check of a module of scf.

    Parameters
    ----------
    spec : CheckedSpec
        If it has a method `check_call`, that returns arguments and reference as `LevelCheck` takes
        them, for a seed. If not, levels are held against scf.
    module : ModuleOp
        Verified scf with one function.
    example_inputs : mapping of str to object, optional
        Arguments but tables; by default a small request is looked for.

    Raises
    ------
    CompileError
        None was found.
    """
    call = getattr(spec, "check_call", None)
    if call is not None and example_inputs is None:
        arguments, reference = call(SEED)
        return LevelCheck(module, arguments, reference)
    tables = _as_held(spec.tables(), module)
    if example_inputs is None:
        return LevelCheck(module, find_example(module, tables, SEED), tables=tables)
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    given = {**example_inputs, **tables}
    arguments = {name: given[name] for name in argument_symbols(function).values()}
    return LevelCheck(module, arguments, tables=tables)


def _as_held(tables: Mapping[str, NDArray[Any]], module: ModuleOp) -> dict[str, NDArray[Any]]:
    """Return tables as interpreters hold them: bytes of quantised rows become records."""
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    found = dict(tables)
    for value, symbol in argument_symbols(function).items():
        type_ = as_memref(value.type)
        if symbol in found and type_ and isinstance(type_.element_type, QuantizedType):
            found[symbol] = type_.element_type.format.to_records(found[symbol])
    return found


def _environment(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the symbols of an access program: arguments, extents, the members of structs."""
    for symbol, value in arguments.items():
        if isinstance(value, tuple):
            members = cast("tuple[Any, ...]", value)
            yield from _environment({f"{symbol}.{k}": each for k, each in enumerate(members)})
            continue
        yield symbol, value
        if isinstance(value, np.ndarray):
            shape = cast("NDArray[Any]", value).shape
            yield f"{symbol}.rows", shape[0]
            yield from ((f"{symbol}.dim{k}", extent) for k, extent in enumerate(shape))


def _same(expected: NDArray[Any], found: NDArray[Any]) -> NDArray[np.bool_]:
    """Compare bits; NaN equals NaN."""
    if not is_float(expected.dtype):
        return np.asarray(expected == found)
    bits = np.dtype(f"u{expected.itemsize}")
    same = np.ascontiguousarray(expected).view(bits) == np.ascontiguousarray(found).view(bits)
    return np.asarray(same | (np.isnan(expected) & np.isnan(found)))
