# pyright: basic
"""Soundness: what is accepted, what the mutations of a sound program give, known unsound forms.

Each message stands in `compiler/tests/filecheck/check_dae_*.mlir`.
"""

import pytest

from ember_hw.compiler.dialects import dlc
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.transforms.check_dae import check_dae, find_violations
from ember_hw.compiler.transforms.dlc_rules import push_pop_violations, read_access_program
from ember_hw.errors import CheckError

SLC = """
func.func @shifted_sum(%n: index, %x: memref<?xf32>, %acc: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  slc.for %i = %c0 to %n step %c1 : index -> !slc.stream<index> {
    %k = slc.alu_stream<add> %i, %c1 : !slc.stream<index>, index -> !slc.stream<index>
    %v = slc.mem_stream %x[%k] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
    slc.callback {
      %iv = slc.from_stream %i : !slc.stream<index> to index
      %vv = slc.from_stream %v : !slc.stream<f32> to f32
      %a = memref.load %acc[%iv] : memref<?xf32>
      %s = arith.addf %a, %vv : f32
      memref.store %s, %acc[%iv] : memref<?xf32>
    }
  }
  func.return
}
"""
SLCVEC = """
func.func @copy_row(%r: index, %D: index, %x: memref<?x?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = arith.constant dense<true> : vector<4xi1>
  %st = slc.to_stream %c4 : index to !slc.stream<index>
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  %n = slc.to_stream %D : index to !slc.stream<index>
  %buf = slcvec.buf_stream : !slc.stream<memref<?xf32>>
  slcvec.for<4>(%d xx %dm) = %z to %n step %st mask %t
      : (!slc.stream<index> xx vector<4xi1>)
      -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
    %v = slcvec.mem_stream %x[%r, %d]
        : memref<?x?xf32>[index, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
    slcvec.to_buffer %v, %buf[%d] : !slc.stream<vector<4xf32>>
        -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>]
  } {loopConfig = #slcvec<loop_config bcast>}
  slc.callback {
    %b = slc.from_stream %buf : !slc.stream<memref<?xf32>> to memref<?xf32>
    scf.for %k = %c0 to %D step %c4 {
      %km = slcvec.mask %k %c0 %D %c1 : vector<4xi1>
      %w = slcvec.from_buffer %b[%k] : memref<?xf32>[index] -> vector<4xf32>
      vector.maskedstore %y[%k], %km, %w : memref<?xf32>, vector<4xi1>, vector<4xf32>
    }
  }
  func.return
}
"""
# Bags: token 1 with a weight and a row per lookup, token 2 with the bag's number at its end.
DLC = """
func.func @bags(%B: index, %off: memref<?xindex>, %ix: memref<?xindex>,
                %w: memref<?xf32>, %tab: memref<?x?xf32>, %D: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = slc.to_stream %c1 : index to !slc.stream<index>
  dlc.set_var %c0 {id = 1 : i64} : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %B step %c1 : index into !dlc.tu
    %b = dlc.get_ind_var %t0 : !slc.stream<index>
    %b1 = slc.alu_stream<add> %b, %c1 : !slc.stream<index>, index -> !slc.stream<index>
    %s = slc.mem_stream %off[%b] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
    %e = slc.mem_stream %off[%b1] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
    %t1 = dlc.new_tu %s to %e step %u {under = 0 : i64} : !slc.stream<index> into !dlc.tu
    %j = dlc.get_ind_var %t1 : !slc.stream<index>
    %r = slc.mem_stream %ix[%j] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
    %p = slc.mem_stream %w[%j] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
    %row = dlc.row_stream %tab[%r] len %D
        : memref<?x?xf32>[!slc.stream<index>], index into !slc.stream<memref<?xf32>>
    dlc.register_callback %t1, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t1, ite, %p : !dlc.tu, !slc.stream<f32>
    dlc.register_operand %t1, ite, %row : !dlc.tu, !slc.stream<memref<?xf32>>
    dlc.register_callback %t1, end {id = 2 : i64} : !dlc.tu
    dlc.register_operand %t1, end, %b : !dlc.tu, !slc.stream<index>
  } :
  dlc.compute_loop
  case 1 {
    %pw = dlc.pop_operand : f32
    %v = dlc.pop_operand : memref<?xf32>
    scf.for %d = %c0 to %D step %c1 {
      %x = memref.load %v[%d] : memref<?xf32>
    }
  }
  case 2 {
    %bag = dlc.pop_operand : index
    dlc.increment_var {id = 1 : i64}
  }
  func.return
}
"""


def messages(text, **options):
    return [violation.message for violation in find_violations(parse_module(text), **options)]


@pytest.mark.parametrize("text", [SLC, SLCVEC, DLC])
def test_sound_programs_are_accepted(text):
    check_dae(parse_module(text))


def test_the_error_names_op_place_and_how_many_more():
    text = DLC.replace("dlc.register_operand %t1, ite, %p : !dlc.tu, !slc.stream<f32>", "")
    text = text.replace("dlc.set_var %c0 {id = 1 : i64} : index", "")
    with pytest.raises(CheckError) as error:
        check_dae(parse_module(text, "bags.mlir"))
    assert str(error.value) == (
        "'dlc.compute_loop' (bags.mlir:26:3): operands popped in case 1 must be those pushed "
        "(memref<?xf32>), not (f32, memref<?xf32>) (and 1 more)"
    )


