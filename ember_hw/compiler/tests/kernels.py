"""Kernels in scf and their inputs, for tests that run one program at every opt level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_TYPES = """
!X = memref<?xindex>
!I = memref<?xi64>
!V = memref<?xf32>
!T = memref<?x?xf32>
!J = memref<?x?xindex>
"""

_CONSTANTS = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %D = memref.dim %tab, %c1 : !T
"""

_BAG = """
  scf.for %b = %c0 to %B step %c1 {
    %b1 = arith.addi %b, %c1 : index
    %s = memref.load %off[%b] : !X
    %e = memref.load %off[%b1] : !X
    scf.for %j = %s to %e step %c1 {
      %i = memref.load %idx[%j] : !I
      %r = arith.index_cast %i : i64 to index
      %w = memref.load %psw[%j] : !V
      scf.for %d = %c0 to %D step %c1 {
        %v = memref.load %tab[%r, %d] : !T
        %a = memref.load %out[%b, %d] : !T
        ACCUMULATE
        memref.store %n, %out[%b, %d] : !T
      }
    }
    TAIL
  }
"""

_WEIGHT = "        %w = memref.load %psw[%j] : !V\n".lstrip(" ")

_DIVIDE = """
    %len = arith.subi %e, %s : index
    %l1 = arith.maxsi %len, %c1 : index
    %li = arith.index_cast %l1 : index to i64
    %lf = arith.sitofp %li : i64 to f32
    scf.for %d = %c0 to %D step %c1 {
      %a = memref.load %out[%b, %d] : !T
      %q = arith.divf %a, %lf : f32
      memref.store %q, %out[%b, %d] : !T
    }
"""

_FILL = """
    %empty = arith.cmpi eq, %s, %e : index
    scf.if %empty {
      scf.for %d = %c0 to %D step %c1 {
        memref.store %f0, %out[%b, %d] : !T
      }
    }
"""

_SUM = "%n = arith.addf %a, %v : f32"
_WEIGHTED_SUM = "%p = arith.mulf %w, %v : f32\n        %n = arith.addf %a, %p : f32"
_MAXIMUM = "%n = arith.maximumf %a, %v : f32"

_MULTI = """
  scf.for %t = %c0 to %NT step %c1 {
    %base = memref.load %tb[%t] : !X
    %tB = arith.muli %t, %B : index
    scf.for %b = %c0 to %B step %c1 {
      %g = arith.addi %tB, %b : index
      %g1 = arith.addi %g, %c1 : index
      %s = memref.load %off[%g] : !X
      %e = memref.load %off[%g1] : !X
      scf.for %j = %s to %e step %c1 {
        %i = memref.load %idx[%j] : !X
        %r = arith.addi %i, %base : index
        %w = memref.load %psw[%j] : !V
        scf.for %d = %c0 to %D step %c1 {
          %v = memref.load %tab[%r, %d] : !T
          %a = memref.load %out[%g, %d] : !T
          %p = arith.mulf %w, %v : f32
          %n = arith.addf %a, %p : f32
          memref.store %n, %out[%g, %d] : !T
        }
      }
    }
  }
"""

_FUSED = """
  scf.for %i = %c0 to %N step %c1 {
    %i1 = arith.addi %i, %c1 : index
    %s = memref.load %off[%i] : !X
    %e = memref.load %off[%i1] : !X
    scf.for %p = %s to %e step %c1 {
      %c = memref.load %idx[%p] : !X
      %dot = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
        %x = memref.load %tab[%i, %d] : !T
        %y = memref.load %tab[%c, %d] : !T
        %m = arith.mulf %x, %y : f32
        %n = arith.addf %acc, %m : f32
        scf.yield %n : f32
      }
      %ng = arith.negf %dot : f32
      %ex = math.exp %ng : f32
      %dn = arith.addf %ex, %f1 : f32
      %w = arith.divf %f1, %dn : f32
      scf.for %d = %c0 to %D step %c1 {
        %y = memref.load %tab[%c, %d] : !T
        %a = memref.load %out[%i, %d] : !T
        %m = arith.mulf %w, %y : f32
        %n = arith.addf %a, %m : f32
        memref.store %n, %out[%i, %d] : !T
      }
    }
  }
"""

_TRIPLES = """
  scf.for %k = %c0 to %N step %c1 {
    %h = memref.load %hd[%k] : !X
    %r = memref.load %rl[%k] : !X
    %t = memref.load %tl[%k] : !X
    %q = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
      %a = memref.load %tab[%h, %d] : !T
      %b = memref.load %rel[%r, %d] : !T
      %c = memref.load %tab[%t, %d] : !T
      SCORE
      scf.yield %n : f32
    }
    STORE
  }
"""

