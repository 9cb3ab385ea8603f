"""Rows in the NumPy engine: those of the batch, and kept ones from earlier batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.backend.execute_code import row_element
from ember_hw.compiler.quantized_rows import FORMATS, RowFormat
from ember_hw.host.execution.numpy_operations import DTYPES
from ember_hw.host.execution.queues import Batch

__all__ = ["Rows", "RowsOfType"]


class Rows:
    """Rows by number, of each element type; -1 - v is the row that variable v has kept.

    Parameters
    ----------
    batch : Batch
        Its rows.
    kept : mapping of int to array (n,)
        Rows that variables hold from before, by variable; each of its variable's dtype.
    types : mapping of str to str
        Type of each name of the code.
    """

    def __init__(
        self, batch: Batch, kept: Mapping[int, NDArray[Any]], types: Mapping[str, str]
    ) -> None:
        self._batch, self._kept, self._types = batch, kept, types
        self._typed: dict[str, RowsOfType] = {}

    def named(self, name: str) -> RowsOfType:
        """Return the rows with elements as those of a name of the code."""
        return self.typed(self._types[name])

    def typed(self, type_: str) -> RowsOfType:
        """Return the rows as those of a type, ``row<f32>``."""
        if type_ not in self._typed:
            element = row_element(type_)
            if element in FORMATS:
                self._typed[type_] = QuantizedRows(self._batch, FORMATS[element])
            else:
                self._typed[type_] = RowsOfType(self._batch, self._kept, DTYPES[element])
        return self._typed[type_]

    def is_set(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether each number is a row."""
        missing = [-1 - v for v in set((-1 - numbers[numbers < 0]).tolist()) if v not in self._kept]
        return ~np.isin(numbers, missing)


class RowsOfType:
    """Elements of rows by the row's number.

    Parameters
    ----------
    batch : Batch
        Its rows.
    kept : mapping of int to array (n,)
        As in `Rows`.
    dtype : dtype
        Of the elements; asked for are rows of this dtype only.
    """

    def __init__(
        self, batch: Batch, kept: Mapping[int, NDArray[Any]], dtype: np.dtype[Any]
    ) -> None:
        self._kept = kept
        self._flat: NDArray[Any] = batch.beats.reshape(-1).view(dtype)
        size = self._flat.itemsize
        self._starts, self._lengths = batch.starts // size, batch.sizes // size
        self._places: dict[int, int] = {}
        pitches = np.diff(self._starts, append=self._flat.size)
        is_even = pitches.size > 0 and bool(np.all(pitches == pitches[0]))
        self._even: NDArray[Any] | None = None
        if is_even:
            self._even = self._flat.reshape(pitches.size, -1)

    def lengths(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the elements of each row; 0 of a kept row that was never set."""
        places = self._locate(numbers)
        return self._lengths[places]

    def elements(self, numbers: NDArray[np.int64], indices: Any) -> NDArray[Any]:
        """Return an element, or an array of elements a row: indices that broadcast to (M, ..)."""
        places = self._locate(numbers)
        starts = self._starts[places]
        if np.ndim(indices) == 2:
            starts = starts[:, None]
        return self._flat[starts + indices]

    def block(self, numbers: NDArray[np.int64], first: int, count: int, step: int) -> NDArray[Any]:
        """Return the same elements of each row, (M, count)."""
        last = first + count * step
        if self._even is not None and not bool(np.any(numbers < 0)) and last <= self._even.shape[1]:
            is_all = numbers.size == len(self._even) and bool(
                np.array_equal(numbers, np.arange(numbers.size))
            )
            even = self._even if is_all else self._even[numbers]
            return even[:, first:last:step]
        return self.elements(numbers, first + np.arange(count)[None, :] * step)

    def copy(self, number: int) -> NDArray[Any]:
        """Return a row of its own, which outlives the batch."""
        start = self._starts[number]
        return self._flat[start : start + self._lengths[number]].copy()

    def _locate(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where in `starts` each row stands, kept rows behind the others."""
        negative = numbers < 0
        if not bool(negative.any()):
            return numbers
        places = numbers.copy()
        for variable in set((-1 - numbers[negative]).tolist()):
            if variable not in self._places:
                row = self._kept.get(variable, np.zeros(0, self._flat.dtype))
                self._places[variable] = self._starts.size
                self._starts = np.append(self._starts, self._flat.size)
                self._lengths = np.append(self._lengths, row.size)
                self._flat = np.concatenate((self._flat, row))
            places[numbers == -1 - variable] = self._places[variable]
        return places


class QuantizedRows(RowsOfType):
    """Numbers of quantised rows by the row's number; no variable keeps one.

    Parameters
    ----------
    batch : Batch
        Its rows.
    form : RowFormat
        How they lie in the queue.
    """

    def __init__(self, batch: Batch, form: RowFormat) -> None:
        super().__init__(batch, {}, np.dtype(np.uint8))
        self._form = form
        self._code_bytes = self._lengths - form.extra_bytes
        self._lengths = self._code_bytes * form.codes_per_byte

    def elements(self, numbers: NDArray[np.int64], indices: Any) -> NDArray[Any]:
        """Return an element, or an array of elements a row: indices that broadcast to (M, ..)."""
        form, starts = self._form, self._starts[numbers]
        ends = (starts + self._code_bytes[numbers])[:, None] + np.arange(form.extra_bytes)
        scale, bias = form.scales(self._flat[ends])
        if np.ndim(indices) == 2:
            starts, scale, bias = starts[:, None], scale[:, None], bias[:, None]
        packed = self._flat[starts + indices // form.codes_per_byte]
        if form.codes_per_byte == 2:
            packed = np.where(indices % 2 == 0, packed & 15, packed >> 4)
        with np.errstate(over="ignore", invalid="ignore"):
            product = scale * packed.astype(np.float32)
            return product + bias

    def block(self, numbers: NDArray[np.int64], first: int, count: int, step: int) -> NDArray[Any]:
        """Return the same elements of each row, (M, count)."""
        return self.elements(numbers, first + np.arange(count)[None, :] * step)