def test_casts_of_the_vectorizer_are_allowed_on_request():
    text = SLCVEC.replace(
        "    slcvec.to_buffer",
        "    %c = slcvec.tmp_vec_stream_cast %d"
        " : !slc.stream<vector<4xindex>> to !slc.stream<index>\n    slcvec.to_buffer",
    )
    assert messages(text) == ["op must be gone after the vectorizer, not left"]
    assert messages(text, allow_temporaries=True) == []


PUSH_P = "    dlc.register_operand %t1, ite, %p : !dlc.tu, !slc.stream<f32>\n"
PUSH_ROW = "    dlc.register_operand %t1, ite, %row : !dlc.tu, !slc.stream<memref<?xf32>>\n"
POP_ROW = "    %v = dlc.pop_operand : memref<?xf32>\n"
LOAD = "      %x = memref.load %v[%d] : memref<?xf32>\n"

MUTATIONS = {
    "an operand is dropped": (PUSH_P, ""),
    "operands are swapped": (PUSH_P + PUSH_ROW, PUSH_ROW + PUSH_P),
    "an operand is pushed twice": (PUSH_P, PUSH_P + PUSH_P),
    "the token's event changes": ("_callback %t1, ite", "_callback %t1, beg"),
    "an operand's event changes": ("_operand %t1, ite, %p", "_operand %t1, end, %p"),
    "the token's unit changes": ("_callback %t1, ite", "_callback %t0, ite"),
    "the token's number changes": ("ite {id = 1", "ite {id = 3"),
    "two tokens are equal": ("ite {id = 1", "ite {id = 2"),
    "a token is dropped": ("    dlc.register_callback %t1, ite {id = 1 : i64} : !dlc.tu\n", ""),
    "a pop moves into a loop": (
        POP_ROW + "    scf.for %d = %c0 to %D step %c1 {\n",
        "    scf.for %d = %c0 to %D step %c1 {\n  " + POP_ROW,
    ),
    "a pop is dropped": ("    %bag = dlc.pop_operand : index\n", ""),
    "a variable isn't set": ("  dlc.set_var %c0 {id = 1 : i64} : index\n", ""),
    "the parent changes": (" {under = 0 : i64}", " {under = 1 : i64}"),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_no_mutation_of_a_sound_program_is_accepted(mutation):
    old, new = MUTATIONS[mutation]
    assert DLC.count(old) == 1
    assert messages(DLC.replace(old, new))


def test_a_result_that_nothing_yields_is_reported():
    text = DLC.replace("dlc.compute_loop\n", "%res = dlc.compute_loop -> index\n")
    assert messages(text) == ["number of results must be 0, not 1"]


def test_chunks_that_overlap_are_reported():
    text = SLCVEC.replace("scf.for %k = %c0 to %D step %c4", "scf.for %k = %c0 to %D step %c1")
    assert messages(text) == ["step of the scf.for over its chunks must be 4, not 1"] * 2


def test_an_element_step_in_a_vector_loop_is_reported():
    text = SLCVEC.replace("slc.to_stream %c4", "slc.to_stream %c1")
    assert messages(text) == ["step must be a constant multiple of 4, not 1"]


def test_an_operand_on_the_end_of_its_own_unit_is_reported():
    text = DLC.replace("end, %b : !dlc.tu", "end, %r : !dlc.tu")
    assert messages(text) == [
        "operand on end of unit 1 must be of a proper ancestor of the unit, not %r of unit 1"
    ]


def test_a_row_that_is_pushed_as_a_vector_is_reported():
    text = DLC.replace(
        "dlc.row_stream %tab[%r] len %D\n"
        "        : memref<?x?xf32>[!slc.stream<index>], index into !slc.stream<memref<?xf32>>",
        "slcvec.mem_stream %tab[%r, %c0] : memref<?x?xf32>[!slc.stream<index>, index] into "
        "!slc.stream<vector<8xf32>>",
    ).replace(
        "%row : !dlc.tu, !slc.stream<memref<?xf32>>", "%row : !dlc.tu, !slc.stream<vector<8xf32>>"
    )
    assert messages(text) == [
        "operands popped in case 1 must be those pushed (f32, vector<8xf32>), "
        "not (f32, memref<?xf32>)"
    ]


def nest(text):
    ops = list(parse_module(text).walk())
    (access,) = [op for op in ops if isinstance(op, dlc.ConfigureAccessEngineOp)]
    (execute,) = [op for op in ops if isinstance(op, dlc.ComputeLoopOp)]
    return access, execute


def test_push_pop_check_of_one_nest():
    assert push_pop_violations(*nest(DLC)) == []
    (violation,) = push_pop_violations(*nest(DLC.replace(PUSH_P, "")))
    assert violation.message == (
        "operands popped in case 1 must be those pushed (memref<?xf32>), not (f32, memref<?xf32>)"
    )


def test_access_program_is_read_with_owners_and_pushes():
    program, violations = read_access_program(nest(DLC)[0])
    assert violations == []
    assert program.parents == [None, 0]
    owners = {value.name_hint: owner for value, owner in program.owners.items()}
    assert owners == {"b": 0, "b1": 0, "s": 0, "e": 0, "j": 1, "r": 1, "p": 1, "row": 1}
    assert {token: len(types) for token, types in program.pushes.items()} == {1: 2, 2: 1}
