# pyright: basic
"""What tables are stored as, what rows come back as, and the ways to say so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ember_hw.compiler.element_dtypes import FLOAT_NAMES, tensor_array
from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.operation_spec import OperationSpec, Source
from ember_hw.compiler.frontend.tables import TablesSpec
from ember_hw.compiler.quantized_rows import QuantizedTable, dequantize, quantize
from ember_hw.host.device import Device
from ember_hw.host.program_cache import program_of
from ember_hw.host.reference import exact
from ember_hw.host.request import normalise_request
from ember_hw.nn import (
    Embedding,
    EmbeddingBag,
    EmbeddingBagCollection,
    QuantizedEmbedding,
    QuantizedEmbeddingBag,
    functional,
)

ROWS, COLUMNS = 9, 5  # an odd number, for codes of 4 bits
INDICES = torch.tensor([1, 2, 8, 5, 4, 3, 2, 0])
OFFSETS = torch.tensor([0, 3, 3])


@dataclass(frozen=True)
class Stored:
    """What a table is stored as: a dtype of floats, or codes and the dtype of their scales."""

    name: str
    scale_dtype: str | None = None

    def __str__(self) -> str:
        return self.name if self.scale_dtype is None else f"{self.name}-{self.scale_dtype}"

    def table(self, columns: int = COLUMNS) -> Any:
        """Build a table: a tensor, or a QuantizedTable."""
        torch.manual_seed(columns)
        weight = torch.randn(ROWS, columns)
        if self.scale_dtype is None:
            return weight.to(getattr(torch, self.name))
        return quantize(weight, self.name, self.scale_dtype)


STORED = [
    *(Stored(name) for name in FLOAT_NAMES),
    *(Stored(codes, scale) for codes in ("int8", "int4") for scale in ("float32", "float16")),
]
#: None is what comes without a word: the table's own, float32 of a quantised one.
OUTPUTS = (None, *FLOAT_NAMES)


def numbers(table: Any) -> np.ndarray:
    """Return a table as what it stands for."""
    return dequantize(table) if isinstance(table, QuantizedTable) else tensor_array(table)


def output_of(table: Any, output: str | None) -> np.dtype:
    """Return the dtype in which rows must come back."""
    if output is None:
        return np.dtype(np.float32) if isinstance(table, QuantizedTable) else numbers(table).dtype
    return tensor_array(torch.empty(0, dtype=getattr(torch, output))).dtype


def pooled(table: Any, output: str | None) -> np.ndarray:
    """Return what the bags of `INDICES` and `OFFSETS` must be: sums in float32, rounded once."""
    request = normalise_request(INDICES, OFFSETS, num_embeddings=ROWS)
    return exact(numbers(table), request, "sum", output_of(table, output))


def looked_up(table: Any, output: str | None) -> np.ndarray:
    """Return what the rows of `INDICES` must be."""
    rows = numbers(table)[INDICES.numpy()]
    dtype = output_of(table, output)
    return rows if rows.dtype == dtype else rows.astype(np.float32).astype(dtype)


def _dtype(output: str | None) -> torch.dtype | None:
    return None if output is None else getattr(torch, output)


def _module_bag(table: Any, output: str | None, device: Device) -> Any:
    if isinstance(table, QuantizedTable):
        wanted = _dtype(output) or torch.float32
        return QuantizedEmbeddingBag(table, "sum", output_dtype=wanted, device=device)
    return EmbeddingBag(
        ROWS, table.shape[1], mode="sum", _weight=table, device=device, output_dtype=_dtype(output)
    )


def _spec(table: Any, output: str | None, number: int) -> EmbeddingBagSpec:
    weight = table if isinstance(table, QuantizedTable) else tensor_array(table)
    return EmbeddingBagSpec(
        name=f"table{number}",
        num_embeddings=ROWS,
        embedding_dim=weight.shape[1],
        index_dtype=np.dtype(np.int64),
        include_last_offset=False,
        input_names=("indices", "offsets"),
        two_dimensional=False,
        indices_name="indices",
        offsets_name="offsets",
        weight=weight,
        output=None if output is None else FLOAT_NAMES[output],
    )


Pairs = Iterator[tuple[Any, np.ndarray]]


def run_bag(stored: Stored, output: str | None, device: Device) -> Pairs:
    """Run the program of a bag."""
    table = stored.table()
    program = program_of(_spec(table, output, 0), 3, device.config)
    yield device.run(program, (INDICES, OFFSETS)), pooled(table, output)


def run_bags(stored: Stored, output: str | None, device: Device) -> Pairs:
    """Run the program of several bags."""
    tables = [stored.table(columns) for columns in (COLUMNS, 16, 3)]
    bags = tuple(_spec(table, output, number) for number, table in enumerate(tables))
    spec = TablesSpec(bags, ("tab0", "tab1", "tab2"), ("indices", "offsets"))
    found = device.run(program_of(spec, 3, device.config), (INDICES, OFFSETS))
    yield from zip(found, [pooled(table, output) for table in tables], strict=True)


def run_embedding(stored: Stored, output: str | None, device: Device) -> Pairs:
    """Run the program of an embedding."""
    table = stored.table()
    weight = table if isinstance(table, QuantizedTable) else tensor_array(table)
    spec = OperationSpec(
        kind="embedding",
        name="table",
        facts={
            "index_dtype": "int64",
            "output": None if output is None else FLOAT_NAMES[output],
        },
        input_names=("indices",),
        sources={"indices": Source("indices")},
        weights={"weight": ("table", weight)},
    )
    yield device.run(program_of(spec, 3, device.config), (INDICES,)), looked_up(table, output)


def module_bag(stored: Stored, output: str | None, device: Device) -> Pairs:
    """Call the module of a bag."""
    table = stored.table()
    yield _module_bag(table, output, device)(INDICES, OFFSETS), pooled(table, output)


def module_embedding(stored: Stored, output: str | None, device: Device) -> Pairs:
    """Call the module of an embedding."""
    table = stored.table()
    if isinstance(table, QuantizedTable):
        wanted = _dtype(output) or torch.float32
        module: Any = QuantizedEmbedding(table, output_dtype=wanted, device=device)
    else:
        module = Embedding(ROWS, COLUMNS, _weight=table, device=device, output_dtype=_dtype(output))
    yield module(INDICES), looked_up(table, output)


def collection(stored: Stored, output: str | None, device: Device) -> Pairs:
    """Call a collection of three bags."""
    tables = {name: stored.table(columns) for name, columns in zip("abc", (5, 16, 3), strict=True)}
    if stored.scale_dtype is None:
        bags = {n: torch.nn.EmbeddingBag.from_pretrained(t, mode="sum") for n, t in tables.items()}
    else:
        bags = {n: QuantizedEmbeddingBag(t, "sum") for n, t in tables.items()}
    ours = EmbeddingBagCollection.from_torch(bags, device=device, output_dtype=_dtype(output))
    found = ours(dict.fromkeys(tables, (INDICES, OFFSETS)))
    assert [str(group) for group in ours.groups] == ["one program: a, b, c"]
    # A collection without a word leaves a quantised bag the dtype that it has.
    yield from ((found[name], pooled(table, output)) for name, table in tables.items())


def function_bag(stored: Stored, output: str | None, device: Device) -> Pairs:
    """Call the function of a bag."""
    table = stored.table()
    found = functional.embedding_bag(
        INDICES, table, OFFSETS, mode="sum", device=device, output_dtype=_dtype(output)
    )
    yield found, pooled(table, output)


def function_embedding(stored: Stored, output: str | None, device: Device) -> Pairs:
    """Call the function of an embedding."""
    table = stored.table()
    found = functional.embedding(INDICES, table, device=device, output_dtype=_dtype(output))
    yield found, looked_up(table, output)


class Graph(torch.nn.Module):
    """Bags and an embedding in quantised tables, in a graph of torch."""

    def __init__(self, stored: Stored, device: Device) -> None:
        super().__init__()
        self.bags = torch.nn.ModuleList(
            _module_bag(stored.table(columns), None, device) for columns in (COLUMNS, 16)
        )
        self.narrow = _module_bag(stored.table(), "bfloat16", device)
        self.rows = QuantizedEmbedding(stored.table(), output_dtype=torch.float16, device=device)

    def forward(self, indices: torch.Tensor, offsets: torch.Tensor) -> Any:
        pooled = [bag(indices, offsets) for bag in self.bags]
        return *pooled, self.narrow(indices, offsets), self.rows(indices)


def graph_answer(stored: Stored) -> list[np.ndarray]:
    """Return what a `Graph` must give."""
    return [
        *(pooled(stored.table(columns), None) for columns in (COLUMNS, 16)),
        pooled(stored.table(), "bfloat16"),
        looked_up(stored.table(), "float16"),
    ]


#: By name: the calls of a stored table and an output dtype, with what must come of them.
CALLS: dict[str, Callable[[Stored, str | None, Device], Pairs]] = {
    "device.run of a bag": run_bag,
    "device.run of bags": run_bags,
    "device.run of an embedding": run_embedding,
    "EmbeddingBag": module_bag,
    "Embedding": module_embedding,
    "EmbeddingBagCollection": collection,
    "functional.embedding_bag": function_bag,
    "functional.embedding": function_embedding,
}
