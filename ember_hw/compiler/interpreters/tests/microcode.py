"""Running microcode to the end or to its fault, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.interpreters.microcode import NO_LINES, Machine
from ember_hw.errors import DeviceError
from ember_hw.isa import Microcode

Records = dict[str, dict[str, int]]
Regions = list[tuple[int, NDArray[np.uint8]]]

#: Memory of the tests: numbers, numbers of 64 bits, a table of so many rows of 64 bytes.
DATA, DATA_BYTES, WIDE, TABLE, ROWS = 0x1000, 512, 0x2000, 0x8000, 8


def collect(
    microcode: Microcode,
    regions: Regions,
    *,
    requests: Sequence[Sequence[int]] = ((),),
    lines: Mapping[tuple[int, int], NDArray[np.uint8]] = NO_LINES,
    **options: Any,
) -> tuple[list[tuple[int, tuple[int, ...]]], list[bytes], DeviceError | None]:
    """Return all bundles and rows, and the fault that ended the run.

    The machine has run before, on memory of zeros: nothing of a run may be left for the next one.
    """
    bundles: list[tuple[int, tuple[int, ...]]] = []
    rows: list[bytes] = []
    part = b""
    try:
        machine = Machine(microcode, regions, **options)
        contents = [content.copy() for _, content in regions]
        for _, content in regions:
            content[...] = 0
        with suppress(DeviceError):
            for _ in machine.run(requests, lines):
                pass
        for (_, content), kept in zip(regions, contents, strict=True):
            content[...] = kept
        for chunk in machine.run(requests, lines):
            assert chunk.events.dtype == chunk.scalars.dtype == np.uint32
            assert chunk.row_beats.shape == (len(chunk.row_last), microcode.config.bus_bytes)
            for events, scalars in zip(chunk.events, chunk.scalars, strict=True):
                bundles.append((int(events), tuple(int(scalar) for scalar in scalars)))
            beats = zip(chunk.row_beats, chunk.row_last, chunk.row_keep, strict=True)
            for beat, last, keep in beats:
                assert not beat[keep:].any()
                part += beat[:keep].tobytes()
                if last:
                    rows.append(part)
                    part = b""
            assert not part, "a row must end within its chunk"
    except DeviceError as error:
        return bundles, rows, error
    return bundles, rows, None
