# pyright: basic
"""Which functions the reduce unit runs, and why not the others: near misses, one by one."""

from __future__ import annotations

import pytest

from ember_hw.compiler import compile_function
from ember_hw.compiler.nest import Nest
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import UnsupportedError
from ember_hw.isa import Event, ReduceOperation, Source, event_mask

CONFIG = AcceleratorConfig(
    name="reduces",
    execute="reduce",
    streams_per_unit=4,
    exports=8,
    bundle_scalars=4,
    row_entries=3,
)

_HEAD = """
!X = memref<?xindex>
!V = memref<?xf32>
!T = memref<?x?xf32>
func.func @kernel(%off: !X, %idx: !X, %w: !V, %tab: !T, %out: !T, %aux: !X, %N: index, %M: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  %f2 = arith.constant 2.0 : f32
  %D = memref.dim %tab, %c1 : !T
"""

_BAG = """
  scf.for %b = %c0 to %N step %c1 {
    %b1 = arith.addi %b, %c1 : index
    %s = memref.load %off[%b] : !X
    %e = memref.load %off[%b1] : !X
    BEFORE
    scf.for %j = %s to %e step %c1 {
      %r = memref.load %idx[%j] : !X
      %f = memref.load %w[%j] : !V
      ROW
      scf.for %d = %c0 to %D step %c1 {
        %v = memref.load %tab[%r, %d] : !T
        %a = memref.load %out[WHERE, %d] : !T
        MAKE
        memref.store %n, %out[WHERE, %d] : !T
      }
    }
    AFTER
  }
"""

SUM = "%n = arith.addf %a, %v : f32"
WEIGHTED = "%p = arith.mulf %v, %f : f32\n        %n = arith.addf %p, %a : f32"
MAXIMUM = "%n = arith.maximumf %v, %a : f32"


def bag(
    make: str = SUM, where: str = "%b", before: str = "", row: str = "", after: str = ""
) -> str:
    body = _BAG.replace("MAKE", make).replace("WHERE", where)
    return body.replace("BEFORE", before).replace("ROW", row).replace("AFTER", after)


def nest_of(body: str, config: AcceleratorConfig = CONFIG, opt_level: int = 3) -> Nest:
    text = f"{_HEAD}{body}  func.return\n}}\n"
    program = compile_function(text, opt_level=opt_level, config=config, may_leave_loops=True)
    (nest,) = program.nests
    return nest


@pytest.mark.parametrize(
    ("make", "operation", "scaled"),
    [
        (SUM, ReduceOperation.SUM, 0),
        (WEIGHTED, ReduceOperation.SUM, 1),
        (MAXIMUM, ReduceOperation.MAXIMUM, 0),
    ],
)
def test_microcode(make: str, operation: ReduceOperation, scaled: int) -> None:
    nest = nest_of(bag(make))
    assert nest.execute == "fabric"
    get = nest.microcode.get
    end = event_mask([(Event.END, 1)], CONFIG)
    assert get("issue", "events") & end
    assert get("reduce0", "emit_events") == end
    assert (get("reduce0", "operation"), get("reduce0", "scaled")) == (operation, scaled)
    (weight,) = [
        operand.index
        for callback in nest.callbacks
        for operand in callback.operands
        if operand.symbol == "w"
    ] or [0]
    assert get("reduce0", "scalar") == weight
    assert get("reduce", "length_source") == Source.IMMEDIATE
    (patch,) = [patch for patch in nest.patches if patch.record == "reduce"]
    assert (patch.field, patch.symbol, patch.scale) == ("length", "tab.dim1", 4)


_LEVELS = """
  scf.for %b = %c0 to %N step %c1 {
    scf.for %k = %c0 to %M step %c1 {
      %s = memref.load %off[%k] : !X
      %k1 = arith.addi %k, %c1 : index
      %e = memref.load %off[%k1] : !X
      BETWEEN
      scf.for %j = %s to %e step %c1 {
        %r = memref.load %idx[%j] : !X
        scf.for %d = %c0 to %D step %c1 {
          %v = memref.load %tab[%r, %d] : !T
          %a = memref.load %out[%b, %d] : !T
          MAKE
          memref.store %n, %out[%b, %d] : !T
        }
      }
    }
  }
"""
_OUTER_ROW = """
  scf.for %b = %c0 to %N step %c1 {
    %s = memref.load %off[%b] : !X
    %b1 = arith.addi %b, %c1 : index
    %e = memref.load %off[%b1] : !X
    %r = memref.load %idx[%b] : !X
    scf.for %d = %c0 to %D step %c1 {
      %v = memref.load %tab[%r, %d] : !T
      %a = memref.load %out[%c0, %d] : !T
      %n = arith.addf %a, %v : f32
      memref.store %n, %out[%c0, %d] : !T
    }
    scf.for %j = %s to %e step %c1 {
      %q = memref.load %idx[%j] : !X
      memref.store %q, %aux[%j] : !X
    }
  }
"""
_STORED = "memref.store %n, %out[%b, %d] : !T\n      }"
_AGAIN = """
      scf.for %d = %c0 to %D step %c1 {
        %v = memref.load %tab[%r, %d] : !T
        %a = memref.load %out[%b, %d] : !T
        %n = arith.addf %a, %v : f32
        memref.store %n, %out[%b, %d] : !T
      }"""
