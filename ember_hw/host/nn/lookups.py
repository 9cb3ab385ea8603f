# pyright: reportUnknownMemberType=false
# Not all types of torch are known.
"""From checked calls to rows on a device: programs by shape class, tables that are never stale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from ember_hw.compiler.backend.row_length import longest_rows
from ember_hw.compiler.element_dtypes import (
    ELEMENT_DTYPES,
    FLOAT_NAMES,
    tensor_array,
    tensor_of,
)
from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.operation_spec import OperationSpec, Source
from ember_hw.compiler.frontend.row_types import output_name
from ember_hw.compiler.frontend.tables import MERGED_LEVELS, TablesSpec
from ember_hw.compiler.program import OPT_LEVELS, Program
from ember_hw.compiler.quantized_rows import QuantizedTable
from ember_hw.errors import UnsupportedError
from ember_hw.host.arrays import IndexArray
from ember_hw.host.device import Device
from ember_hw.host.nn.devices import default_device
from ember_hw.host.program_cache import program_of
from ember_hw.host.request import LookupRequest

__all__ = ["BagCall", "Lookups", "Table", "check_weight", "dtype_of"]

Tensor = torch.Tensor
Table: TypeAlias = torch.Tensor | QuantizedTable


@dataclass(frozen=True, eq=False)
class BagCall:
    """A checked call of one embedding bag.

    Attributes
    ----------
    name : str
        How messages call the table.
    weight : tensor, float32, float16 or bfloat16 (num_embeddings, D), or QuantizedTable
        The table.
    lookup : LookupRequest
        Its bags, without lookups of `padding_idx`.
    mode : str
        "sum", "mean" or "max".
    output_dtype : torch.dtype, optional
        Of the pooled rows; the table's if absent, float32 of a quantised one.
    """

    name: str
    weight: Table
    lookup: LookupRequest
    mode: str
    output_dtype: torch.dtype | None = None

    @property
    def shape_class(self) -> tuple[Any, ...]:
        """What a program depends on, besides the columns of the table."""
        lookup = self.lookup
        return (
            self.mode,
            lookup.indices.dtype,
            lookup.weights is not None,
            _rows_of(self.weight),
            self.output_dtype,
        )


def check_weight(weight: Any, name: str) -> None:
    """Refuse a table that isn't a dense matrix of floats with data, and no quantised one.

    Raises
    ------
    TypeError
        It is no dense tensor.
    ValueError
        It doesn't have 2 dimensions.
    UnsupportedError
        Its dtype is another.
    """
    if isinstance(weight, QuantizedTable):
        return
    if not isinstance(weight, torch.Tensor):
        raise TypeError(f"{name} must be a torch tensor, not {type(weight).__name__}")
    if weight.layout != torch.strided or weight.is_nested or weight.is_meta:
        what = "nested" if weight.is_nested else "meta" if weight.is_meta else weight.layout
        raise TypeError(f"{name} must be a dense tensor with data, not a {what} tensor")
    if weight.ndim != 2:
        raise ValueError(f"{name} must have 2 dimensions, not {weight.ndim}")
    dtype = str(weight.dtype).removeprefix("torch.")
    if dtype not in FLOAT_NAMES:
        raise UnsupportedError(
            f"{name} must be of dtype {', '.join(FLOAT_NAMES)}, not {dtype}; convert the module "
            "with .float()"
        )


def dtype_of(weight: Table) -> np.dtype[Any]:
    """Return the dtype of the weights of lookups in a table: its own, of a quantised one float32.

    That of bfloat16 is that of ml_dtypes.
    """
    if isinstance(weight, QuantizedTable):
        return ELEMENT_DTYPES["f32"]
    return ELEMENT_DTYPES[FLOAT_NAMES[str(weight.dtype).removeprefix("torch.")]]


@dataclass(frozen=True, eq=False)
class _Held:
    """A program, and where its tables lie."""

    program: Program
    places: tuple[tuple[Any, ...], ...]


class Lookups:
    """Runs the lookups of one module.

    Parameters
    ----------
    device : Device, optional
        The default device if absent, whichever that is at the time of a call.
    opt_level : int
        0 to 3.

    Attributes
    ----------
    refused : dict of tuple to str
        Kinds of bags that can't be one program on a device, with the reason.

    Raises
    ------
    ValueError
        There is no such opt level.

    Notes
    -----
    A table that is dense memory of the CPU, of any strides, is read where it is, so that the next
    call sees every change of it. A tensor elsewhere is copied when its version counter has changed;
    writes through ``.data`` don't count there.
    """

    def __init__(self, device: Device | None = None, opt_level: int = 3) -> None:
        if opt_level not in OPT_LEVELS:
            raise ValueError(f"opt_level must be 0, 1, 2 or 3, not {opt_level!r}")
        self._device = device
        self.opt_level = opt_level
        self.refused: dict[tuple[Any, ...], str] = {}
        self._held: dict[tuple[Any, ...], _Held] = {}

    @property
    def device(self) -> Device:
        """Where the lookups run."""
        return self._device if self._device is not None else default_device()

    def __deepcopy__(self, memo: dict[int, Any]) -> Lookups:
        """Return lookups of other tables on the same device."""
        return Lookups(self._device, self.opt_level)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the device behind: what is read from a file runs on the default device."""
        return Lookups, (None, self.opt_level)

    def unload(self) -> None:
        """Let the device forget the tables."""
        for (device, *_), held in self._held.items():
            device.unload(held.program)
        self._held.clear()

    def reload(self, rows: Any) -> None:
        """Bring rows of the one table in again; see `Device.reload`.

        Raises
        ------
        TypeError, IndexError
            Rows are no integers, or no rows of the table.
        """
        for (device, *_), held in self._held.items():
            changed = None if rows is None else dict.fromkeys(held.program.tables, rows)
            device.reload(held.program, changed)

    def pool(self, call: BagCall) -> Tensor:
        """Return the pooled rows of one bag, (B, D) of the output dtype."""
        program = self._program(
            (self.device, "bag", *call.shape_class),
            (call.weight,),
            lambda tables: _bag_spec(call, tables[0]),
        )
        return _tensor(self.device.run(program, [call.lookup]), call.weight)

    def program_together(self, calls: Sequence[BagCall]) -> Program:
        """Return one program for bags of one shape class.

        Raises
        ------
        UnsupportedError, AssemblyError
            They can't be one program on the device.
        """
        distinct = list({id(call.weight): call.weight for call in calls}.values())
        numbers = {id(weight): number for number, weight in enumerate(distinct)}
        places = tuple(numbers[id(call.weight)] for call in calls)
        names = tuple(call.name for call in calls)
        self._check_together(calls)

        def spec(tables: Sequence[NDArray[Any] | QuantizedTable]) -> TablesSpec:
            bags = [_bag_spec(c, tables[place]) for c, place in zip(calls, places, strict=True)]
            return TablesSpec(tuple(bags), tuple(f"tab{place}" for place in places), ())

        key = self.device, "bags", *calls[0].shape_class, places, names
        return self._program(key, distinct, spec)

    def run_together(self, program: Program, calls: Sequence[BagCall]) -> list[Tensor]:
        """Return the pooled rows of bags from one run of `program_together`."""
        results = self.device.run(program, [call.lookup for call in calls])
        return [_tensor(rows, call.weight) for rows, call in zip(results, calls, strict=True)]

    def rows(
        self,
        name: str,
        weight: Table,
        indices: IndexArray,
        output_dtype: torch.dtype | None = None,
    ) -> Tensor:
        """Return the row of each index, (.., D) of the output dtype.

        Raises
        ------
        ValueError, IndexError
            There are too many indices, or one is outside the table.
        """
        dtype = indices.dtype.name
        output = None if output_dtype is None else output_name(output_dtype)
        program = self._program(
            (self.device, "rows", dtype, _rows_of(weight), output),
            (weight,),
            lambda tables: OperationSpec(
                kind="embedding",
                name=name,
                facts={"index_dtype": dtype, "output": output},
                input_names=("indices",),
                sources={"indices": Source("indices")},
                weights={"weight": (name, tables[0])},
            ),
        )
        return _tensor(self.device.run(program, (indices,)), weight)

    def _check_together(self, calls: Sequence[BagCall]) -> None:
        """Refuse what no program for many tables can hold, whatever their number."""
        if self.opt_level not in MERGED_LEVELS:
            raise UnsupportedError(
                f"opt_level must be 2 or 3 for {len(calls)} bags in one program, not "
                f"{self.opt_level}"
            )
        first = calls[0].weight
        is_packed = isinstance(first, QuantizedTable)
        size = 1 if is_packed else first.element_size()
        longest = longest_rows(self.device.config, size)[self.opt_level]
        if is_packed:
            longest = first.format.elements(longest)
        for call in calls:
            columns = call.weight.shape[1]
            if not 1 <= columns <= longest:
                raise UnsupportedError(
                    f"embedding_dim of table {call.name!r} must be in [1, {longest}] at opt_level "
                    f"{self.opt_level} on config {self.device.config.name!r}, not {columns}"
                )

    def _program(
        self,
        key: tuple[Any, ...],
        weights: Sequence[Table],
        spec: Callable[[Sequence[NDArray[Any] | QuantizedTable]], Any],
    ) -> Program:
        """Return the program of a shape class with these tables, as they are now."""
        places = tuple(_place(weight) for weight in weights)
        held = self._held.get(key)
        if held is None or held.places != places:
            if held is not None:
                self.device.unload(held.program)
            program = program_of(
                spec([_array(weight) for weight in weights]), self.opt_level, self.device.config
            )
            held = self._held[key] = _Held(program, places)
        return held.program


