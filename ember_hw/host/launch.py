"""From a program and a checked request to launches: what the device reads, and where.

Nothing here touches a device, and nothing knows what a program computes: that is the bindings' part
(`ember_hw.host.bindings`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.program import Argument, Callback, Extent, Nest, Program
from ember_hw.errors import ProgramError
from ember_hw.host.bindings import Request, binding_of
from ember_hw.host.host_code import run_host_code
from ember_hw.host.memory_layout import MemoryLayout, Region, ResidentArray, stack_environment
from ember_hw.isa import Microcode


@dataclass(frozen=True)
class Launch:
    """One run of a nest, as a backend gets it.

    Attributes
    ----------
    microcode : Microcode
        Bound.
    regions : tuple of Region
        Memory of the device; no two overlap.
    callbacks : tuple of Callback
        What the bundles will be used for.
    arguments : tuple of int
        What the request carries, see `Nest.request_arguments`; those left out are 0.
    nest : Nest, optional
        What was bound; its code runs the callbacks.
    host : Launch, optional
        What the host does of it, where a reduce unit takes the rows: its part of the nest, bound,
        with the memory that its walk over the loops reads.
    """

    microcode: Microcode
    regions: tuple[Region, ...]
    callbacks: tuple[Callback, ...]
    arguments: tuple[int, ...] = ()
    nest: Nest | None = None
    host: Launch | None = None

    @property
    def memory(self) -> list[tuple[int, NDArray[np.uint8]]]:
        """Base and bytes of each region."""
        return [(region.base, region.data) for region in self.regions]


class LoadedProgram:
    """A program whose tables lie in the device's memory.

    Parameters
    ----------
    program : Program
        Its tables are passed by pointer or copied, see `memory_layout`. ``model["stacks"]``, where
        there is one, says which memref arguments are stacks: one memory in which tables lie, of
        which each is a region of its own.

    Raises
    ------
    ProgramError
        A table isn't the one its model describes, or the memory is too small for it.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.binding = binding_of(program)
        self.binding.check(program)
        self.layout = MemoryLayout(program.config)
        read = {symbol for nest in program.nests for symbol in nest.symbols_read}
        stacks: Any = program.model.get("stacks", {})
        self.stacks: dict[str, list[str]] = {
            symbol: list(members) for symbol, members in stacks.items()
        }
        read.update(member for members in self.stacks.values() for member in members)
        self._given = dict(program.tables)
        self.tables = {
            symbol: ResidentArray(self.layout, symbol, table)
            for symbol, table in program.tables.items()
            if symbol in read
        }

    def is_current(self) -> bool:
        """Whether the program still has the tables that were loaded."""
        return self._given.keys() == self.program.tables.keys() and all(
            table is self.program.tables[symbol] for symbol, table in self._given.items()
        )

    def prepare(self, request: Request) -> PreparedRun:
        """Place a request's arrays behind the tables.

        Raises
        ------
        ProgramError
            The program has an argument that the request doesn't bring, or the request doesn't fit.
        """
        return PreparedRun(self, request)

    def launches(self, request: Request) -> list[Launch]:
        """Return a launch of each nest, memory being as it is before the first."""
        run = self.prepare(request)
        return [run.launch(number) for number in range(len(self.program.nests))]


