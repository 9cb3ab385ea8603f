"""Sums across rows in NumPy, bit for bit: what `isa.dot` means, for one result or for many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ember_hw.isa.dot import Chain, Fold, Place

__all__ = ["negative", "places_in_use", "sums_across"]

#: fp32 numbers, (.., D), or what is left of them.
Numbers: TypeAlias = "NDArray[np.float32]"

_SIGN = np.uint32(0x80000000)


def places_in_use(header: Mapping[str, int]) -> tuple[Place, ...]:
    """Return the places that must have a row when a result leaves."""
    joined = [place for place in (Place.SECOND, Place.THIRD) if header[place.name.lower()]]
    return (Place.FIRST, *joined)


def negative(rows: Numbers) -> Numbers:
    """Return rows with the other signs; a NaN keeps its other bits."""
    return (rows.view(np.uint32) ^ _SIGN).view(np.float32)


def sums_across(header: Mapping[str, int], rows: Mapping[Place, Numbers]) -> Numbers:
    """Return results, fp32 (.., 1), for the rows of each place in use, (.., D) each.

    Sums go from column 0 on. A NaN is any.

    Examples
    --------
    >>> header = {"fold": Fold.ABSOLUTE, "second": Chain.ADD, "third": Chain.NONE}
    >>> pairs = np.array([[[1, -2], [3, 1]], [[0, 4], [-5, 1]]], np.float32)
    >>> sums_across(header, {Place.FIRST: pairs[0], Place.SECOND: pairs[1]}).tolist()
    [[3.0], [4.0]]
    """
    numbers = rows[Place.FIRST]
    with np.errstate(all="ignore"):
        for place in places_in_use(header)[1:]:
            numbers = _joined(Chain(header[place.name.lower()]), numbers, rows[place])
        match Fold(header["fold"]):
            case Fold.ABSOLUTE:
                numbers = np.abs(numbers)
            case Fold.SQUARE:
                numbers = numbers * numbers
            case _:
                pass
        zeros = np.zeros((*numbers.shape[:-1], 1), np.float32)
        # Accumulation is sequential by definition, which a sum in NumPy isn't.
        return np.add.accumulate(np.concatenate((zeros, numbers), -1), -1)[..., -1:]


def _joined(chain: Chain, numbers: Numbers, others: Numbers) -> Numbers:
    return numbers + others if chain is Chain.ADD else numbers * others
