"""Element types of a pooled or plain lookup, and what of them a caller may choose."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES, FLOAT_NAMES, element_name
from ember_hw.compiler.quantized_rows import FORMATS

__all__ = ["RowTypes", "output_name", "rows_title"]


class RowTypes(NamedTuple):
    """Element types of a lookup, by their names in the IR.

    Attributes
    ----------
    rows : str
        Of the table: f32, f16, bf16, or a format of quantised rows.
    weights : str
        Of the weights of lookups.
    output : str
        Of the rows that come back. What is computed is computed in f32, and rounded to it once.
    """

    rows: str = "f32"
    weights: str = "f32"
    output: str = "f32"

    @property
    def accumulator(self) -> str:
        """Symbol of the matrix in which rows are accumulated."""
        return "out" if self.output == "f32" else "acc"

    @property
    def is_quantized(self) -> bool:
        """Whether rows are codes with a scale and a bias."""
        return self.rows in FORMATS

    def table_dtype(self) -> np.dtype[Any]:
        """Return the dtype that the table is held in: bytes, where rows are quantised."""
        return np.dtype(np.uint8) if self.is_quantized else ELEMENT_DTYPES[self.rows]

    def table_shape(self, num_embeddings: int, embedding_dim: int) -> tuple[int, int]:
        """Return the shape of the array that the table is held in."""
        if self.is_quantized:
            return num_embeddings, FORMATS[self.rows].row_bytes(embedding_dim)
        return num_embeddings, embedding_dim

    def elements(self, width: int) -> int:
        """Return the elements of a row whose array is so wide; of an odd D in int4 one more."""
        return FORMATS[self.rows].elements(width) if self.is_quantized else width

    def output_dtype(self) -> np.dtype[Any]:
        """Return the dtype of the rows that come back."""
        return ELEMENT_DTYPES[self.output]


def rows_title(rows: str) -> str:
    """Return how messages call the rows of a table, by their name in the IR.

    Examples
    --------
    >>> rows_title("f16"), rows_title("q8f32")
    ('float16', 'int8 with scales of float32')
    """
    if rows in FORMATS:
        form = FORMATS[rows]
        return f"int{form.bits} with scales of {form.scale.name}"
    return str(ELEMENT_DTYPES[rows].name)


def output_name(dtype: Any) -> str:
    """Return the element type of an output dtype that a caller names.

    Parameters
    ----------
    dtype : str, torch.dtype or NumPy dtype
        float32, float16 or bfloat16.

    Raises
    ------
    ValueError
        It is another one.

    Examples
    --------
    >>> output_name("bfloat16"), output_name(np.float16)
    ('bf16', 'f16')
    """
    name = str(dtype).removeprefix("torch.")
    if name not in FLOAT_NAMES:
        try:
            return element_name(np.dtype(dtype))
        except (TypeError, KeyError):
            legal = ", ".join(FLOAT_NAMES)
            raise ValueError(f"output_dtype must be one of {legal}, not {dtype!r}") from None
    return FLOAT_NAMES[name]
