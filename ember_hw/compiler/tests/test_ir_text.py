# pyright: basic
"""Reading IR text: places in messages, and the reference's printed form."""

import pytest
from xdsl.dialects.builtin import FileLineColLoc

from ember_hw.compiler.ir_text import parse_module, rewrite_reference_text
from ember_hw.errors import CheckError


def test_each_op_knows_its_place():
    module = parse_module(
        "\nfunc.func @f() {\n  %c = arith.constant 1 : index\n  func.return\n}", "k"
    )
    places = {
        op.name: (op.location.filename.data, op.location.line.data, op.location.column.data)
        for op in module.walk()
        if isinstance(op.location, FileLineColLoc)
    }
    assert places["func.func"] == ("k", 2, 1)
    assert places["arith.constant"] == ("k", 3, 3)


def test_a_location_in_the_text_is_kept():
    text = 'func.func @f() {\n  %c = arith.constant 1 : index loc("a.py":7:2)\n  func.return\n}'
    (constant,) = [op for op in parse_module(text).walk() if op.name == "arith.constant"]
    assert str(constant.location) == 'loc("a.py":7:2)'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @f() {\n  slc.bar\n}", "k:3:1: Operation slc.bar is not registered"),
        (
            "func.func private @f(!slc.stream<none>)",
            "k: element of a stream must be an index, integer, float, vector or memref, not none",
        ),
        (
            "func.func @f(%v: index) {\n  %s = slc.to_stream %v : index to !slc.stream<f32>\n"
            "  func.return\n}",
            "'slc.to_stream' (%s, k:2:3): element of the result stream must be the value's type "
            "index, not f32",
        ),
        (
            '"builtin.module"() ({\n  "dlc.yield"() : () -> ()\n}) : () -> ()',
            "'dlc.yield' (k:2:3): 'dlc.yield' expects parent op to be one of "
            "'dlc.configure_access_engine', 'dlc.compute_loop'",
        ),
    ],
)
def test_messages_are_one_line_with_the_place(text, message):
    with pytest.raises(CheckError) as error:
        parse_module(text, "k")
    assert str(error.value) == message


PRINTED = """
func.func @f(%n: index, %m: vector<8xi1>, %f: f32) {
  %r = slcvec.for <bcastx8> (%i && %o) = %n to %n step %n mask %m
      init_args(%a = %f) -> (f32)  : (index && vector<8xi1>)
      -> (!slc.stream<vector<8xindex>> && !slc.stream<vector<8xi1>>) {
    slcvec.yield %a : f32
  } {loopConfig = #slcvec<loop_config bcast>, vectorLength = 8 : index}
  func.return
}
"""


def test_the_printed_form_of_the_reference_is_refused_as_it_stands():
    with pytest.raises(CheckError, match=r"^k:3:\d+: "):
        parse_module(PRINTED, "k")


def test_the_printed_form_of_the_reference_reads_after_rewriting():
    text = str(parse_module(rewrite_reference_text(PRINTED)))
    assert "slcvec.for<8>(%i xx %o) = %n to %n step %n mask %m init_args(%a = %f)" in text
    assert "} {loopConfig = #slcvec<loop_config bcast>}" in text


def test_rewriting_leaves_the_readable_form_alone():
    text = rewrite_reference_text(PRINTED)
    assert rewrite_reference_text(text) == text


def test_a_loop_keeps_the_difference_of_bound_type_and_induction_type():
    text = "slc.for %i = %n to %n step %n : index -> !slc.stream<index> {"
    module = parse_module(f"func.func @f(%n: index) {{\n  {text}\n  }}\n  func.return\n}}")
    assert text in str(module)
