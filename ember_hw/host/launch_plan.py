"""Launches, and the plan of all runs of one size: where arrays lie, and what a backend gets.

Nothing of a plan depends on the values of a run's arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.program import Callback, Nest, Program
from ember_hw.host.memory_layout import MemoryLayout, Region, ResidentArray
from ember_hw.host.result_region import ResultRegion, Runs, room_bytes
from ember_hw.isa import Microcode

__all__ = ["HELD_BYTES", "Launch", "LaunchPlan", "dimensions"]

#: Most bytes of a run's arrays that a plan keeps room for from run to run. Beyond it, copying the
#: arrays takes longer than planning.
HELD_BYTES = 1 << 16
#: What memory for results holds before they are written.
_UNWRITTEN = 0xA5


@dataclass(frozen=True, eq=False)
class Launch:
    """One run of a nest, as a backend gets it.

    Runs of one size may share a launch, what its regions hold being another run's each time: what a
    backend finds out of a launch holds whenever it gets the same one again.

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
    results : ResultRegion, optional
        Where its results go, if the unit writes them into memory; the microcode names it.
    """

    microcode: Microcode
    regions: tuple[Region, ...]
    callbacks: tuple[Callback, ...]
    arguments: tuple[int, ...] = ()
    nest: Nest | None = None
    host: Launch | None = None
    results: ResultRegion | None = None

    @property
    def memory(self) -> list[tuple[int, NDArray[np.uint8]]]:
        """Base and bytes of each region."""
        return [(region.base, region.data) for region in self.regions]

    @cached_property
    def words(self) -> list[int]:
        """Words of the microcode."""
        return self.microcode.encode()


class LaunchPlan:
    """Room for the arrays of a run in the device's memory, and its launches.

    Parameters
    ----------
    program : Program
        What runs.
    tables : mapping of str to ResidentArray
        Its tables, in the device's memory.
    stacks : mapping of str to sequence of str
        See `LoadedProgram`.
    environment : mapping of str to int
        Symbols of tables and stacks.
    layout : MemoryLayout
        Places what isn't a table.
    arrays : mapping of str to array
        Memref arguments by symbol, but stacks.
    scalars : mapping of str to int
        Index arguments by symbol.

    Attributes
    ----------
    environment : dict of str to int
        All symbols that a launch may read.
    can_hold : bool
        Whether runs after this one can take their arrays to where those of this one lie.

    Raises
    ------
    ProgramError
        The arrays don't fit the device's memory.
    """

    def __init__(
        self,
        program: Program,
        tables: Mapping[str, ResidentArray],
        stacks: Mapping[str, Sequence[str]],
        environment: Mapping[str, int],
        layout: MemoryLayout,
        arrays: Mapping[str, NDArray[Any]],
        scalars: Mapping[str, int],
    ) -> None:
        self._nests = program.nests
        self._stacks = stacks
        self._launches: dict[int, Launch] = {}
        self._writing: dict[int, Launch] = {}
        read = {symbol for nest in program.nests for symbol in nest.symbols_read}
        placed = {s: array for s, array in arrays.items() if s in read and s not in tables}
        self.can_hold = sum(array.nbytes for array in placed.values()) <= HELD_BYTES
        self._placed = {
            symbol: ResidentArray(layout, symbol, array, by_copy=self.can_hold)
            for symbol, array in placed.items()
        }
        self._residents = {**tables, **self._placed}
        self._results_address = layout.next_address
        self.environment = dict(scalars)
        for symbol, array in arrays.items():
            self.environment |= dimensions(symbol, array.shape)
        self.environment |= environment
        for resident in self._placed.values():
            self.environment |= resident.region.environment()

    def take(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take the arrays of another run of the same sizes to where those before lie."""
        for symbol, resident in self._placed.items():
            resident.take(arrays[symbol])

    def refresh(self, nest: Nest) -> None:
        """Bring what a nest reads up to date, after others wrote it."""
        for symbol in nest.symbols_read:
            if symbol in self._placed:
                self._placed[symbol].refresh()

    def launch(self, number: int) -> Launch:
        """Return the launch of a nest.

        Raises
        ------
        ProgramError
            A value doesn't fit its field.
        """
        if number not in self._launches:
            nest = self._nests[number]
            launch = self._bound(nest)
            if nest.fabric is not None:
                launch = replace(launch, host=self._bound(nest.fabric.host))
            self._launches[number] = launch
        return self._launches[number]

    def writing(self, number: int, runs: Runs) -> Launch:
        """Return the launch of a nest whose results go into memory, with room for them.

        The room is filled with a pattern: what isn't written doesn't look like a result.

        Parameters
        ----------
        number : int
            Of the nest.
        runs : tuple of (int, int)
            How many results, of how many bytes; see `result_runs`.

        Raises
        ------
        ProgramError
            The results end beyond the config's addresses.
        """
        launch = self._writing.get(number)
        if launch is None or launch.results is None or launch.results.runs != runs:
            launch = self._with_room(self.launch(number), runs)
            assert launch.results is not None
            if launch.results.region.num_bytes <= HELD_BYTES:
                self._writing[number] = launch
        assert launch.results is not None
        launch.results.region.data.fill(_UNWRITTEN)
        return launch

    def _with_room(self, launch: Launch, runs: Runs) -> Launch:
        """Return a launch with a region behind all others for its results."""
        layout = MemoryLayout(launch.microcode.config, self._results_address)
        num_bytes = room_bytes(runs, launch.microcode.config.bus_bytes)
        region = layout.reserve("results", num_bytes)
        fields = {("result", "base"): region.base, ("result", "region_bytes"): num_bytes}
        microcode = launch.microcode.with_fields(fields)
        return replace(launch, microcode=microcode, results=ResultRegion(region, runs))

    def _bound(self, nest: Nest) -> Launch:
        symbols = dict.fromkeys(
            member for symbol in nest.symbols_read for member in self._stacks.get(symbol, (symbol,))
        )
        return Launch(
            nest.bind(self.environment),
            tuple(self._residents[symbol].region for symbol in symbols),
            nest.callbacks,
            nest.request_arguments(self.environment),
            nest,
        )


def dimensions(symbol: str, shape: tuple[int, ...]) -> dict[str, int]:
    """Return the symbols of an array's extents: `tab.rows`, `tab.dim0`, `tab.dim1`, ..

    Those of an array in the device's memory are `Region.environment`; with more than two dimensions
    its `rows` are counted over all but the last.
    """
    named: Mapping[str, int] = {f"{symbol}.dim{k}": extent for k, extent in enumerate(shape)}
    return {f"{symbol}.rows": shape[0], **named} if shape else {}