_TRANSE_SCORE = """
      %x = arith.addf %a, %b : f32
      %y = arith.subf %x, %c : f32
      %z = math.absf %y : f32
      %n = arith.addf %acc, %z : f32
"""
_TRANSE_STORE = """
    %g = arith.negf %q : f32
    memref.store %g, %out[%k] : !V
"""
_DISTMULT_SCORE = """
      %x = arith.mulf %a, %b : f32
      %y = arith.mulf %x, %c : f32
      %n = arith.addf %acc, %y : f32
"""

_QUERIES = """
  scf.for %qb = %c0 to %NB step %c1 {
    %q0 = arith.muli %qb, %BS : index
    scf.for %s = %c0 to %NS step %c1 {
      %kb = memref.load %blk[%qb, %s] : !J
      %k0 = arith.muli %kb, %BS : index
      %s0 = arith.muli %s, %BS : index
      scf.for %kk = %c0 to %BS step %c1 {
        %kr = arith.addi %k0, %kk : index
        %col = arith.addi %s0, %kk : index
        scf.for %qi = %c0 to %BS step %c1 {
          %qr = arith.addi %q0, %qi : index
          %dot = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
            %x = memref.load %tab[%kr, %d] : !T
            %y = memref.load %q[%qr, %d] : !T
            %m = arith.mulf %x, %y : f32
            %n = arith.addf %acc, %m : f32
            scf.yield %n : f32
          }
          memref.store %dot, %out[%qr, %col] : !T
        }
      }
    }
  }
"""

_BLOCKS = """
  scf.for %qb = %c0 to %NB step %c1 {
    %q0 = arith.muli %qb, %BS : index
    scf.for %s = %c0 to %NS step %c1 {
      %kb = memref.load %blk[%qb, %s] : !J
      %k0 = arith.muli %kb, %BS : index
      %s0 = arith.muli %s, %BS : index
      scf.for %kk = %c0 to %BS step %c1 {
        %kr = arith.addi %k0, %kk : index
        %col = arith.addi %s0, %kk : index
        scf.for %qi = %c0 to %BS step %c1 {
          %qr = arith.addi %q0, %qi : index
          %p = memref.load %pr[%qr, %col] : !T
          scf.for %d = %c0 to %D step %c1 {
            %v = memref.load %tab[%kr, %d] : !T
            %a = memref.load %out[%qr, %d] : !T
            %m = arith.mulf %p, %v : f32
            %n = arith.addf %a, %m : f32
            memref.store %n, %out[%qr, %d] : !T
          }
        }
      }
    }
  }
"""


@dataclass(frozen=True)
class Kernel:
    """A function `@kernel` and what it takes.

    Attributes
    ----------
    name : str
        What tests call it.
    text : str
        A module.
    arguments : callable of (columns, seed)
        A value of each argument, by name in their order; `out` as it is before the run.
    """

    name: str
    text: str
    arguments: Callable[[int, int], dict[str, Any]]

    def __str__(self) -> str:
        return self.name


def make_kernel(
    name: str, parameters: str, body: str, arguments: Callable[[int, int], dict[str, Any]]
) -> Kernel:
    """Return a kernel of these parameters and this body, which may use the constants above."""
    names = ", ".join(f'"{p.split(":")[0].strip(" %")}"' for p in parameters.split(","))
    head = (
        f"func.func @kernel({parameters}) attributes {{ember.args = [{names}], ember.noalias}} {{"
    )
    constants = _CONSTANTS if "%tab:" in parameters else _CONSTANTS.rpartition("  %D")[0]
    text = f"{_TYPES}{head}{constants}{body}  func.return\n}}\n"
    return Kernel(name, text, arguments)


#: Lookups of each bag: empty ones first, in the middle, last.
LENGTHS = (0, 3, 0, 4, 1, 0)


def _bags(columns: int, seed: int, start: float) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    offsets = np.cumsum([0, *LENGTHS]).astype(np.int64)
    lookups = int(offsets[-1])
    return {
        "off": offsets,
        "idx": np.array([6, *random.integers(0, 7, lookups - 1)], np.int64),
        "psw": random.standard_normal(lookups).astype(np.float32),
        "tab": random.standard_normal((7, columns)).astype(np.float32),
        "out": np.full((len(LENGTHS), columns), start, np.float32),
        "B": len(LENGTHS),
    }


