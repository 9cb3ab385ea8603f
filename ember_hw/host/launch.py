"""From a program and a checked request to launches: what the device reads, and where.

Nothing here touches a device, and nothing knows what a program computes: that is the bindings' part
(`ember_hw.host.bindings`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.program import Argument, Extent, Program
from ember_hw.errors import ProgramError
from ember_hw.host.bindings import Request, binding_of
from ember_hw.host.host_code import run_host_code
from ember_hw.host.launch_plan import Launch, LaunchPlan
from ember_hw.host.memory_layout import MemoryLayout, ResidentArray, stack_environment
from ember_hw.host.result_region import result_runs

__all__ = ["Launch", "LoadedProgram", "PreparedRun"]

#: Plans of a program that are held, each for other sizes.
HELD_PLANS = 4


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
        turned = {
            symbol: count
            for nest in program.nests
            if nest.fabric is not None
            for symbol, count in nest.fabric.turned.items()
        }
        self._given = dict(program.tables)
        self.tables = {
            symbol: ResidentArray(self.layout, symbol, table, turned=turned.get(symbol, 0))
            for symbol, table in program.tables.items()
            if symbol in read
        }
        self.regions = {symbol: resident.region for symbol, resident in self.tables.items()}
        self.memory_arguments = [
            argument
            for argument in program.arguments
            if argument.is_memory and argument.symbol not in self.stacks
        ]
        self.index_symbols = [
            argument.symbol for argument in program.arguments if not argument.is_memory
        ]
        #: Symbols of the code of each nest, or of its host's part.
        self.execute_symbols: list[list[str]] = []
        for nest in program.nests:
            code = nest.code if nest.fabric is None else nest.fabric.host.code
            memories = () if code is None else code.memories
            self.execute_symbols.append([memory.symbol for memory in memories])
        self._environment = self._symbols()
        self._plans: dict[tuple[Any, ...], LaunchPlan] = {}

    def _symbols(self) -> dict[str, int]:
        """Return the symbols of tables and stacks that a launch may read."""
        environment: dict[str, int] = {}
        for argument in self.program.arguments:
            if argument.symbol in self.stacks:
                members = [self.regions[member] for member in self.stacks[argument.symbol]]
                environment |= stack_environment(argument.symbol, members, argument.dtype.itemsize)
        for region in self.regions.values():
            environment |= region.environment()
        return environment

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

    def plan(self, arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, int]) -> LaunchPlan:
        """Return the plan of a run of these sizes that has ended, or a new one.

        A plan is one run's at a time; `keep` gives it back.
        """
        plan = self._plans.pop(_sizes(arrays, scalars), None)
        if plan is not None:
            plan.take(arrays)
            return plan
        layout = MemoryLayout(self.program.config, self.layout.next_address)
        return LaunchPlan(
            self.program, self.tables, self.stacks, self._environment, layout, arrays, scalars
        )

    def keep(self, run: PreparedRun) -> None:
        """Keep the plan of a run that has ended for the next one of its sizes."""
        if run.plan.can_hold:
            self._plans[_sizes(run.arrays, run.scalars)] = run.plan
            if len(self._plans) > HELD_PLANS:
                del self._plans[next(iter(self._plans))]


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
    plan : LaunchPlan
        Of runs of these sizes; this one's until `LoadedProgram.keep`.
    """

    def __init__(self, loaded: LoadedProgram, request: Request) -> None:
        self.program = loaded.program
        self.request = request
        self._execute_symbols = loaded.execute_symbols
        self._given = request.arrays
        if request.located is not None:
            self._given = {**request.arrays, **request.located(loaded.regions)}
        for symbol in loaded.index_symbols:
            if symbol not in request.scalars:
                raise self._missing(symbol)
        self.scalars = request.scalars
        self.arrays: dict[str, NDArray[Any]] = {}
        self._host_values: dict[str, int] = {}
        for argument in loaded.memory_arguments:
            self.arrays[argument.symbol] = self._array(argument)
        self.plan = loaded.plan(self.arrays, self.scalars)
        for symbol, resident in loaded.tables.items():
            resident.refresh(request.rows.get(symbol))

    @property
    def outputs(self) -> dict[str, NDArray[Any]]:
        """The arrays that the program writes for the user, by symbol."""
        return {symbol: self.arrays[symbol] for symbol in self.request.outputs}

    def execute_arrays(self, number: int) -> dict[str, NDArray[Any]]:
        """Return what the code of a nest, or its host's part, reads and writes, C-contiguous."""
        symbols = self._execute_symbols[number]
        return {symbol: np.ascontiguousarray(self.arrays[symbol]) for symbol in symbols}

    def launch(self, number: int) -> Launch:
        """Bind a nest; memory is as the nests before it left it.

        Raises
        ------
        ProgramError
            A value doesn't fit its field, an array into which the reduce unit accumulates doesn't
            begin as its accumulator does, or memory has no room for the results.
        """
        nest = self.program.nests[number]
        if number:
            self.plan.refresh(nest)
        launch = self.plan.launch(number)
        if nest.fabric is not None:
            for symbol, value in nest.fabric.begins.items():
                _check_begin(nest.name, symbol, self.arrays[symbol], value)
            if self.program.config.results == "memory":
                return self.plan.writing(number, result_runs(launch, nest.fabric))
        return launch

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


def _sizes(
    arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, int]
) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Return what a plan depends on besides its program."""
    return tuple(array.shape for array in arrays.values()), tuple(scalars.values())
