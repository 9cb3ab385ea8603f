"""Tables whose rows are codes of 8 or 4 bits with a scale and a bias of their own, as FBGEMM's.

A row is its codes, then its scale, then its bias, without gaps, little-endian: D bytes of codes of
8 bits; ``ceil(D / 2)`` of codes of 4 bits, the first of two in the low half, and 0 in the high half
that an odd D leaves. Element d is ``scale * code[d] + bias`` in fp32: the product is rounded, then
the sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FORMATS", "QuantizedTable", "RowFormat", "dequantize", "format_of", "quantize"]

#: What the quantiser of 8 bits with a scale of fp32 adds to the range of a row before it divides.
_EPSILON = np.float32(1e-8)


@dataclass(frozen=True)
class RowFormat:
    """How the rows of a quantised table lie in memory.

    Attributes
    ----------
    name : str
        In the IR, like q8f32.
    bits : int
        Of a code, 8 or 4.
    scale : dtype
        Of scale and bias, float32 or float16.
    """

    name: str
    bits: int
    scale: np.dtype[Any]

    @property
    def codes_per_byte(self) -> int:
        """Codes in a byte."""
        return 8 // self.bits

    @property
    def extra_bytes(self) -> int:
        """Bytes of scale and bias."""
        return 2 * self.scale.itemsize

    @property
    def records(self) -> np.dtype[Any]:
        """What the interpreters hold an element in: its code, and what makes a number of it."""
        return np.dtype([("code", np.uint8), ("scale", np.float32), ("bias", np.float32)])

    def elements(self, row_bytes: int) -> int:
        """Return the elements of a row of so many bytes; of an odd D of 4 bits one more.

        Examples
        --------
        >>> FORMATS["q8f32"].elements(72), FORMATS["q4f16"].elements(7)
        (64, 6)
        """
        return (row_bytes - self.extra_bytes) * self.codes_per_byte

    def row_bytes(self, columns: int) -> int:
        """Return the bytes of a row.

        Examples
        --------
        >>> FORMATS["q8f32"].row_bytes(64), FORMATS["q4f16"].row_bytes(5)
        (72, 7)
        """
        return -(-columns // self.codes_per_byte) + self.extra_bytes

    def codes(self, rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the codes of rows of bytes, (.., W); of an odd D one more, which is the gap."""
        return self.unpacked(rows[..., : rows.shape[-1] - self.extra_bytes])

    def unpacked(self, packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the codes in bytes that hold nothing else."""
        if self.bits == 8:
            return packed
        halves = np.stack((packed & 15, packed >> 4), axis=-1).astype(np.uint8)
        return halves.reshape(*packed.shape[:-1], -1)

    def scales(self, rows: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return scale and bias of each row of bytes, (.., W), as fp32, which is exact."""
        ends = np.ascontiguousarray(rows[..., rows.shape[-1] - self.extra_bytes :])
        pairs = ends.view(self.scale).astype(np.float32)
        return pairs[..., 0], pairs[..., 1]

    def to_records(self, rows: NDArray[np.uint8]) -> NDArray[Any]:
        """Return rows of bytes as the interpreters hold them."""
        codes = self.codes(rows)
        found = np.zeros(codes.shape, self.records)
        found["code"] = codes
        scale, bias = self.scales(rows)
        found["scale"], found["bias"] = scale[..., None], bias[..., None]
        return found

    def from_records(self, records: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the bytes of rows that the interpreters hold."""
        first = records[..., 0]
        return self.pack(records["code"], first["scale"], first["bias"])

    def packed(self, codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the bytes that hold codes (.., D), without scale and bias.

        Examples
        --------
        >>> FORMATS["q4f16"].packed(np.array([1, 2, 3], np.uint8)).tolist()
        [33, 3]
        """
        if self.bits == 8:
            return codes
        count = codes.shape[-1]
        found = np.zeros((*codes.shape[:-1], -(-count // 2)), np.uint8)
        found[...] = codes[..., 0::2]
        found[..., : count // 2] |= codes[..., 1::2] << 4
        return found

    def pack(
        self, codes: NDArray[np.uint8], scale: NDArray[np.float32], bias: NDArray[np.float32]
    ) -> NDArray[np.uint8]:
        """Return rows of bytes (N, W) of codes (N, D), scales and biases (N,)."""
        ends = np.stack((scale, bias), axis=1).astype(self.scale)
        return np.concatenate((self.packed(codes), ends.view(np.uint8)), axis=1)


#: Formats by their name in the IR.
FORMATS = {
    f"q{bits}f{size}": RowFormat(f"q{bits}f{size}", bits, np.dtype(f"<f{size // 8}"))
    for bits in (8, 4)
    for size in (32, 16)
}
#: Bits of a code, and what scale and bias usually are, by the name that callers use.
_NAMED = {"int8": (8, "float32"), "int4": (4, "float16")}


def format_of(codes: str, scale_dtype: str | None = None) -> RowFormat:
    """Return a format by the names of its codes and of the dtype of scale and bias.

    Parameters
    ----------
    codes : str
        int8 or int4.
    scale_dtype : str, optional
        float32 or float16; by default torch's: float32 for int8, float16 for int4.

    Raises
    ------
    ValueError
        There is no such format.
    """
    if codes not in _NAMED:
        raise ValueError(f"format of a table must be {' or '.join(_NAMED)}, not {codes!r}")
    bits, usual = _NAMED[codes]
    scale = usual if scale_dtype is None else scale_dtype
    if scale not in ("float32", "float16"):
        raise ValueError(f"scale_dtype must be float32 or float16, not {scale_dtype!r}")
    return FORMATS[f"q{bits}f{scale.removeprefix('float')}"]


@dataclass(frozen=True, eq=False)
class QuantizedTable:
    """A quantised table: the rows of FBGEMM, or of ``torch.ops.quantized.embedding_bag_*_prepack``.

    Parameters
    ----------
    rows : uint8 (N, W)
        A row a line; see this module for the layout. An array of memory-mapped bytes will do.
    embedding_dim : int
        D.
    codes : str
        int8 or int4.
    scale_dtype : str, optional
        As for `quantize`.

    Raises
    ------
    TypeError
        The rows aren't an array of uint8.
    ValueError
        They aren't of the width that the format and D ask for, or there is no such format.
    """

    rows: NDArray[np.uint8] = field(repr=False)
    embedding_dim: int
    codes: str = "int8"
    scale_dtype: str | None = None

    def __post_init__(self) -> None:
        rows: Any = self.rows
        found: object = getattr(rows, "dtype", type(rows).__name__)
        if not isinstance(rows, np.ndarray) or found != np.uint8:
            raise TypeError(f"rows of a quantised table must be an array of uint8, not {found}")
        width = self.format.row_bytes(self.embedding_dim)
        if self.rows.ndim != 2 or self.rows.shape[1] != width or self.embedding_dim < 1:
            raise ValueError(
                f"rows of a table of {self.codes} and embedding_dim {self.embedding_dim} must be "
                f"of shape (num_embeddings, {width}), not {self.rows.shape}"
            )

    @property
    def format(self) -> RowFormat:
        """How the rows lie in memory."""
        return format_of(self.codes, self.scale_dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and elements of a row."""
        return len(self.rows), self.embedding_dim


def quantize(weight: Any, codes: str = "int8", scale_dtype: str | None = None) -> QuantizedTable:
    """Quantise each row of a table by its own scale and bias.

    The bias is a row's smallest element, the scale its range over 255 or 15, both rounded to
    `scale_dtype`; an element's code is the whole number nearest to ``(x - bias) / scale``. The
    bytes are those of ``torch.ops.quantized.embedding_bag_byte_prepack`` for int8 with float32, and
    of ``embedding_bag_4bit_prepack`` for int4 with float16, but where the former is further off
    than half a step, in rows whose range is near the 1e-8 that it adds to it: there the nearest
    code is taken.

    Parameters
    ----------
    weight : float32 (N, D)
        NumPy array or torch tensor; D may be odd.
    codes : str
        int8 or int4.
    scale_dtype : str, optional
        float32 or float16; by default float32 for int8 and float16 for int4.

    Returns
    -------
    QuantizedTable
        With float32 an element is at most half a step off, and a constant row is exact; with
        float16 the rounding of scale and bias comes on top.

    Raises
    ------
    TypeError
        `weight` isn't float32.
    ValueError
        It isn't 2-D or has no columns, a row holds NaN or infinity, a row's range or bias is beyond
        `scale_dtype`, or there is no such format.

    Examples
    --------
    >>> table = quantize(np.array([[0.0, 1.0, 2.0, 255.0]], np.float32))
    >>> table.rows[0, :4].tolist(), dequantize(table).tolist()
    ([0, 1, 2, 255], [[0.0, 1.0, 2.0, 255.0]])
    """
    form = format_of(codes, scale_dtype)
    if hasattr(weight, "detach"):  # torch isn't imported for this
        weight = weight.detach().cpu().numpy()
    array: NDArray[np.float32] = np.asarray(weight)
    if array.dtype != np.float32:
        raise TypeError(f"weight must be of dtype float32, not {array.dtype}")
    if array.ndim != 2 or not array.shape[1]:
        raise ValueError(f"weight must be of shape (N, D) with D at least 1, not {array.shape}")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ValueError(f"weight must be finite to be quantised, and row {row} isn't")
    most = np.float32(2**form.bits - 1)
    with np.errstate(over="ignore"):
        bias = _rounded(array.min(axis=1, initial=np.inf), form)
        extent = array.max(axis=1, initial=-np.inf) - bias
        scale = _rounded(extent / most, form)
    beyond = ~(np.isfinite(bias) & np.isfinite(scale) & np.isfinite(extent))
    if beyond.any():
        row = int(np.argmax(beyond))
        raise ValueError(f"range of row {row} must be one of {form.scale}, and is beyond it")
    if form.name == "q8f32":
        inverse = most / (extent + _EPSILON)
    else:
        scale = np.where((extent == 0) | (scale == 0), np.float32(1), scale)
        with np.errstate(over="ignore"):
            inverse = np.float32(1) / scale
        tiny = np.isinf(inverse)
        scale, inverse = np.where(tiny, 1, scale), np.where(tiny, 1, inverse)
    found = _codes(array, scale, bias, inverse, most)
    return QuantizedTable(
        form.pack(found, scale, bias), array.shape[1], codes, str(form.scale.name)
    )


def _rounded(values: NDArray[np.float32], form: RowFormat) -> NDArray[np.float32]:
    return values.astype(form.scale).astype(np.float32)


def _codes(
    array: NDArray[np.float32],
    scale: NDArray[np.float32],
    bias: NDArray[np.float32],
    inverse: NDArray[np.float32],
    most: np.float32,
) -> NDArray[np.uint8]:
    shifted = array - bias[:, None]
    found = np.clip(np.rint(shifted * inverse[:, None]), 0, most)
    wide, step = shifted.astype(np.float64), scale.astype(np.float64)[:, None]
    safe = np.where(step == 0, 1, step)
    is_off = np.abs(wide - step * found) > step * (0.5 + 1e-6)
    nearest = np.clip(np.rint(wide / safe), 0, most)
    return np.where(is_off & (step > 0), nearest, found).astype(np.uint8)


def dequantize(table: QuantizedTable) -> NDArray[np.float32]:
    """Return the numbers of a quantised table, as every level and backend computes them.

    ``scale * code + bias`` in fp32, the product rounded and then the sum. torch's
    ``embedding_bag_4bit_unpack`` gives the same bits; its ``embedding_bag_byte_unpack`` rounds once
    where it was built with fused multiply-adds, and differs in the last bit then.

    Returns
    -------
    float32 (N, D)
    """
    scale, bias = table.format.scales(table.rows)
    codes = table.format.codes(table.rows)[:, : table.embedding_dim].astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        product = scale[:, None] * codes
        return product + bias[:, None]
