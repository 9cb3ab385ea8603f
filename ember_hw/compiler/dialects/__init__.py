"""The dialects of the pipeline, in the order a program meets them: ember, slc, slcvec, dlc, au."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.dialects.llvm import LLVM
from xdsl.dialects.math import Math
from xdsl.dialects.memref import MemRef
from xdsl.dialects.scf import Scf
from xdsl.dialects.vector import Vector
from xdsl.ir import Dialect

from ember_hw.compiler.dialects.au import AU
from ember_hw.compiler.dialects.dlc import DLC
from ember_hw.compiler.dialects.quantized import EMBER
from ember_hw.compiler.dialects.slc import SLC
from ember_hw.compiler.dialects.slcvec import SLCVEC

DIALECTS: tuple[Dialect, ...] = (
    Builtin,
    Func,
    Scf,
    Arith,
    Math,
    MemRef,
    Vector,
    LLVM,
    EMBER,
    SLC,
    SLCVEC,
    DLC,
    AU,
)
"""Every dialect that text may use."""


def make_context() -> Context:
    """Return a new context that knows every dialect of the pipeline."""
    context = Context()
    for dialect in DIALECTS:
        context.load_dialect(dialect)
    return context
