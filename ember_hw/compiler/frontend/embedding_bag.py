"""What the host must know of a `torch.nn.EmbeddingBag`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES, element_name
from ember_hw.compiler.frontend.row_types import RowTypes
from ember_hw.compiler.program import JsonValue
from ember_hw.compiler.quantized_rows import QuantizedTable, dequantize, quantize

#: Lookups of each bag of a checked call: empty bags first, in the middle and last; and its rows.
_CHECKED_LENGTHS, _CHECKED_ROWS = (0, 3, 0, 4, 1, 0), 7


@dataclass(frozen=True, eq=False)
class EmbeddingBagSpec:
    """What the host has to know of an imported bag.

    Attributes
    ----------
    name : str
        Name of the table in the model, like "user.weight".
    num_embeddings, embedding_dim : int
        Shape of the table.
    index_dtype : numpy.dtype
        int32 or int64: how the program reads `indices`. Offsets reach it as int64 row pointers.
    include_last_offset : bool
        Whether `offsets` ends with the end of the last bag; False with 2-D indices.
    input_names : tuple of str
        The model's inputs in the order of its `forward`.
    two_dimensional : bool
        Whether `indices` is (B, L) and there are no offsets.
    indices_name : str
        The input that holds the indices.
    offsets_name : str or None
        The input that holds the offsets; None with 2-D indices.
    weight : float32, float16 or bfloat16 (num_embeddings, embedding_dim), or QuantizedTable
        The table; the memory of the model's parameter where that is contiguous and on the CPU,
        otherwise a copy of the time of import.
    size_limits : tuple of (str, int, int, int or None)
        Input, dimension, smallest and largest size, where an `ExportedProgram` was exported for
        these sizes alone. Empty for a module.
    mode : str
        "sum", "mean" or "max".
    padding_idx : int or None
        The row that no bag pools.
    weights_name : str or None
        The input that holds a weight of each lookup; mode sum alone has it. Weights are of the
        table's dtype, as torch has them; of a quantised table float32.
    output : str or None
        Element type of the pooled rows; None for the table's, or f32 of a quantised one.
    """

    name: str
    num_embeddings: int
    embedding_dim: int
    index_dtype: np.dtype[Any]
    include_last_offset: bool
    input_names: tuple[str, ...]
    two_dimensional: bool
    indices_name: str
    offsets_name: str | None
    weight: NDArray[Any] | QuantizedTable = field(repr=False)
    size_limits: tuple[tuple[str, int, int, int | None], ...] = ()
    mode: str = "sum"
    padding_idx: int | None = None
    weights_name: str | None = None
    output: str | None = None

    @property
    def types(self) -> RowTypes:
        """Element types of rows, weights and pooled rows."""
        if isinstance(self.weight, QuantizedTable):
            return RowTypes(self.weight.format.name, output=self.output or "f32")
        rows = element_name(self.weight.dtype)
        return RowTypes(rows, rows, self.output or rows)

    @property
    def kind(self) -> str:
        """Name of the host's binding."""
        return "embedding_bag"

    def model(self) -> dict[str, JsonValue]:
        """Return what the host has to know, as JSON values."""
        return {
            "name": self.name,
            "num_embeddings": self.num_embeddings,
            "embedding_dim": self.embedding_dim,
            "index_dtype": self.index_dtype.name,
            "include_last_offset": self.include_last_offset,
            "two_dimensional": self.two_dimensional,
            "input_names": list(self.input_names),
            "indices_name": self.indices_name,
            "offsets_name": self.offsets_name,
            "weights_name": self.weights_name,
            "types": list(self.types),
            "mode": self.mode,
            "padding_idx": self.padding_idx,
            "size_limits": [list(limit) for limit in self.size_limits],
            "table_names": {"tab": self.name},
        }

    def tables(self) -> dict[str, NDArray[Any]]:
        """Return the table by its symbol; of a quantised one the bytes of its rows."""
        weight = self.weight
        return {"tab": weight.rows if isinstance(weight, QuantizedTable) else weight}

    def check_call(self, seed: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return a small call of the function, and what its rows must be in the program's order.

        A compilation that checks itself runs every level on it.
        """
        random = np.random.default_rng(seed)
        offsets = np.cumsum([0, *_CHECKED_LENGTHS])
        count = int(offsets[-1])
        indices = np.array([_CHECKED_ROWS - 1, *random.integers(0, _CHECKED_ROWS, count - 1)])
        shape = (_CHECKED_ROWS, self.embedding_dim)
        types = self.types
        table, numbers = self._checked_table(random.standard_normal(shape))
        weights = random.standard_normal(count).astype(ELEMENT_DTYPES[types.weights])
        start = -np.inf if self.mode == "max" else 0.0
        out = np.full((len(_CHECKED_LENGTHS), self.embedding_dim), start, np.float32)
        expected = np.zeros_like(out)
        for bag, length in enumerate(_CHECKED_LENGTHS):
            lookups = range(offsets[bag], offsets[bag + 1])
            rows = [numbers[indices[j]] for j in lookups]
            if self.weights_name is not None:
                factors = weights.astype(np.float32)
                rows = [factors[j] * row for j, row in zip(lookups, rows, strict=True)]
            for number, row in enumerate(rows):
                if self.mode == "max":
                    expected[bag] = np.maximum(expected[bag], row) if number else row
                else:
                    expected[bag] += row
            if self.mode == "mean":
                expected[bag] /= np.float32(max(length, 1))
        arguments: dict[str, Any] = {
            "off": offsets,
            "idx": indices.astype(self.index_dtype),
            **({"psw": weights} if self.weights_name is not None else {}),
            "tab": table,
            types.accumulator: out,
        }
        reference = {types.accumulator: expected}
        if types.accumulator != "out":
            reference["out"] = expected.astype(types.output_dtype())
            arguments["out"] = np.zeros_like(reference["out"])
        arguments["B"] = len(_CHECKED_LENGTHS)
        return arguments, reference

    def _checked_table(
        self, values: NDArray[np.float64]
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """Return a table of the spec's format as interpreters hold it, and its numbers."""
        if not isinstance(self.weight, QuantizedTable):
            table = values.astype(ELEMENT_DTYPES[self.types.rows])
            return table, table.astype(np.float32)
        weight = self.weight
        table = quantize(values.astype(np.float32), weight.codes, weight.scale_dtype)
        records = weight.format.to_records(table.rows)[:, : weight.embedding_dim]
        return records, dequantize(table)


def size_rule(smallest: int, largest: int | None) -> str:
    """Say which sizes are legal, to follow "must be".

    Examples
    --------
    >>> size_rule(7, 7), size_rule(0, 64), size_rule(5, None)
    ('7', 'in [0, 64]', 'at least 5')
    """
    if largest is None:
        return f"at least {smallest}"
    return str(largest) if smallest == largest else f"in [{smallest}, {largest}]"