class PreparedRun:
    """One run: every array of it, on the host and in the device's memory.

    Parameters
    ----------
    loaded : LoadedProgram
        The program.
    request : Request
        Of its binding.

    Attributes
    ----------
    arrays : dict of str to array
        Memref arguments by symbol, C-contiguous but for tables.
    scalars : mapping of str to int
        Index arguments by symbol.
    environment : dict of str to int
        All symbols that a launch may read.
    """

    def __init__(self, loaded: LoadedProgram, request: Request) -> None:
        self.program = loaded.program
        self.request = request
        self.scalars = request.scalars
        self.environment: dict[str, int] = dict(request.scalars)
        self.arrays: dict[str, NDArray[Any]] = {}
        self._tables = loaded.tables
        self._stacks = loaded.stacks
        regions = {symbol: resident.region for symbol, resident in loaded.tables.items()}
        self._given = {**request.arrays, **(request.located(regions) if request.located else {})}
        self._placed: dict[str, ResidentArray] = {}
        self._host_values: dict[str, int] = {}
        layout = MemoryLayout(self.program.config, loaded.layout.next_address)
        read = {symbol for nest in self.program.nests for symbol in nest.symbols_read}
        for argument in self.program.arguments:
            if not argument.is_memory:
                if argument.symbol not in self.scalars:
                    raise self._missing(argument.symbol)
                continue
            if argument.symbol in self._stacks:
                members = [regions[member] for member in self._stacks[argument.symbol]]
                self.environment |= stack_environment(
                    argument.symbol, members, argument.dtype.itemsize
                )
                continue
            array = self._array(argument)
            self.arrays[argument.symbol] = array
            self.environment |= dimensions(argument.symbol, array.shape)
            if argument.symbol in read and argument.symbol not in self._tables:
                self._placed[argument.symbol] = ResidentArray(layout, argument.symbol, array)
        for resident in (self._tables | self._placed).values():
            self.environment |= resident.region.environment()
        for symbol, resident in self._tables.items():
            resident.refresh(request.rows.get(symbol))

    @property
    def outputs(self) -> dict[str, NDArray[Any]]:
        """The arrays that the program writes for the user, by symbol."""
        return {symbol: self.arrays[symbol] for symbol in self.request.outputs}

    def execute_arrays(self, number: int) -> dict[str, NDArray[Any]]:
        """Return what the code of a nest, or its host's part, reads and writes, C-contiguous."""
        nest = self.program.nests[number]
        code = nest.code if nest.fabric is None else nest.fabric.host.code
        symbols = [memory.symbol for memory in code.memories] if code is not None else []
        return {symbol: np.ascontiguousarray(self.arrays[symbol]) for symbol in symbols}

    def launch(self, number: int) -> Launch:
        """Bind a nest; memory is as the nests before it left it.

        Raises
        ------
        ProgramError
            A value doesn't fit its field, or an array into which the reduce unit accumulates
            doesn't begin as its accumulator does.
        """
        nest = self.program.nests[number]
        for symbol in nest.symbols_read:
            if number and symbol in self._placed:
                self._placed[symbol].refresh()
        launch = self._bound(nest)
        if nest.fabric is None:
            return launch
        for symbol, value in nest.fabric.begins.items():
            _check_begin(nest.name, symbol, self.arrays[symbol], value)
        return replace(launch, host=self._bound(nest.fabric.host))

    def _bound(self, nest: Nest) -> Launch:
        residents = self._tables | self._placed
        symbols = dict.fromkeys(
            member for symbol in nest.symbols_read for member in self._stacks.get(symbol, (symbol,))
        )
        return Launch(
            nest.bind(self.environment),
            tuple(residents[symbol].region for symbol in symbols),
            nest.callbacks,
            nest.request_arguments(self.environment),
            nest,
        )

    def _array(self, argument: Argument) -> NDArray[Any]:
        """Return an argument's array: given, a table, an output or scratch memory."""
        symbol, request = argument.symbol, self.request
        if symbol in self._given:
            return np.ascontiguousarray(self._given[symbol])
        if symbol in self.program.tables:
            return self.program.tables[symbol]  # of any strides, see `execute_arrays`
        if symbol in request.outputs:
            output = request.outputs[symbol]
            made = np.empty(output.shape, argument.dtype)
            made[...] = output.fill
            return made
        if argument.role == "scratch":
            return np.empty([self._extent(extent) for extent in argument.shape], argument.dtype)
        raise self._missing(symbol)

    def _extent(self, extent: Extent) -> int:
        """Return an extent of scratch memory; scratch follows the arguments that it depends on."""
        if isinstance(extent, int):
            return extent
        code = self.program.host_code
        if code is None:
            raise ProgramError(
                f"host code of program {self.program.name!r} must define {extent!r}, and it has "
                "none"
            )
        if not self._host_values:
            self._host_values = run_host_code(code, self.arrays, self.scalars)
        return self._host_values[extent]

    def _missing(self, symbol: str) -> ProgramError:
        request = self.request
        given = [*self._given, *self.program.tables, *request.outputs, *request.scalars]
        return ProgramError(
            f"argument of program {self.program.name!r} must be one of {', '.join(given)}, which "
            f"its binding brings, not {symbol!r}"
        )


def _check_begin(nest: str, symbol: str, array: NDArray[Any], value: float) -> None:
    """Refuse an array unless it holds a value all over, bit for bit."""
    wanted = np.array([value], array.dtype)
    bits = array.reshape(-1).view(np.uint8).reshape(-1, array.dtype.itemsize)
    differs = (bits != wanted.view(np.uint8)).any(axis=1)
    if differs.any():
        found = array.reshape(-1)[int(differs.argmax())]
        raise ProgramError(
            f"array {symbol!r} must begin as {value:+g} all over, as the reduce unit's accumulator "
            f"does for nest {nest!r}, not with {found:+g}; compile with execute='host'"
        )


def dimensions(symbol: str, shape: tuple[int, ...]) -> dict[str, int]:
    """Return the symbols of an array's extents: `tab.rows`, `tab.dim0`, `tab.dim1`, ..

    Those of an array in the device's memory are `Region.environment`; with more than two dimensions
    its `rows` are counted over all but the last.
    """
    named: Mapping[str, int] = {f"{symbol}.dim{k}": extent for k, extent in enumerate(shape)}
    return {f"{symbol}.rows": shape[0], **named} if shape else {}
