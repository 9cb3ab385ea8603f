# pyright: basic
"""Where a nest goes, and why: what doesn't depend on the statements of its cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.compiler import compile_function
from ember_hw.compiler.backend import reduce_split
from ember_hw.compiler.backend.exports import LimitError
from ember_hw.compiler.backend.reduce_match import HostReason
from ember_hw.compiler.nest import FabricPart, Nest, ResultRow, replay_config
from ember_hw.compiler.tests.kernels import KERNELS
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import Microcode, RowFormat, Source

CONFIG = AcceleratorConfig(
    name="reduces", execute="reduce", streams_per_unit=4, exports=8, row_entries=4
)
SUM = next(kernel for kernel in KERNELS if kernel.name == "eb_sum")

#: Rows of two matrices are added in a third, column by column.
TWO_ROWS = """
func.func @kernel(%idx: memref<?xindex>, %x: memref<?x?xTYPE>, %y: memref<?x?xTYPE>,
                  %out: memref<?x?xTYPE>, %N: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %D = memref.dim %x, %c1 : memref<?x?xTYPE>
  %E = memref.dim %y, %c1 : memref<?x?xTYPE>
  scf.for %i = %c0 to %N step %c1 {
    %r = memref.load %idx[%i] : memref<?xindex>
    scf.for %d = %c0 to %D step %c1 {
      %v = memref.load %x[%r, %d] : memref<?x?xTYPE>
      %a = memref.load %out[%c0, %d] : memref<?x?xTYPE>
      %n = arith.addf %a, %v : TYPE
      memref.store %n, %out[%c0, %d] : memref<?x?xTYPE>
    }
    SECOND
  }
  func.return
}
"""
_SECOND = """
    scf.for %d = %c0 to %E step %c1 {
      %v = memref.load %y[%r, %d] : memref<?x?xTYPE>
      memref.store %v, %out[%i, %d] : memref<?x?xTYPE>
    }
"""


def placed(text: str, config: AcceleratorConfig = CONFIG, **options: Any) -> Nest:
    (nest,) = compile_function(text, config=config, may_leave_loops=True, **options).nests
    return nest


def two_rows(type_: str, second: str = "") -> str:
    return TWO_ROWS.replace("SECOND", second).replace("TYPE", type_)


@pytest.mark.parametrize(
    ("opt_level", "reason"),
    [
        (0, "it has no rows: opt level 0 sends elements, levels 2 and 3 send rows"),
        (1, "its rows come in parts: opt levels 2 and 3 send them whole"),
    ],
)
def test_levels_without_whole_rows(opt_level: int, reason: str) -> None:
    nest = placed(SUM.text, opt_level=opt_level)
    assert (nest.execute, nest.reason, nest.fabric) == ("host", reason, None)


def test_rows_of_several_lengths_do_not_even_pass() -> None:
    nest = placed(two_rows("f32", _SECOND))
    assert nest.reason == "its rows have several lengths, and the unit's results have one"
    assert nest.fabric is None


def test_rows_of_f64_pass() -> None:
    nest = placed(two_rows("f64"))
    assert nest.reason == "rows are of f64, and the unit takes f32, f16 and bf16"
    assert nest.fabric is not None
    assert nest.fabric.operation == "rows"
    (patch,) = [patch for patch in nest.patches if patch.record == "reduce"]
    assert (patch.symbol, patch.scale) == ("x.dim1", 8)


def test_rows_beyond_the_accumulator() -> None:
    tables = {"tab": np.zeros((4, 9000), np.float32)}
    nest = placed(SUM.text, tables=tables)
    assert nest.reason == (
        "a result of 36000 bytes is no multiple of 4 up to 32768, which the accumulator holds"
    )
    assert nest.fabric is None


def test_results_in_memory() -> None:
    nest, streamed = placed(SUM.text, CONFIG.with_changes(results="memory")), placed(SUM.text)
    assert nest.fabric is not None
    assert streamed.fabric is not None
    assert (nest.execute, nest.fabric.operation) == ("fabric", "sum")
    assert nest.fabric.results == streamed.fabric.results
    assert nest.fabric.host.microcode.config.results == "stream"
    # Where they go is the launch's to say.
    assert nest.patches == streamed.patches
    assert set(nest.microcode.records["result"].values()) == {0}


def test_indices_over_the_input_queue() -> None:
    from ember_hw.compiler.dialects.au_program import MemoryStream

    nest = placed(SUM.text)
    stream: Any = object.__new__(MemoryStream)
    object.__setattr__(stream, "queue", True)
    row: Any = type("ARow", (), {"clip": None})
    program: Any = type("AProgram", (), {"rows": [row], "streams": [stream]})
    with pytest.raises(HostReason) as caught:
        reduce_split._check_rows(program, nest)
    assert str(caught.value) == (
        "its indices come over the input queue, and the host has to know them"
    )


def test_a_length_that_no_bundle_holds() -> None:
    records = {"row0": {"length_source": int(Source.SLOT), "length_export": 5}}
    nest = Nest("bags", Microcode(CONFIG, records))
    with pytest.raises(HostReason) as caught:
        reduce_split._length_scalar(nest, 0)
    assert str(caught.value) == "no scalar of its bundles tells the length of its rows"


def test_a_loaded_length_of_small_rows() -> None:
    nest = placed(SUM.text)
    assert nest.fabric is not None
    with pytest.raises(HostReason) as caught:
        reduce_split._with_microcode(nest, nest.fabric, RowFormat.FP16, 1, {0: {}}, 0)
    assert str(caught.value) == (
        "the length of rows that are widened is loaded, and is not a result's"
    )


@pytest.mark.parametrize("part", ["pooled_host", "unpooled_host"])
def test_a_walk_that_does_not_fit(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise LimitError("au: 9 scalars", "bundle_scalars")

    kernel = SUM if part == "pooled_host" else next(k for k in KERNELS if k.name == "transe")
    monkeypatch.setattr(reduce_split, part, refuse)
    nest = placed(kernel.text)
    if part == "pooled_host":
        assert nest.reason == "the host's part doesn't fit its walk: au: 9 scalars"
        assert nest.fabric is not None, "the rows pass"
    else:
        assert nest.fabric is None


def test_the_hosts_part_of_a_sum() -> None:
    nest = placed(SUM.text)
    part = nest.fabric
    assert isinstance(part, FabricPart)
    assert part.begins == {"out": 0.0}
    assert part.results == (ResultRow(0, 1 << CONFIG.traversal_units),)
    assert part.host.microcode.config == replay_config(CONFIG)
    assert part.host.symbols_read == (), "offsets and indices are the unit's"
    assert "store result to out[b, d]" in str(part.host.code)


def test_the_hosts_part_of_a_mean_loads_offsets() -> None:
    part = placed(next(kernel for kernel in KERNELS if kernel.name == "eb_mean").text).fabric
    assert part is not None
    assert part.host.symbols_read == ("off",)
    text = str(part.host.code)
    assert text.index("store result to out") < text.index("divf")
