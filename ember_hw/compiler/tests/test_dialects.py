# pyright: basic
"""The constructors of the dialects' ops, and what their helpers give.

Text forms and verifier messages are tested by the files of `filecheck/`.
"""

import pytest
from xdsl.dialects import arith, builtin, func
from xdsl.dialects.builtin import IndexType, MemRefType, f32, i1, i64
from xdsl.ir import Block, Region
from xdsl.utils.exceptions import VerifyException

from ember_hw.compiler.dialects import dlc, make_context, slc, slcvec
from ember_hw.compiler.dialects.stream_types import (
    StreamType,
    head_type,
    is_index_or_stream,
    row_type,
    stream_element,
    vector_shape,
    vector_stream,
)
from ember_hw.compiler.ir_text import parse_module

INDEX = IndexType()


def function(*argument_types):
    """A function without a body's ops, and its block."""
    block = Block(arg_types=argument_types)
    return func.FuncOp("f", (argument_types, ()), Region(block)), block


def last(region):
    """The terminator of a region."""
    assert region.block.last_op is not None
    return region.block.last_op


def check(function_op, block):
    """Verify, print and read again."""
    block.add_op(func.ReturnOp())
    module = builtin.ModuleOp([function_op])
    module.verify()
    assert str(parse_module(str(module))) == str(module)
    return str(module)


def test_context_knows_every_dialect_of_the_pipeline():
    names = {dialect.name for dialect in make_context().loaded_dialects}
    assert {"builtin", "func", "scf", "arith", "math", "memref", "vector", "llvm"} <= names
    assert {"slc", "slcvec", "dlc", "au"} <= names


def test_stream_predicates_look_through_streams():
    assert head_type(StreamType(f32)) == f32
    assert head_type(f32) == f32
    assert stream_element(StreamType(f32)) == f32
    assert stream_element(f32) is None
    assert is_index_or_stream(INDEX)
    assert is_index_or_stream(StreamType(INDEX))
    assert not is_index_or_stream(StreamType(i64))


def test_vector_shape_knows_legal_vectors_only():
    assert vector_shape(head_type(vector_stream(8, f32))) == (8, f32)
    assert vector_shape(builtin.VectorType(f32, [5])) is None
    assert vector_shape(builtin.VectorType(f32, [4, 4])) is None
    assert vector_shape(f32) is None


def test_slc_ops_are_built_from_values():
    op, block = function(INDEX, MemRefType(i64, [-(2**63)]), f32)
    n, table, x = block.args
    one = slc.ToStreamOp(arith_one := arith.ConstantOp.from_int_and_width(1, INDEX))
    count = slc.ToStreamOp(n)
    loop = slc.ForOp(one, count, one, [x])
    value = slc.MemStreamOp(table, [loop.induction_variable], nontemporal=True)
    index = slc.CastStreamOp(value)
    total = slc.AluStreamOp(slc.AluKind.ADD, index, loop.induction_variable)
    read = slc.FromStreamOp(total)
    add = arith.AddfOp(loop.execute_args[0], x)
    callback = slc.CallbackOp([f32], Region(Block([read, add, slc.YieldOp(add)])))
    loop.body.block.add_ops([value, index, total, callback, slc.YieldOp(callback.res[0])])
    block.add_ops([arith_one, one, count, loop])
    text = check(op, block)
    assert value.is_nontemporal
    assert callback.yielded == (add.result,)
    assert loop.yielded == (callback.res[0],)
    assert "slc.for" in text


def test_loops_and_callbacks_without_values_get_their_terminator():
    op, block = function(INDEX)
    (n,) = block.args
    loop = slc.ForOp(n, n, n)
    callback = slc.CallbackOp()
    loop.body.block.insert_op_before(callback, last(loop.body))
    block.add_op(loop)
    check(op, block)
    assert loop.yielded == ()
    assert callback.yielded == ()


def test_slcvec_ops_are_built_from_values():
    op, block = function(
        INDEX, MemRefType(f32, [-(2**63), -(2**63)]), head_type(vector_stream(4, i1)), f32
    )
    n, table, mask, x = block.args
    buffer = slcvec.BufStreamOp(f32)
    loop = slcvec.ForOp(n, n, n, mask, 4, init_args=[x])
    lanes = slcvec.MemStreamOp(table, [n, loop.induction_variable], 4, nontemporal=True)
    put = slcvec.ToBufferOp(lanes, buffer, [loop.induction_variable])
    first = slcvec.ExtractOp(loop.induction_variable, 0)
    splat = slcvec.BroadcastOp(first, 8)
    cast = slcvec.TmpVecStreamCastOp(splat)
    loop.body.block.add_ops([lanes, put, first, splat, cast, slcvec.YieldOp(loop.execute_args[0])])
    row = slc.FromStreamOp(buffer)
    chunk = slcvec.FromBufferOp(row, n, head_type(vector_stream(4, f32)))
    body = [
        row,
        chunk,
        slcvec.TmpVecCastOp(chunk),
        slcvec.MaskOp(n, n, n, n, 4),
        slcvec.VecIndvarOp(n, n, n, n, 4),
        slc.YieldOp(),
    ]
    block.add_ops([buffer, loop, slc.CallbackOp([], Region(Block(body)))])
    check(op, block)
    assert loop.lanes == 4
    assert lanes.is_nontemporal
    assert loop.out_mask.type == vector_stream(4, i1)
    assert loop.yielded == (loop.execute_args[0],)


def test_dlc_ops_are_built_from_values():
    op, block = function(INDEX, MemRefType(f32, [-(2**63), -(2**63)]))
    n, table = block.args
    unit = dlc.NewTuOp(n, n, n)
    inner = dlc.NewTuOp(n, n, n, under=0)
    value = dlc.GetIndVarOp(unit)
    row = dlc.RowStreamOp(table, [value], n, nontemporal=True)
    access = dlc.ConfigureAccessEngineOp(
        Region(
            Block(
                [
                    unit,
                    inner,
                    value,
                    row,
                    dlc.RegisterCallbackOp(inner, dlc.Event.BEGIN, 1),
                    dlc.RegisterOperandOp(inner, dlc.Event.BEGIN, row),
                    dlc.YieldOp(),
                ]
            )
        )
    )
    execute = dlc.ComputeLoopOp([1])
    first = dlc.GetVarOp(INDEX)
    second = dlc.IncrementVarOp(2, 3)
    pop = dlc.PopOperandOp(row_type(f32))
    execute.case(1).block.insert_ops_before([pop, first, second], last(execute.case(1)))
    block.add_ops([dlc.SetVarOp(n), dlc.SetVarOp(n, 2), access, execute])
    check(op, block)
    assert access.units == (unit, inner)
    assert row.is_nontemporal
    assert (first.variable, second.variable, second.increment) == (0, 2, 3)
    assert (dlc.IncrementVarOp().increment, dlc.SetVarOp(n, 2).variable) == (1, 2)


def test_a_missing_case_is_named():
    execute = dlc.ComputeLoopOp([1, 4])
    with pytest.raises(KeyError) as error:
        execute.case(2)
    assert error.value.args == ("token must be a case of the compute loop (1, 4), not 2",)


def test_a_stream_of_an_illegal_type_is_refused():
    with pytest.raises(VerifyException) as error:
        StreamType(StreamType(f32))
    assert str(error.value) == (
        "element of a stream must be an index, integer, float, vector or memref, "
        "not !slc.stream<f32>"
    )
