from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ember_hw.demo.run import make_table
from ember_hw.host.tests.programs import bag_program


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "bag.ember"
    bag_program(make_table(1)[:100]).save(path)
    return path


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    path = tmp_path / "inputs.npz"
    np.savez(path, offsets=np.array([0, 2, 2]), indices=np.array([5, 99, 7]))
    return path


def test_run_writes_the_pooled_rows_and_verifies_them(
    ember_hw, program: Path, inputs: Path, tmp_path: Path, capsys
) -> None:
    output = tmp_path / "pooled.npy"
    options = ("--backend", "interpreter", "--verify", "--json", "-o", output)
    assert ember_hw("run", program, "--inputs", inputs, *options) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["backend"], facts["lookups"], facts["mismatches"]) == ("interpreter", 3, 0)
    table = make_table(1)
    expected = np.stack([table[5] + table[99], np.zeros(64, np.float32), table[7]])
    assert np.array_equal(np.load(output), expected)


def test_run_writes_its_report(ember_hw, program: Path, inputs: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    assert ember_hw("run", program, "--inputs", inputs, "-b", "interpreter", "--report", path) == 0
    assert json.loads(path.read_text())["lookups"] == 3


def test_report_that_can_t_be_written_is_refused_before_the_run(
    ember_hw, program: Path, inputs: Path, tmp_path: Path, capsys
) -> None:
    path = tmp_path / "run.pdf"
    assert ember_hw("run", program, "--inputs", inputs, "-b", "interpreter", "--report", path) == 1
    shown = capsys.readouterr().err
    assert "reading" not in shown
    assert f"not {str(path)!r}" in shown


def test_unnamed_arrays_are_inputs_in_order(
    ember_hw, program: Path, tmp_path: Path, capsys
) -> None:
    inputs = tmp_path / "unnamed.npz"
    np.savez(inputs, np.array([3]), np.array([0]))
    assert ember_hw("run", program, "--inputs", inputs, "-b", "interpreter", "--verify") == 0
    assert "exact reference         0 of 1 rows differ\n" in capsys.readouterr().out


def test_difference_from_the_reference_is_an_error(
    ember_hw, program: Path, inputs: Path, capsys, monkeypatch
) -> None:
    from ember_hw.host.bindings import embedding_bag

    monkeypatch.setattr(embedding_bag, "exact", lambda *_: np.ones((3, 64), np.float32))
    options = ("--backend", "interpreter", "--verify")
    assert ember_hw("run", program, "--inputs", inputs, *options) == 1
    assert "exact reference         3 of 3 rows differ\n" in capsys.readouterr().out


def test_trace_of_a_backend_without_a_clock_is_a_sentence(
    ember_hw, program: Path, inputs: Path, tmp_path: Path, capsys
) -> None:
    options = ("--backend", "interpreter", "--trace", tmp_path / "run.vcd")
    assert ember_hw("run", program, "--inputs", inputs, *options) == 1
    assert capsys.readouterr().err.endswith(
        "ember-hw: option of backend 'interpreter' must be left out, not 'trace'\n"
    )


def test_index_outside_the_table_is_a_sentence(
    ember_hw, program: Path, tmp_path: Path, capsys
) -> None:
    inputs = tmp_path / "outside.npz"
    np.savez(inputs, indices=np.array([5, 100]), offsets=np.array([0]))
    assert ember_hw("run", program, "--inputs", inputs, "--backend", "verilator") == 1
    shown = capsys.readouterr().err
    assert "opening" not in shown
    assert shown.endswith(
        "ember-hw: indices[1] must be in [0, 100), the rows of table 'weight', not 100\n"
    )


def test_a_table_is_packed_on_the_way(ember_hw, tmp_path: Path, capsys) -> None:
    model, program, output = (tmp_path / name for name in ("m.py", "p.ember", "out.npy"))
    inputs = tmp_path / "inputs.npz"
    np.savez(inputs, np.array([5, 99, 7]), np.array([0, 2, 2]))
    model.write_text(
        "import torch\n"
        "bag = torch.nn.EmbeddingBag(100, 8, mode='sum')\n"
        "example_inputs = torch.tensor([1]), torch.tensor([0])\n"
    )
    options = ("--quantize", "weight=int8", "--output-dtype", "float16", "--seed", 1)
    assert ember_hw("compile", f"{model}:bag", "-o", program, *options) == 0
    options = ("--backend", "interpreter", "--verify", "-o", output)
    assert ember_hw("run", program, "--inputs", inputs, *options) == 0
    assert np.load(output).dtype == np.float16
    assert "0 of 3 rows differ" in capsys.readouterr().out


LOOPS = """
func.func @pairs(%rows: memref<?xindex>, %x: memref<?x2xf32>, %a: memref<?xf32>,
                 %b: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %r = memref.load %rows[%i] : memref<?xindex>
    %v = memref.load %x[%r, %c0] : memref<?x2xf32>
    %w = memref.load %x[%r, %c1] : memref<?x2xf32>
    memref.store %v, %a[%i] : memref<?xf32>
    memref.store %w, %b[%i] : memref<?xf32>
  }
  func.return
}
"""


def test_loops_of_one_s_own_are_compiled_and_run(ember_hw, tmp_path: Path, capsys) -> None:
    source, tables, inputs = (tmp_path / name for name in ("l.mlir", "t.npz", "i.npz"))
    source.write_text(LOOPS)
    np.savez(tables, x=np.arange(6, dtype=np.float32).reshape(3, 2))
    zeros = np.zeros(2, np.float32)
    np.savez(inputs, rows=np.array([2, 1]), a=zeros, b=zeros, n=2)
    program, output = tmp_path / "l.ember", tmp_path / "out.npz"
    assert ember_hw("compile", source, "-o", program, "--tables", tables, "-O", 0, "--json") == 0
    assert json.loads(capsys.readouterr().out)["inputs"] == ["rows", "a", "b", "n"]
    options = ("-b", "interpreter", "--verify", "-o", output)
    assert ember_hw("run", program, "--inputs", inputs, *options) == 0
    assert "exact reference         0 of 4 rows differ\n" in capsys.readouterr().out
    with np.load(output) as results:
        assert [results[name].tolist() for name in results] == [[4, 2], [5, 3]]


def test_options_of_the_other_kind_of_model_are_refused(ember_hw, tmp_path: Path, capsys) -> None:
    source = tmp_path / "l.mlir"
    source.write_text(LOOPS)
    assert ember_hw("compile", source, "-o", tmp_path / "p", "--seed", 1) == 1
    message = f"inputs, seed, quantize and output-dtype must be left out with {source}\n"
    assert message in capsys.readouterr().err
    assert ember_hw("compile", source, "-o", tmp_path / "p", "--quantize", "x=int8") == 1
    assert message in capsys.readouterr().err
    assert ember_hw("compile", "m.py:bag", "-o", tmp_path / "p", "--quantize", "int8") == 1
    assert "quantize must be TABLE=FORMAT, as weight=int8, not 'int8'\n" in capsys.readouterr().err
    np.savez(tmp_path / "t.npz", x=np.zeros((1, 2)))
    tables = ("--tables", tmp_path / "t.npz")
    assert ember_hw("compile", "m.py:bag", "-o", tmp_path / "p", *tables) == 1
    assert "tables must be left out with m.py:bag, which has its own\n" in capsys.readouterr().err
    assert ember_hw("compile", tmp_path / "no.mlir", "-o", tmp_path / "p") == 1
    assert "model must name a file that exists, not '" in capsys.readouterr().err
