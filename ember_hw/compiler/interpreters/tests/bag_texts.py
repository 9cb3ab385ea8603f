"""EmbeddingBag sum by hand at every level: what the passes should make of it, written before them.

Each text is the function `eb_sum(off, idx, tab, out, B)`. `off` has B + 1 entries, `out` starts
at 0. `{V}` stands for the vector length.
"""

from __future__ import annotations

from functools import cache

from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from ember_hw.compiler.dialects import make_context
from ember_hw.compiler.dialects.au import ProgramOp

_SIGNATURE = """
func.func @eb_sum(%off: memref<?xindex>, %idx: memref<?xindex>, %tab: memref<?x?xf32>,
                  %out: memref<?x?xf32>, %B: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
"""
_VECTOR = """
  %cV = arith.constant {V} : index
  %zero = arith.constant dense<0.0> : vector<{V}xf32>
"""
_STREAMS = """
  %s0 = slc.to_stream %c0 : index to !slc.stream<index>
  %s1 = slc.to_stream %c1 : index to !slc.stream<index>
  %sB = slc.to_stream %B : index to !slc.stream<index>
"""

SCF = (
    _SIGNATURE
    + """
  scf.for %b = %c0 to %B step %c1 {
    %b1 = arith.addi %b, %c1 : index
    %s = memref.load %off[%b] : memref<?xindex>
    %e = memref.load %off[%b1] : memref<?xindex>
    scf.for %j = %s to %e step %c1 {
      %r = memref.load %idx[%j] : memref<?xindex>
      scf.for %d = %c0 to %D step %c1 {
        %v = memref.load %tab[%r, %d] : memref<?x?xf32>
        %a = memref.load %out[%b, %d] : memref<?x?xf32>
        %n = arith.addf %a, %v : f32
        memref.store %n, %out[%b, %d] : memref<?x?xf32>
      }
    }
  }
  func.return
}
"""
)

# The two outer loops are the same at every slc and slcvec level.
_OUTER = """
  slc.for %b = %s0 to %sB step %s1 : !slc.stream<index> -> !slc.stream<index> {
    %b1 = slc.alu_stream<add> %b, %s1 : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
    %s = slc.mem_stream %off[%b] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
    %e = slc.mem_stream %off[%b1] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
    slc.for %j = %s to %e step %s1 : !slc.stream<index> -> !slc.stream<index> {
      %r = slc.mem_stream %idx[%j] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
"""
_OUTER_END = """
      slc.yield
    }
    slc.yield
  }
  func.return
}
"""

SLC = (
    _SIGNATURE
    + _STREAMS
    + """
  %sD = slc.to_stream %D : index to !slc.stream<index>
"""
    + _OUTER
    + """
      slc.for %d = %s0 to %sD step %s1 : !slc.stream<index> -> !slc.stream<index> {
        %v = slc.mem_stream %tab[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<index>]
          into !slc.stream<f32>
        slc.callback {
          %bv = slc.from_stream %b : !slc.stream<index> to index
          %dv = slc.from_stream %d : !slc.stream<index> to index
          %vv = slc.from_stream %v : !slc.stream<f32> to f32
          %a = memref.load %out[%bv, %dv] : memref<?x?xf32>
          %n = arith.addf %a, %vv : f32
          memref.store %n, %out[%bv, %dv] : memref<?x?xf32>
          slc.yield
        }
        slc.yield
      }
"""
    + _OUTER_END
)

_VECTOR_LOOP = """
      slcvec.for<{V}>(%d xx %m) = %c0 to %D step %cV mask %all
          : (index xx vector<{V}xi1>)
          -> (!slc.stream<vector<{V}xindex>> xx !slc.stream<vector<{V}xi1>>) {
        %v = slcvec.mem_stream %tab[%r, %d]
          : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<{V}xindex>>]
          into !slc.stream<vector<{V}xf32>>
"""

SLCVEC = (
    _SIGNATURE
    + _VECTOR
    + _STREAMS
    + "  %all = arith.constant dense<true> : vector<{V}xi1>"
    + _OUTER
    + _VECTOR_LOOP
    + """
        %dh = slcvec.extract %d[0 : i64] : !slc.stream<vector<{V}xindex>> -> !slc.stream<index>
        slc.callback {
          %bv = slc.from_stream %b : !slc.stream<index> to index
          %d0 = slc.from_stream %dh : !slc.stream<index> to index
          %vv = slc.from_stream %v : !slc.stream<vector<{V}xf32>> to vector<{V}xf32>
          %mk = slcvec.mask %d0 %c0 %D %c1 : vector<{V}xi1>
          %a = vector.maskedload %out[%bv, %d0], %mk, %zero
            : memref<?x?xf32>, vector<{V}xi1>, vector<{V}xf32> into vector<{V}xf32>
          %n = arith.addf %a, %vv : vector<{V}xf32>
          vector.maskedstore %out[%bv, %d0], %mk, %n
            : memref<?x?xf32>, vector<{V}xi1>, vector<{V}xf32>
          slc.yield
        }
        slcvec.yield
      } {loopConfig = #slcvec<loop_config bcast>}
"""
    + _OUTER_END
)