def _bag(name: str, accumulate: str, tail: str = "", start: float = 0.0) -> Kernel:
    body = _BAG.replace("ACCUMULATE", accumulate).replace("TAIL", tail)
    body = body if "%w," in accumulate else body.replace("      " + _WEIGHT.strip() + "\n", "")
    parameters = "%off: !X, %idx: !I, %psw: !V, %tab: !T, %out: !T, %B: index"
    return make_kernel(name, parameters, body, lambda columns, seed: _bags(columns, seed, start))


def _multi_arguments(columns: int, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    offsets = np.cumsum([0, 2, 0, 1, 0, 3, 1]).astype(np.int64)
    lookups = int(offsets[-1])
    return {
        "off": offsets,
        "idx": random.integers(0, 4, lookups),
        "psw": random.standard_normal(lookups).astype(np.float32),
        "tb": np.array([0, 4], np.int64),
        "tab": random.standard_normal((8, columns)).astype(np.float32),
        "out": np.zeros((6, columns), np.float32),
        "NT": 2,
        "B": 3,
    }


def _block_arguments(columns: int, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "pr": random.standard_normal((4, 6)).astype(np.float32),
        "tab": random.standard_normal((8, columns)).astype(np.float32),
        "blk": random.integers(0, 4, (2, 3)),
        "out": np.zeros((4, columns), np.float32),
        "NB": 2,
        "NS": 3,
        "BS": 2,
    }


def _graph_arguments(columns: int, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    offsets = np.cumsum([0, *LENGTHS]).astype(np.int64)
    return {
        "off": offsets,
        "idx": random.integers(0, len(LENGTHS), int(offsets[-1])),
        "tab": random.standard_normal((len(LENGTHS), columns)).astype(np.float32),
        "out": np.zeros((len(LENGTHS), columns), np.float32),
        "N": len(LENGTHS),
    }


#: Scored triples.
TRIPLES = 5


def _triple_arguments(columns: int, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "hd": random.integers(0, 7, TRIPLES),
        "rl": random.integers(0, 3, TRIPLES),
        "tl": random.integers(0, 7, TRIPLES),
        "tab": random.standard_normal((7, columns)).astype(np.float32),
        "rel": random.standard_normal((3, columns)).astype(np.float32),
        "out": np.zeros(TRIPLES, np.float32),
        "N": TRIPLES,
    }


def _query_arguments(columns: int, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "q": random.standard_normal((4, columns)).astype(np.float32),
        "tab": random.standard_normal((8, columns)).astype(np.float32),
        "blk": random.integers(0, 4, (2, 3)),
        "out": np.zeros((4, 6), np.float32),
        "NB": 2,
        "NS": 3,
        "BS": 2,
    }


def _triples(name: str, score: str, store: str) -> Kernel:
    body = _TRIPLES.replace("SCORE", score.strip()).replace("STORE", store.strip())
    parameters = "%hd: !X, %rl: !X, %tl: !X, %tab: !T, %rel: !T, %out: !V, %N: index"
    return make_kernel(name, parameters, body, _triple_arguments)


EB_SUM = _bag("eb_sum", _SUM)
SPMM = _bag("spmm", _WEIGHTED_SUM)
EB_MEAN = _bag("eb_mean", _SUM, _DIVIDE)
EB_MAX = _bag("eb_max", _MAXIMUM, _FILL, -np.inf)
EB_MULTI = make_kernel(
    "eb_multi",
    "%off: !X, %idx: !X, %psw: !V, %tb: !X, %tab: !T, %out: !T, %NT: index, %B: index",
    _MULTI,
    _multi_arguments,
)
BB_PV = make_kernel(
    "bb_pv",
    "%pr: !T, %tab: !T, %blk: !J, %out: !T, %NB: index, %NS: index, %BS: index",
    _BLOCKS,
    _block_arguments,
)
BB_QK = make_kernel(
    "bb_qk",
    "%q: !T, %tab: !T, %blk: !J, %out: !T, %NB: index, %NS: index, %BS: index",
    _QUERIES,
    _query_arguments,
)
FUSEDMM = make_kernel(
    "fusedmm",
    "%off: !X, %idx: !X, %tab: !T, %out: !T, %N: index",
    _FUSED,
    _graph_arguments,
)
TRANSE = _triples("transe", _TRANSE_SCORE, _TRANSE_STORE)
DISTMULT = _triples("distmult", _DISTMULT_SCORE, "memref.store %q, %out[%k] : !V")
KERNELS = (
    EB_SUM,
    SPMM,
    EB_MEAN,
    EB_MAX,
    EB_MULTI,
    FUSEDMM,
    TRANSE,
    DISTMULT,
    BB_QK,
    BB_PV,
)