_INCREMENT = "memref.store %j, %aux[%b] : !X"


_ITERATION = """
    scf.for %d = %c0 to %D step %c1 {
      %q = memref.load %out[%b, %d] : !T
      %h = arith.mulf %q, %f2 : f32
      memref.store %h, %out[%b, %d] : !T
    }
"""


@pytest.mark.parametrize(
    "body",
    [
        bag(after=_ITERATION),
        bag(MAXIMUM, after="%l = arith.subi %e, %s : index\n memref.store %l, %aux[%b] : !X"),
        bag(before="%l = arith.subi %e, %s : index\n memref.store %l, %aux[%b] : !X"),
        bag(where="%M"),
        _LEVELS.replace("MAKE", SUM).replace("BETWEEN", ""),
    ],
    ids=["doubled", "lengths behind", "lengths before", "one result in all", "over two loops"],
)
def test_the_rest_of_a_bag_stays_on_the_host(body: str) -> None:
    nest = nest_of(body)
    assert nest.execute == "fabric"
    assert nest.fabric is not None
    assert len(nest.fabric.host.callbacks) == 1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (bag("%n = arith.subf %a, %v : f32"), "case 1 makes its columns by 'subf', and the unit "
         "adds or takes the maximum"),
        (bag("%n = arith.minimumf %a, %v : f32"), "case 1 makes its columns by 'minimumf', and "
         "the unit adds or takes the maximum"),
        (bag("%n = math.fma %f, %v, %a : f32"), "case 1 makes its columns by 'fma', and the unit "
         "adds or takes the maximum"),
        (bag("%p = arith.mulf %v, %v : f32\n        %n = arith.addf %a, %p : f32"),
         "case 1 multiplies columns by 'v', which no bundle holds as f32, f16 or bf16"),
        (bag("%p = arith.mulf %f, %f : f32\n %z = arith.addf %v, %f : f32\n"
             "%n = arith.addf %a, %p : f32"),
         "case 1 multiplies columns by more than one scalar of the row"),
        (bag("%p = arith.mulf %v, %f2 : f32\n        %n = arith.addf %a, %p : f32"),
         "case 1 multiplies columns by 'f2', which no bundle holds as f32, f16 or bf16"),
        (bag("%p = arith.addf %v, %f : f32\n        %n = arith.addf %a, %p : f32"),
         "case 1 computes with more than a column of its row"),
        (bag("%p = arith.addf %v, %v : f32\n %n = arith.addf %p, %p : f32"),
         "case 1 doesn't combine a row with the element that it stores to"),
        (_OUTER_ROW, "case 1 takes a row at the begin of a loop"),
        (bag().replace(_STORED, _STORED + _AGAIN),
         "case 1 has 2 loops, and the unit does what one does"),
        (bag(where="%r"), "case 1 writes to another place of 'out' at each row"),
        (bag(where="%j"), "case 1 writes to another place of 'out' at each row"),
        (bag(where="%s"), "case 1 may come back to a row of 'out' that has its result: its "
         "indices don't count"),
        (bag(SUM.replace("%v", "%z") + "\n %z2 = arith.addf %z, %f : f32").replace(
            "%n = arith", "%z = arith.addf %v, %f : f32\n %n = arith"),
         "case 1 computes with more than a column of its row"),
        (bag(SUM + "\n memref.store %v, %out[%b1, %d] : !T"),
         "case 1 does more to a column than to combine it with a row's"),
        (_LEVELS.replace("MAKE", MAXIMUM).replace("BETWEEN", ""),
         "case 1 takes a maximum over 2 loops, and the host knows of one whether it ran"),
        (_LEVELS.replace("MAKE", SUM).replace("BETWEEN", "memref.store %k, %aux[%b] : !X"),
         "case 1 runs between the rows of one result"),
        (bag(row=_INCREMENT), "case 1 does more than to combine a row: 'store j to aux[b]'"),
        (bag(before="memref.store %f2, %out[%b, %c0] : !T"),
         "case 1 uses 'out' in another way than the pooled loop: store f2 to out[b, c0]"),
        (bag(after="memref.store %f2, %out[%b1, %c0] : !T"),
         "case 2 uses 'out' in another way than the pooled loop: store f2 to out[b1, c0]"),
    ],
)  # fmt: skip
def test_what_the_unit_cannot_run_stays_on_the_host(body: str, reason: str) -> None:
    nest = nest_of(body, opt_level=2)
    assert (nest.execute, nest.reason) == ("host", reason)
    text = f"{_HEAD}{body}  func.return\n}}\n"
    with pytest.raises(UnsupportedError) as caught:
        compile_function(text, opt_level=2, config=CONFIG, may_leave_loops=True, execute="fabric")
    assert str(caught.value) == (
        f"execute code of nest 'kernel' must fit the reduce unit with execute='fabric', but "
        f"{reason}; execute='auto' runs it on the host"
    )