# The callback over a row: `%bv` and `%row` are given.
_ADD_ROW = """
          scf.for %k = %c0 to %D step %cV {
            %mk = slcvec.mask %k %c0 %D %c1 : vector<{V}xi1>
            %w = slcvec.from_buffer %row[%k] : memref<?xf32>[index] -> vector<{V}xf32>
            %a = vector.maskedload %out[%bv, %k], %mk, %zero
              : memref<?x?xf32>, vector<{V}xi1>, vector<{V}xf32> into vector<{V}xf32>
            %n = arith.addf %a, %w : vector<{V}xf32>
            vector.maskedstore %out[%bv, %k], %mk, %n
              : memref<?x?xf32>, vector<{V}xi1>, vector<{V}xf32>
          }
"""

SLCVEC_ROWS = (
    _SIGNATURE
    + _VECTOR
    + _STREAMS
    + "  %all = arith.constant dense<true> : vector<{V}xi1>"
    + _OUTER
    + "      %buf = slcvec.buf_stream : !slc.stream<memref<?xf32>>"
    + _VECTOR_LOOP
    + """
        slcvec.to_buffer %v, %buf[%d] : !slc.stream<vector<{V}xf32>>
          -> !slc.stream<memref<?xf32>>[!slc.stream<vector<{V}xindex>>]
        slcvec.yield
      } {loopConfig = #slcvec<loop_config bcast>}
      slc.callback {
        %bv = slc.from_stream %b : !slc.stream<index> to index
        %row = slc.from_stream %buf : !slc.stream<memref<?xf32>> to memref<?xf32>
"""
    + _ADD_ROW
    + """
        slc.yield
      }
"""
    + _OUTER_END
)

# The units of bags and lookups are the same at every dlc level.
_UNITS = """
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %s0 to %sB step %s1 : !slc.stream<index> into !dlc.tu
    %b = dlc.get_ind_var %t0 : !slc.stream<index>
    %b1 = slc.alu_stream<add> %b, %s1 : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
    %s = slc.mem_stream %off[%b] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
    %e = slc.mem_stream %off[%b1] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
    %t1 = dlc.new_tu %s to %e step %s1 {under = 0 : i64} : !slc.stream<index> into !dlc.tu
    %j = dlc.get_ind_var %t1 : !slc.stream<index>
    %r = slc.mem_stream %idx[%j] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
"""
_ROW_STREAM = """
    %rs = dlc.row_stream %tab[%r] len %D : memref<?x?xf32>[!slc.stream<index>], index
      into !slc.stream<memref<?xf32>>
"""

DLC_O0 = (
    _SIGNATURE
    + _STREAMS
    + "  %sD = slc.to_stream %D : index to !slc.stream<index>"
    + _UNITS
    + """
    %t2 = dlc.new_tu %s0 to %sD step %s1 {under = 1 : i64} : !slc.stream<index> into !dlc.tu
    %d = dlc.get_ind_var %t2 : !slc.stream<index>
    %v = slc.mem_stream %tab[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<index>]
      into !slc.stream<f32>
    dlc.register_callback %t2, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t2, ite, %b : !dlc.tu, !slc.stream<index>
    dlc.register_operand %t2, ite, %d : !dlc.tu, !slc.stream<index>
    dlc.register_operand %t2, ite, %v : !dlc.tu, !slc.stream<f32>
  } :
  dlc.compute_loop
  case 1 {
    %bv = dlc.pop_operand : index
    %dv = dlc.pop_operand : index
    %vv = dlc.pop_operand : f32
    %a = memref.load %out[%bv, %dv] : memref<?x?xf32>
    %n = arith.addf %a, %vv : f32
    memref.store %n, %out[%bv, %dv] : memref<?x?xf32>
    dlc.yield
  }
  func.return
}
"""
)

