"""Tables in files, mapped into memory: nothing is read before it is looked up, nothing is copied.

A table of ``.npy`` or ``.safetensors`` becomes an array on the file's pages. Where its rows fill
the bus, a device in host memory reads these pages; an 8 GiB table then takes as much memory as the
rows that are looked up.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.element_dtypes import BFLOAT16
from ember_hw.errors import ProgramError

__all__ = ["Progress", "checksum", "map_table"]

#: Dtypes of the safetensors format that tables have.
_SAFETENSORS_DTYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": BFLOAT16,
}
#: A header is JSON of at most 100 MB, as the format says.
_MOST_HEADER_BYTES = 100_000_000
_PIECE_BYTES = 1 << 26


@dataclass(frozen=True)
class Progress:
    """How far a pass over a table is.

    Attributes
    ----------
    done_bytes, total_bytes : int
    seconds : float
        Since it began.
    """

    done_bytes: int
    total_bytes: int
    seconds: float

    @property
    def mb_per_second(self) -> float:
        """Speed so far, in 10**6 bytes a second."""
        return self.done_bytes / max(self.seconds, 1e-9) / 1e6

    def __str__(self) -> str:
        return (
            f"{self.done_bytes / 1e6:,.0f} of {self.total_bytes / 1e6:,.0f} MB, "
            f"{self.mb_per_second:,.0f} MB/s"
        )


def map_table(
    path: str | Path,
    name: str | None = None,
    *,
    crc32: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> NDArray[Any]:
    """Map a table of a file into memory.

    Parameters
    ----------
    path : path-like
        An ``.npy`` or a ``.safetensors`` file.
    name : str, optional
        The tensor of a ``.safetensors`` file; may be left out if it has one.
    crc32 : int, optional
        What `checksum` must give, which reads the whole table once.
    progress : callable, optional
        Told of that pass from time to time.

    Returns
    -------
    float32, float16 or bfloat16 (num_embeddings, embedding_dim)
        On the file's pages. Writes stay in memory and never reach the file.

    Raises
    ------
    ValueError
        The file is of another kind or damaged, or has no such tensor, or one that is no table.
    ProgramError
        The check sum is another one.

    Examples
    --------
    ::

        table = ember_hw.map_table("items.npy")
        bag = ember_hw.nn.EmbeddingBag.from_pretrained(torch.from_numpy(table), mode="sum")
    """
    path = Path(path)
    if path.suffix == ".npy":
        if name is not None:
            raise ValueError(f"name must be left out for the one array of {path}, not {name!r}")
        table = _map_npy(path)
    elif path.suffix == ".safetensors":
        table = _map_safetensors(path, name)
    else:
        raise ValueError(f"path must be an .npy or a .safetensors file, not {str(path)!r}")
    if table.ndim != 2 or table.dtype not in _SAFETENSORS_DTYPES.values():
        raise ValueError(
            f"table of {path} must be a matrix of float32, float16 or bfloat16, not {table.dtype} "
            f"of shape {table.shape}"
        )
    if crc32 is not None:
        found = checksum(table, progress)
        if found != crc32:
            raise ProgramError(f"check sum of {path} must be {crc32:#010x}, not {found:#010x}")
    return table


def checksum(table: NDArray[Any], progress: Callable[[Progress], None] | None = None) -> int:
    """Return the CRC-32 of a table's values, row after row.

    Parameters
    ----------
    table : (R, D)
        Of any strides.
    progress : callable, optional
        Told after each 64 MiB, and at the end.

    Examples
    --------
    >>> hex(checksum(np.zeros((2, 2), np.float32)))
    '0xecbb4b55'
    """
    rows = max(1, _PIECE_BYTES // max(1, table.shape[1] * table.itemsize))
    began, done, found = time.perf_counter(), 0, 0
    for first in range(0, len(table), rows):
        piece = np.ascontiguousarray(table[first : first + rows])
        found = zlib.crc32(piece.view(np.uint8).reshape(-1).data, found)
        done += piece.nbytes
        if progress is not None:
            progress(Progress(done, table.nbytes, time.perf_counter() - began))
    return found


def _map_npy(path: Path) -> NDArray[Any]:
    try:
        return np.load(path, mmap_mode="c", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} must be an .npy file of numbers, and isn't: {error}") from None


def _map_safetensors(path: Path, name: str | None) -> NDArray[Any]:
    """Map one tensor: 8 bytes of the header's length, the header in JSON, then the data."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _MOST_HEADER_BYTES):
            raise ValueError(
                f"header of {path} must be within the file and at most {_MOST_HEADER_BYTES} bytes, "
                f"not {length}"
            )
        try:
            header: dict[str, Any] = json.loads(file.read(length))
        except ValueError as error:
            raise ValueError(f"header of {path} must be JSON, not text with: {error}") from None
    header.pop("__metadata__", None)
    if name is None and len(header) == 1:
        (name,) = header
    if name not in header:
        raise ValueError(
            f"name must be a tensor of {path} ({', '.join(header) or 'it has none'}), not {name!r}"
        )
    facts = header[name]
    kind, shape = str(facts["dtype"]), tuple(int(extent) for extent in facts["shape"])
    if kind not in _SAFETENSORS_DTYPES:
        raise ValueError(
            f"tensor {name!r} of {path} must be of {', '.join(_SAFETENSORS_DTYPES)}, not {kind}"
        )
    dtype = _SAFETENSORS_DTYPES[kind]
    first, last = (int(offset) for offset in facts["data_offsets"])
    wanted = dtype.itemsize * int(np.prod(shape, dtype=object))
    if last - first != wanted or 8 + length + last > size:
        raise ValueError(
            f"tensor {name!r} of {path} must have {wanted} bytes within the file, not those from "
            f"{first} to {last} of {size - 8 - length}"
        )
    if not wanted:
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype, mode="c", offset=8 + length + first, shape=shape)
