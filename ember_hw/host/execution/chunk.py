"""What comes out of the access unit's two queues, and how bundles are taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.config import VALUE_WIDTH_BITS, AcceleratorConfig

__all__ = ["Chunk", "unpack_bundles"]


@dataclass(frozen=True)
class Chunk:
    """What came out of both queues since the last chunk; the cut between chunks may fall anywhere.

    A backend may reuse the arrays for its next chunk.

    Attributes
    ----------
    events, scalars : uint32 (N,), uint32 (N, S)
        Event bits of each bundle, numbered as `isa.event_bit` says, and its scalars.
    row_beats : uint8 (T, bus_bytes)
        Beats of rows. A row starts a beat; what follows its end in its last beat is unspecified.
    row_last : bool or uint8 (T,)
        Whether each beat ends its row.
    row_cycles : uint64 (T,), optional
        Cycle in which each beat was handed over.
    """

    events: NDArray[np.uint32]
    scalars: NDArray[np.uint32]
    row_beats: NDArray[np.uint8]
    row_last: NDArray[Any]
    row_cycles: NDArray[np.uint64] | None = None


def unpack_bundles(
    bundles: NDArray[np.uint8], config: AcceleratorConfig
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Take bundles apart as they come from the control queue.

    Parameters
    ----------
    bundles : uint8 (N, bundle_bytes)
        Event bits lowest, then the scalars without a gap, little-endian.
    config : AcceleratorConfig
        Gives their number.

    Returns
    -------
    events : uint32 (N,)
        Event bits.
    scalars : uint32 (N, bundle_scalars)
        Scalars.
    """
    count, width = bundles.shape[0], config.bundle_bytes + 8
    # One row to spare: NumPy refuses a view into an empty buffer, and a chunk may have no bundle.
    padded = np.zeros((count + 1, width), np.uint8)
    padded[:count, : config.bundle_bytes] = bundles

    def bits(first: int, number: int) -> NDArray[np.uint32]:
        words = np.ndarray((count,), "<u8", padded, first // 8, (width,))
        kept = (words >> np.uint64(first % 8)) & np.uint64((1 << number) - 1)
        return kept.astype(np.uint32)

    scalars = np.empty((count, config.bundle_scalars), np.uint32)
    for i in range(config.bundle_scalars):
        scalars[:, i] = bits(config.events + VALUE_WIDTH_BITS * i, VALUE_WIDTH_BITS)
    return bits(0, config.events), scalars