def _bag_spec(call: BagCall, table: NDArray[Any] | QuantizedTable) -> EmbeddingBagSpec:
    return EmbeddingBagSpec(
        name=call.name,
        num_embeddings=table.shape[0],
        embedding_dim=table.shape[1],
        index_dtype=call.lookup.indices.dtype,
        include_last_offset=False,
        input_names=(),
        two_dimensional=False,
        indices_name="indices",
        offsets_name="offsets",
        weight=table,
        mode=call.mode,
        weights_name=None if call.lookup.weights is None else "per_sample_weights",
        output=None if call.output_dtype is None else output_name(call.output_dtype),
    )


_number = count()


def _rows_of(weight: Table) -> object:
    """Return what tells the rows of tables apart, but for their number and length."""
    return weight.format.name if isinstance(weight, QuantizedTable) else weight.dtype


def _place(weight: Table) -> tuple[Any, ...]:
    """Return what says whose memory a program reads; of a copy also which version it is of."""
    if isinstance(weight, QuantizedTable):
        rows: Any = weight.rows
        return (rows.__array_interface__["data"][0], rows.shape, rows.strides, weight.shape)
    place = (weight.data_ptr(), weight.shape, weight.stride())
    if weight.device.type == "cpu":
        return place
    # Tensors of inference mode don't count their versions.
    return (*place, next(_number) if weight.is_inference() else weight._version)


def _array(weight: Table) -> NDArray[Any] | QuantizedTable:
    return weight if isinstance(weight, QuantizedTable) else tensor_array(weight)


def _tensor(rows: NDArray[Any], weight: Table) -> Tensor:
    tensor: Tensor = tensor_of(rows)
    return tensor if isinstance(weight, QuantizedTable) else tensor.to(weight.device)