DLC_O1 = (
    _SIGNATURE
    + _VECTOR
    + _STREAMS
    + """
  %sD = slc.to_stream %D : index to !slc.stream<index>
  %sV = slc.to_stream %cV : index to !slc.stream<index>
"""
    + _UNITS
    + """
    %t2 = dlc.new_tu %s0 to %sD step %sV {under = 1 : i64} : !slc.stream<index> into !dlc.tu
    %d = dlc.get_ind_var %t2 : !slc.stream<index>
    %v = slcvec.mem_stream %tab[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<index>]
      into !slc.stream<vector<{V}xf32>>
    dlc.register_callback %t2, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t2, ite, %b : !dlc.tu, !slc.stream<index>
    dlc.register_operand %t2, ite, %d : !dlc.tu, !slc.stream<index>
    dlc.register_operand %t2, ite, %v : !dlc.tu, !slc.stream<vector<{V}xf32>>
  } :
  dlc.compute_loop
  case 1 {
    %bv = dlc.pop_operand : index
    %d0 = dlc.pop_operand : index
    %vv = dlc.pop_operand : vector<{V}xf32>
    %mk = slcvec.mask %d0 %c0 %D %c1 : vector<{V}xi1>
    %a = vector.maskedload %out[%bv, %d0], %mk, %zero
      : memref<?x?xf32>, vector<{V}xi1>, vector<{V}xf32> into vector<{V}xf32>
    %n = arith.addf %a, %vv : vector<{V}xf32>
    vector.maskedstore %out[%bv, %d0], %mk, %n
      : memref<?x?xf32>, vector<{V}xi1>, vector<{V}xf32>
    dlc.yield
  }
  func.return
}
"""
)

DLC_O2 = (
    _SIGNATURE
    + _VECTOR
    + _STREAMS
    + _UNITS
    + _ROW_STREAM
    + """
    dlc.register_callback %t1, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t1, ite, %b : !dlc.tu, !slc.stream<index>
    dlc.register_operand %t1, ite, %rs : !dlc.tu, !slc.stream<memref<?xf32>>
  } :
  dlc.compute_loop
  case 1 {
    %bv = dlc.pop_operand : index
    %row = dlc.pop_operand : memref<?xf32>
"""
    + _ADD_ROW
    + """
    dlc.yield
  }
  func.return
}
"""
)

DLC_O3 = (
    _SIGNATURE
    + _VECTOR
    + _STREAMS
    + "  dlc.set_var %c0 {id = 1 : i64} : index"
    + _UNITS
    + _ROW_STREAM
    + """
    dlc.register_callback %t1, ite {id = 2 : i64} : !dlc.tu
    dlc.register_operand %t1, ite, %rs : !dlc.tu, !slc.stream<memref<?xf32>>
    dlc.register_callback %t1, end {id = 1 : i64} : !dlc.tu
  } :
  dlc.compute_loop
  case 1 {
    dlc.increment_var {id = 1 : i64}
    dlc.yield
  }
  case 2 {
    %row = dlc.pop_operand : memref<?xf32>
    %bv = dlc.get_var {id = 1 : i64} : index
"""
    + _ADD_ROW
    + """
    dlc.yield
  }
  func.return
}
"""
)

_AU_ARGUMENTS = """
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "idx" : memref<?xindex>
  au.arg a2 "tab" : memref<?x?xf32>
  au.arg a3 "B" : index
  au.arg a4 "D" : index
  au.arg a5 "tab.pitch" : index
  au.tu t0 = 0 to a3 step 1
  au.mem s0 on t0 = a0[t0] : index
"""

AU_O1 = (
    'au.program @eb_sum target "small" {'
    + _AU_ARGUMENTS
    + """
  au.alu s3 on t0 = add t0, 1
  au.mem s1 on t0 = a0[s3] : index
  au.tu t1 under t0 = s0 to s1 step 1
  au.mem s2 on t1 = a1[t1] : index
  au.tu t2 under t1 = 0 to a4 step {V}
  au.row r0 on t2 = a2[s2 * a5 + t2] len {V} clip t2 to a4 : f32
  au.push t2 ite id 1 (t0, t2, r0)
}
"""
)

AU_O3 = (
    'au.program @eb_sum target "small" {'
    + _AU_ARGUMENTS
    + """
  au.next s1 on t0 = s0
  au.tu t1 under t0 = s0 to s1 step 1
  au.mem s2 on t1 = a1[t1] : index
  au.row r0 on t1 = a2[s2 * a5] len a4 : f32
  au.push t1 ite id 2 (r0)
  au.push t1 end id 1 ()
}
"""
)

LEVELS = {
    "scf": SCF,
    "slc": SLC,
    "slcvec": SLCVEC,
    "slcvec_rows": SLCVEC_ROWS,
    "dlc_O0": DLC_O0,
    "dlc_O1": DLC_O1,
    "dlc_O2": DLC_O2,
    "dlc_O3": DLC_O3,
}
"""Every level that `interpret` runs, in the order of lowering."""


@cache
def parse(text: str, vector_length: int = 4) -> ModuleOp:
    """Parse and verify a text of this file; the module is shared, so leave it as it is."""
    module = Parser(make_context(), text.replace("{V}", str(vector_length))).parse_module()
    module.verify()
    return module


def parse_au(text: str, vector_length: int = 4) -> ProgramOp:
    """Parse and verify a program of this file."""
    (program,) = parse(text, vector_length).ops
    assert isinstance(program, ProgramOp)
    return program
