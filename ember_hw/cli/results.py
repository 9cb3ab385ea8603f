"""What commands say of results."""

from __future__ import annotations

from typing import Any

from ember_hw.host.reference import bit_equal


def differing_rows(found: Any, expected: Any) -> tuple[int, int]:
    """Return how many rows of a result differ in any bit from what they must be, and of how many.

    Parameters
    ----------
    found, expected : array or tuple of arrays
        Of the same shapes; an array of one dimension has rows of one element.

    Examples
    --------
    >>> import numpy as np
    >>> differing_rows((np.zeros((2, 3)), np.arange(4)), (np.zeros((2, 3)), np.zeros(4, np.int64)))
    (3, 6)
    """
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    differing = rows = 0
    for array, wanted in pairs:
        rows += len(array)
        differing += sum(not bit_equal(a, b) for a, b in zip(array, wanted, strict=True))
    return differing, rows
