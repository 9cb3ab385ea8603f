import pytest
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import LoadOp

from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.transforms.ir_facts import may_alias, memref_root

TEXT = """
func.func @f(%x: memref<8xf32>, %y: memref<8xf32>) ATTRIBUTES {
  %c0 = arith.constant 0 : index
  %view = "memref.cast"(%x) : (memref<8xf32>) -> memref<?xf32>
  %fresh = memref.alloc() : memref<8xf32>
  %other = memref.alloc() : memref<8xf32>
  %global = memref.get_global @g : memref<8xf32>
  %0 = memref.load %x[%c0] : memref<8xf32>
  %1 = memref.load %y[%c0] : memref<8xf32>
  %2 = memref.load %view[%c0] : memref<?xf32>
  %3 = memref.load %fresh[%c0] : memref<8xf32>
  %4 = memref.load %other[%c0] : memref<8xf32>
  %5 = memref.load %global[%c0] : memref<8xf32>
  func.return
}
"""
X, Y, VIEW, FRESH, OTHER, GLOBAL = range(6)


@pytest.mark.parametrize(
    ("left", "right", "noalias", "expected"),
    [
        (X, X, True, True),
        (X, VIEW, True, True),
        (X, Y, True, False),
        (X, Y, False, True),
        (VIEW, Y, True, False),
        (X, FRESH, False, False),
        (FRESH, OTHER, False, False),
        (GLOBAL, X, True, True),
        (GLOBAL, FRESH, True, True),
    ],
)
def test_roots_overlap_unless_known_not_to(
    left: int, right: int, noalias: bool, expected: bool
) -> None:
    text = TEXT.replace("ATTRIBUTES", "attributes {ember.noalias}" if noalias else "")
    (function,) = (op for op in parse_module(text).ops if isinstance(op, FuncOp))
    roots = [memref_root(op.memref) for op in function.walk() if isinstance(op, LoadOp)]
    assert may_alias(roots[left], roots[right], function) is expected
    assert may_alias(roots[right], roots[left], function) is expected
