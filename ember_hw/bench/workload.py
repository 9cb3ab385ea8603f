"""A workload: a program of the access unit in `au` text with the arrays that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from ember_hw.compiler.backend.assemble import assemble_text
from ember_hw.config import AcceleratorConfig
from ember_hw.host.backends.requests import FeedLine
from ember_hw.host.launch import Launch
from ember_hw.host.memory_layout import MemoryLayout, Region


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What a unit is to do, and the least that it must move for it.

    Attributes
    ----------
    name : str
        What rows of results call it.
    text : str
        Program of the `au` dialect; its `target` is not looked at.
    arrays : mapping of str to array
        By symbol: vectors (N,) that memory streams read, tables (R, D) of rows.
    values : mapping of str to int
        Other arguments.
    index_bytes : int
        Bytes of all elements that memory streams read, each counted once.
    rows : uint8 (T, row_bytes), optional
        Bytes of every row in the order of the program, by NumPy alone. Given where all rows have
        one length; checked beside the microcode interpreter's.
    params : mapping of str to JSON values
        What a row of results says of it.
    """

    name: str
    text: str
    arrays: Mapping[str, NDArray[Any]]
    values: Mapping[str, int]
    index_bytes: int
    rows: NDArray[Any] | None = None
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def feed(self) -> Sequence[FeedLine]:
        """What the input queue brings, in order: nothing."""
        return ()

    @property
    def lines(self) -> Mapping[tuple[int, int], NDArray[Any]]:
        """The same by (unit, stream)."""
        return {}

    def launches(self, config: AcceleratorConfig, *, outstanding_reads: int = 0) -> list[Launch]:
        """Return the one launch; see `launch`."""
        return [self.launch(config, outstanding_reads=outstanding_reads)]

    def launch(self, config: AcceleratorConfig, *, outstanding_reads: int = 0) -> Launch:
        """Place the arrays and bind the program.

        Parameters
        ----------
        config : AcceleratorConfig
            The access unit.
        outstanding_reads : int
            Limit of row reads in flight that the microcode sets; 0 for all that the unit has.

        Raises
        ------
        AssemblyError
            The program doesn't fit the config.
        """
        layout = MemoryLayout(config)
        regions: list[Region] = []
        environment = dict(self.values)
        for symbol, array in self.arrays.items():
            place = layout.place_vector if array.ndim == 1 else layout.place_table
            regions.append(place(symbol, array))
            environment |= regions[-1].environment()
        assembly = assemble_text(self.text, config)
        nest = assembly.nest()
        microcode = nest.bind(environment)
        microcode = microcode.with_field("header", "outstanding_reads", outstanding_reads)
        arguments = nest.request_arguments(environment)
        return Launch(microcode, tuple(regions), assembly.callbacks, arguments)
