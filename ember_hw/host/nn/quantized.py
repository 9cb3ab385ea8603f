# pyright: reportUnknownMemberType=false
# Not all types of torch are known.
"""Modules whose tables are quantised rows; they give no gradient.

In a graph of torch, their lookups are the operators of `ember_hw.compiler.frontend.quantized_ops`,
which this module gives a meaning on the CPU: the default device computes them.
"""

from __future__ import annotations

from typing import Any, Self

import torch

from ember_hw.compiler.element_dtypes import tensor_array, tensor_of
from ember_hw.compiler.frontend.quantized import packed_table, unpacked
from ember_hw.compiler.frontend.quantized_ops import QUANTIZED_BAG, QUANTIZED_EMBEDDING
from ember_hw.compiler.frontend.row_types import output_name
from ember_hw.compiler.quantized_rows import QuantizedTable
from ember_hw.host.device import Device
from ember_hw.host.nn.devices import chosen_device
from ember_hw.host.nn.functional import (
    BagOptions,
    lookups_of,
    refuse_max_norm,
    run_bag,
    run_rows,
)
from ember_hw.host.nn.lookups import Lookups
from ember_hw.host.nn.modules import Embedding, EmbeddingBag, OnDevice, check_source, options_of
from ember_hw.host.request import check_mode, padding_row

__all__ = ["QuantizedEmbedding", "QuantizedEmbeddingBag"]

Tensor = torch.Tensor


class _Quantized(OnDevice):
    """A quantised table on a device: the buffer `rows`, and what its bytes are."""

    rows: Tensor

    def __init__(
        self,
        table: QuantizedTable,
        padding_idx: int | None,
        output_dtype: torch.dtype,
        device: Device | str | None,
        opt_level: int,
    ) -> None:
        super().__init__()
        if not isinstance(table, QuantizedTable):  # pyright: ignore[reportUnnecessaryIsInstance] -- a user's value
            raise TypeError(
                f"table must be a QuantizedTable, not {type(table).__name__}; "
                "ember_hw.quantize makes one"
            )
        self.num_embeddings, self.embedding_dim = table.shape
        self.codes, self.scale_dtype = table.codes, str(table.format.scale.name)
        self.padding_idx = padding_row(padding_idx, self.num_embeddings, "rows")
        output_name(output_dtype)  # legal
        self.output_dtype = output_dtype
        self.register_buffer("rows", tensor_of(table.rows))
        self._lookups = Lookups(chosen_device(device), opt_level)

    @property
    def table(self) -> QuantizedTable:
        """The table; its rows are the memory of the buffer `rows`, where that is on the CPU."""
        rows = tensor_array(self.rows)
        return QuantizedTable(rows, self.embedding_dim, self.codes, self.scale_dtype)

    def extra_repr(self) -> str:
        """Return shape and format."""
        return (
            f"{self.num_embeddings}, {self.embedding_dim}, codes={self.codes!r}, "
            f"scale_dtype={self.scale_dtype!r}, output_dtype={self.output_dtype}"
        )

    def get_extra_state(self) -> dict[str, Any]:
        """Return what the bytes of `rows` are, for a `state_dict`."""
        names = ("embedding_dim", "codes", "scale_dtype")
        return {name: getattr(self, name) for name in names}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Refuse the rows of a table of another format.

        Raises
        ------
        ValueError
            They are.
        """
        own = self.get_extra_state()
        if state != own:
            raise ValueError(f"format of the rows that are loaded must be {own}, not {state}")


class QuantizedEmbeddingBag(_Quantized):
    """`torch.nn.EmbeddingBag` in a quantised table, pooled on a device.

    Parameters
    ----------
    table : QuantizedTable
        Its rows become the buffer `rows`, which shares their memory.
    mode, include_last_offset, padding_idx
        As of `torch.nn.EmbeddingBag`.
    output_dtype : torch.dtype
        float32, float16 or bfloat16: of the pooled rows, which are accumulated in float32.
    device : Device, str or None
        Computes the lookups: a device, a backend by name, or the default device.
    opt_level : int
        0 to 3, of the program.

    Raises
    ------
    TypeError
        `table` is something else.
    ValueError
        `mode`, `padding_idx`, `output_dtype` or `opt_level` is no legal value.

    Examples
    --------
    >>> import torch
    >>> bag = QuantizedEmbeddingBag.from_torch(torch.nn.EmbeddingBag(10, 3, mode="sum"), "int4")
    >>> bag(torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 4])).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        table: QuantizedTable,
        mode: str = "mean",
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        *,
        output_dtype: torch.dtype = torch.float32,
        device: Device | str | None = None,
        opt_level: int = 3,
    ) -> None:
        check_mode(mode, "rows")
        super().__init__(table, padding_idx, output_dtype, device, opt_level)
        self.mode = mode
        self.include_last_offset = include_last_offset

    @classmethod
    def from_torch(
        cls,
        module: torch.nn.Module,
        table: str | QuantizedTable = "int8",
        scale_dtype: str | None = None,
        *,
        output_dtype: torch.dtype = torch.float32,
        device: Device | str | None = None,
        opt_level: int = 3,
    ) -> Self:
        """Return a module with the packed table of torch's, as it is now.

        Parameters
        ----------
        module : torch.nn.EmbeddingBag or torch.ao.nn.quantized.EmbeddingBag
            The latter's own bytes are taken, whatever `table` is.
        table : str or QuantizedTable
            "int8" or "int4" packs the module's own as `ember_hw.quantize` does; a table stands for
            it.
        scale_dtype : str, optional
            As of `ember_hw.quantize`.
        output_dtype, device, opt_level
            As of the class.

        Raises
        ------
        TypeError
            It is another kind of module, its table isn't float32, or `table` is no table.
        ValueError
            It has hooks, its table can't be packed, or `table` is of another shape.
        UnsupportedError
            It has a `max_norm`, or rows of it are pruned.
        """
        plain, tables = unpacked(module)
        check_source(plain, torch.nn.EmbeddingBag, EmbeddingBag)
        bag: Any = plain
        options_of(bag).check()
        own = tables.get("weight")
        return cls(
            own or packed_table("weight", table, bag.weight, scale_dtype),
            bag.mode,
            bag.include_last_offset,
            bag.padding_idx,
            output_dtype=output_dtype,
            device=device,
            opt_level=opt_level,
        )

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        """Pool rows; see `ember_hw.nn.functional.embedding_bag`."""
        if torch.compiler.is_compiling():
            return QUANTIZED_BAG(
                self.rows,
                input,
                offsets,
                per_sample_weights,
                self.embedding_dim,
                self.codes,
                self.scale_dtype,
                self.output_dtype,
                self.mode,
                self.include_last_offset,
                self.padding_idx,
            )
        return run_bag(
            self._lookups, self.options("rows"), input, self.table, offsets, per_sample_weights
        )

    def options(self, name: str) -> BagOptions:
        """Return what the bag is, besides its table, as messages name it."""
        return BagOptions(
            self.mode,
            self.include_last_offset,
            self.padding_idx,
            name=name,
            output_dtype=self.output_dtype,
        )


