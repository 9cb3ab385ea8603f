# pyright: basic
import doctest
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, StringAttr, i32, i64
from xdsl.ir import Block, SSAValue

from ember_hw.compiler.frontend import EmbeddingBagSpec, embedding_bag
from ember_hw.compiler.frontend.emit_operation import emit_scf
from ember_hw.host.reference import bit_equal
from ember_hw.host.tests.cases import SMALL_CASES, Case


def _spec(index_dtype: type = np.int64, **options: Any) -> EmbeddingBagSpec:
    return EmbeddingBagSpec(
        **{
            "name": "weight",
            "num_embeddings": 3,
            "embedding_dim": 2,
            "index_dtype": np.dtype(index_dtype),
            "include_last_offset": False,
            "input_names": ("ids", "ends"),
            "two_dimensional": False,
            "indices_name": "ids",
            "offsets_name": "ends",
            "weight": np.zeros((3, 2), np.float32),
            **options,
        }
    )


def _run(block: Block, values: dict[SSAValue, Any]) -> None:
    """Execute the few ops of the emitted function, one at a time."""
    for op in block.ops:
        operands = [values[operand] for operand in op.operands]
        match op:
            case arith.ConstantOp():
                assert isinstance(op.value, IntegerAttr)
                values[op.result] = op.value.value.data
            case memref.DimOp():
                values[op.result] = operands[0].shape[operands[1]]
            case memref.LoadOp():
                values[op.res] = operands[0][tuple(operands[1:])]
            case memref.StoreOp():
                operands[1][tuple(operands[2:])] = operands[0]
            case arith.IndexCastOp():
                values[op.result] = int(operands[0])
            case arith.AddiOp() | arith.AddfOp():
                values[op.result] = operands[0] + operands[1]
            case scf.ForOp():
                for step in range(operands[0], operands[1], operands[2]):
                    values[op.body.block.args[0]] = step
                    _run(op.body.block, values)
            case _:
                assert isinstance(op, scf.YieldOp | func.ReturnOp)


# One Python step per element: the cases that differ in width say nothing new here.
@pytest.mark.parametrize(
    "case",
    [case for case in SMALL_CASES if case.embedding_dim <= 8],
    ids=lambda case: case.name,
)
def test_emitted_loops_give_the_expected_rows(case: Case):
    request = case.request()
    out = np.zeros((request.num_bags, case.embedding_dim), np.float32)
    body = emit_scf(_spec(request.indices.dtype.type)).body.block.first_op
    assert isinstance(body, func.FuncOp)
    arguments = (request.offsets, request.indices, case.table(), out, request.num_bags)
    with np.errstate(invalid="ignore"):
        _run(body.body.block, dict(zip(body.args, arguments, strict=True)))
    assert bit_equal(out, case.expected())


@pytest.mark.parametrize(("dtype", "element"), [(np.int32, i32), (np.int64, i64)])
def test_function_names_its_arguments(dtype, element):
    function = emit_scf(_spec(dtype)).body.block.first_op
    assert isinstance(function, func.FuncOp)
    assert function.sym_name.data == "eb_sum"
    names = [argument.name_hint for argument in function.args]
    assert names == ["off", "idx", "tab", "out", "B"]
    assert function.attributes["ember.args"] == ArrayAttr([StringAttr(n or "") for n in names])
    assert "ember.noalias" in function.attributes
    types = [str(argument.type) for argument in function.args]
    assert types[1:] == [f"memref<?x{element}>", *["memref<?x?xf32>"] * 2, str(IndexType())]
    assert types[0] == "memref<?xi64>"


def test_examples_of_the_docstrings_hold():
    results = doctest.testmod(embedding_bag)
    assert results.attempted > 0
    assert results.failed == 0
