"""`torch.nn.EmbeddingBag` of mode sum: what the host must know of it, and its loops as scf."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, memref, scf
from xdsl.parser import Parser

from ember_hw.compiler.program import JsonValue


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
    weight : float32 (num_embeddings, embedding_dim)
        The table; the memory of the model's parameter where that is contiguous and on the CPU,
        otherwise a copy of the time of import.
    size_limits : tuple of (str, int, int, int or None)
        Input, dimension, smallest and largest size, where an `ExportedProgram` was exported for
        these sizes alone. Empty for a module.
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
    weight: NDArray[np.float32] = field(repr=False)
    size_limits: tuple[tuple[str, int, int, int | None], ...] = ()

    @property
    def kind(self) -> str:
        """Name of the host's binding."""
        return "embedding_bag"

    def model(self) -> dict[str, JsonValue]:
        """Return what the host has to know of the bag, as JSON values."""
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
            "size_limits": [list(limit) for limit in self.size_limits],
            "table_names": {"tab": self.name},
        }

    def tables(self) -> dict[str, NDArray[Any]]:
        """Return the table by its symbol."""
        return {"tab": self.weight}


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


_EB_SUM = """
func.func @eb_sum(%off: memref<?xi64>, %idx: memref<?x{index}>, %tab: memref<?x?xf32>,
                  %out: memref<?x?xf32>, %B: index)
    attributes {{ember.args = ["off", "idx", "tab", "out", "B"], ember.noalias}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  scf.for %b = %c0 to %B step %c1 {{
    %b1 = arith.addi %b, %c1 : index
    %s64 = memref.load %off[%b] : memref<?xi64>
    %s = arith.index_cast %s64 : i64 to index
    %e64 = memref.load %off[%b1] : memref<?xi64>
    %e = arith.index_cast %e64 : i64 to index
    scf.for %j = %s to %e step %c1 {{
      %i = memref.load %idx[%j] : memref<?x{index}>
      %r = arith.index_cast %i : {index} to index
      scf.for %d = %c0 to %D step %c1 {{
        %v = memref.load %tab[%r, %d] : memref<?x?xf32>
        %a = memref.load %out[%b, %d] : memref<?x?xf32>
        %n = arith.addf %a, %v : f32
        memref.store %n, %out[%b, %d] : memref<?x?xf32>
      }}
    }}
  }}
  func.return
}}
"""


def emit_scf(spec: EmbeddingBagSpec) -> builtin.ModuleOp:
    """Write the bag as three nested loops over row pointers, indices and columns.

    The function takes `off` (B + 1 row pointers), `idx`, `tab`, `out` (zeros on entry) and `B`;
    `ember.args` lists these names and `ember.noalias` states that no two arguments overlap, as the
    host allocates `out` for each call.

    Parameters
    ----------
    spec : EmbeddingBagSpec
        The bag.

    Returns
    -------
    ModuleOp
        Verified, with the one function `@eb_sum`.
    """
    context = Context()
    for dialect in (builtin.Builtin, arith.Arith, func.Func, memref.MemRef, scf.Scf):
        context.load_dialect(dialect)
    text = _EB_SUM.format(index=f"i{spec.index_dtype.itemsize * 8}")
    module = Parser(context, text, "<eb_sum>").parse_module()
    module.verify()
    return module