class QuantizedEmbedding(_Quantized):
    """`torch.nn.Embedding` of a quantised table, looked up on a device.

    Parameters
    ----------
    table, output_dtype, device, opt_level
        As of `QuantizedEmbeddingBag`.

    Raises
    ------
    TypeError, ValueError
        As of `QuantizedEmbeddingBag`.

    Examples
    --------
    >>> import torch
    >>> rows = QuantizedEmbedding.from_torch(torch.nn.Embedding(10, 3))
    >>> rows(torch.tensor([[1, 2, 4, 5], [4, 3, 2, 9]])).shape
    torch.Size([2, 4, 3])
    """

    def __init__(
        self,
        table: QuantizedTable,
        *,
        output_dtype: torch.dtype = torch.float32,
        device: Device | str | None = None,
        opt_level: int = 3,
    ) -> None:
        super().__init__(table, None, output_dtype, device, opt_level)

    @classmethod
    def from_torch(
        cls,
        module: torch.nn.Module,
        table: str | QuantizedTable = "int8",
        scale_dtype: str | None = None,
        *,
        output_dtype: torch.dtype = torch.float32,
        device: Device | str | None = None,
        opt_level: int = 3,
    ) -> Self:
        """Return a module with the packed table of a `torch.nn.Embedding`, as it is now.

        Parameters
        ----------
        module : torch.nn.Embedding
            Its `padding_idx` has no effect on rows.
        table, scale_dtype
            As of `QuantizedEmbeddingBag.from_torch`.
        output_dtype, device, opt_level
            As of the class.

        Raises
        ------
        TypeError, ValueError, UnsupportedError
            As of `QuantizedEmbeddingBag.from_torch`.
        """
        check_source(module, torch.nn.Embedding, Embedding)
        rows: Any = module
        refuse_max_norm(rows.max_norm, rows.norm_type)
        packed = packed_table("weight", table, rows.weight, scale_dtype)
        return cls(packed, output_dtype=output_dtype, device=device, opt_level=opt_level)

    def forward(self, input: Tensor) -> Tensor:
        """Look up rows; see `ember_hw.nn.functional.embedding`."""
        if torch.compiler.is_compiling():
            return QUANTIZED_EMBEDDING(
                self.rows,
                input,
                self.embedding_dim,
                self.codes,
                self.scale_dtype,
                self.output_dtype,
            )
        return run_rows(
            self._lookups,
            input,
            self.table,
            None,
            scale_grad_by_freq=False,
            sparse=False,
            name="rows",
            output_dtype=self.output_dtype,
        )


def _bag(
    rows: Tensor,
    indices: Tensor,
    offsets: Tensor | None,
    per_sample_weights: Tensor | None,
    embedding_dim: int,
    codes: str,
    scale_dtype: str,
    output_dtype: torch.dtype,
    mode: str,
    include_last_offset: bool,
    padding_idx: int | None,
) -> Tensor:
    table = QuantizedTable(tensor_array(rows), embedding_dim, codes, scale_dtype)
    options = BagOptions(
        mode, include_last_offset, padding_idx, name="rows", output_dtype=output_dtype
    )
    return run_bag(lookups_of(rows, None), options, indices, table, offsets, per_sample_weights)


def _embedding(
    rows: Tensor,
    indices: Tensor,
    embedding_dim: int,
    codes: str,
    scale_dtype: str,
    output_dtype: torch.dtype,
) -> Tensor:
    table = QuantizedTable(tensor_array(rows), embedding_dim, codes, scale_dtype)
    return run_rows(
        lookups_of(rows, None),
        indices,
        table,
        None,
        scale_grad_by_freq=False,
        sparse=False,
        name="rows",
        output_dtype=output_dtype,
    )


_library: Any = torch.library
_library.impl("ember_hw::quantized_embedding_bag", "CPU", _bag)
_library.impl("ember_hw::quantized_embedding", "CPU", _embedding)
