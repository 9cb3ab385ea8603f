"""The host's part of a launch whose rows go through a reduce unit: results in place of rows.

Bundles don't leave such hardware. The host walks the loops that its part needs once more, in the
microcode interpreter and without a row, and finds in it the bundles that results belong to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.compiler.nest import Nest, ResultRow
from ember_hw.host.execution.chunk import Chunk
from ember_hw.host.execution.queues import RowEntry
from ember_hw.host.execution.side import ExecuteSide
from ember_hw.isa import Microcode

__all__ = ["ResultSide"]


class ResultSide(ExecuteSide):
    """Runs the host's part of one launch; see `ExecuteSide`.

    Parameters
    ----------
    nest : Nest
        The host's part.
    arrays, scalars, engine
        As for `ExecuteSide`.
    microcode : Microcode
        Of the part, bound.
    results : sequence of ResultRow
        Which of its rows are results.
    length_bytes : int, optional
        Bytes of a result; None where a value tells them.
    regions : sequence of (int, uint8 array)
        Base and bytes of the memory that the loops read.
    arguments : sequence of int
        Of the request.
    """

    def __init__(
        self,
        nest: Nest,
        arrays: Mapping[str, NDArray[Any]],
        scalars: Mapping[str, int],
        engine: Literal["auto", "c", "numpy"] = "auto",
        *,
        microcode: Microcode,
        results: Sequence[ResultRow],
        length_bytes: int | None,
        regions: Sequence[tuple[int, NDArray[np.uint8]]],
        arguments: Sequence[int],
    ) -> None:
        entries = [
            RowEntry(result.entry, result.events, length_bytes, False, result.length_scalar)
            for result in results
        ]
        super().__init__(nest, arrays, scalars, engine, microcode=microcode, entries=entries)
        config = microcode.config
        self._no_rows = np.empty((0, config.bus_bytes), np.uint8), np.empty(0, np.bool_)
        self._no_bundles = {
            "events": np.empty(0, np.uint32),
            "scalars": np.empty((0, config.bundle_scalars), np.uint32),
        }
        self._walk = _bundles(microcode, regions, arguments)
        self._came = 0

    def consume(self, chunk: Chunk) -> None:
        """Run what the results that have come allow.

        Raises
        ------
        DeviceError
            As for `ExecuteSide`, or the walk over the loops finds a fault.
        """
        self._came += int(np.count_nonzero(chunk.row_last))
        super().consume(replace(chunk, **self._no_bundles))
        while self.rows < self._came and self._go_on():
            pass

    def finish(self) -> None:
        """Run what needs no result, then the code's end.

        Raises
        ------
        DeviceError
            As for `consume`; or there are more or fewer results than the loops ask for.
        """
        while self._go_on():
            pass
        super().finish()

    def _go_on(self) -> bool:
        """Run the next bundles of the walk; return whether there were any."""
        bundles = next(self._walk, None)
        if bundles is not None:
            super().consume(Chunk(*bundles, *self._no_rows))
        return bundles is not None


def _bundles(
    microcode: Microcode,
    regions: Sequence[tuple[int, NDArray[np.uint8]]],
    arguments: Sequence[int],
) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
    for chunk in execute(microcode, regions, requests=[arguments]):
        yield chunk.events, chunk.scalars
