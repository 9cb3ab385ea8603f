# pyright: basic
"""The pass driver as a command."""

import io

import pytest

from ember_hw.compiler import ember_opt
from ember_hw.compiler.backend.dlc_to_au import DlcToAu
from ember_hw.compiler.pipeline import PASSES
from ember_hw.compiler.transforms.check_dae import CheckDae
from ember_hw.errors import CompileError

GOOD = """
func.func @f(%n: index) {
  %s = slc.to_stream %n : index to !slc.stream<index>
  func.return
}
"""
UNSOUND = """
func.func @f(%s: !slc.stream<index>) {
  %v = slc.from_stream %s : !slc.stream<index> to index
  func.return
}
"""


@pytest.fixture
def run(capsys, monkeypatch):
    def run(text, *arguments):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        code = ember_opt.main(["-", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_prints_the_module(run):
    code, out, err = run(GOOD)
    assert code == 0
    assert err == ""
    assert "%s = slc.to_stream %n : index to !slc.stream<index>" in out


def test_reads_a_file(tmp_path, capsys):
    file = tmp_path / "k.mlir"
    file.write_text(GOOD)
    assert ember_opt.main([str(file), "--print-generic"]) == 0
    assert '%s = "slc.to_stream"(%n) : (index) -> !slc.stream<index>' in capsys.readouterr().out


def test_an_unsound_module_fails_with_one_line(run):
    code, out, err = run(UNSOUND, "-p", "check-dae")
    assert code == 1
    assert out == ""
    assert err == (
        "error: 'slc.from_stream' (%v, <stdin>:3:3): place must be the top level of an "
        "slc.callback, not func.func\n"
    )


def test_parts_are_separate_and_keep_their_lines(run):
    code, out, _ = run(
        GOOD + "// -----" + UNSOUND, "--split-input-file", "--verify-diagnostics", "-p", "check-dae"
    )
    assert code == 0
    assert "slc.to_stream" in out
    assert "// -----\nerror: 'slc.from_stream' (%v, <stdin>:8:3)" in out


def test_ir_after_each_pass_goes_to_stderr(run):
    code, out, err = run(GOOD, "-p", "check-dae", "--print-ir-after-all")
    assert code == 0
    assert err == f"// ----- IR after check-dae\n{out}"


def test_the_printed_form_of_the_reference_is_accepted_on_request(run):
    text = """
    func.func @f(%n: index, %m: vector<8xi1>) {
      slcvec.for <bcastx8> (%i && %o) = %n to %n step %n mask %m
          : (index && vector<8xi1>)
          -> (!slc.stream<vector<8xindex>> && !slc.stream<vector<8xi1>>) {
        slcvec.yield
      } {loopConfig = #slcvec<loop_config bcast>, vectorLength = 8 : index}
      func.return
    }"""
    assert run(text)[0] == 1
    assert run(text, "--reference")[0] == 0


def test_help_lists_every_pass_with_what_it_does(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        ember_opt.main(["--help"])
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    summaries = {line[0]: line[1] for line in lines if len(line) == 2 and line[0] in PASSES}
    assert summaries.keys() == PASSES.keys()
    assert summaries["dlc-to-au"] == (
        "Replace each function by the `au.program` of each of its access programs."
    )


def test_a_function_without_an_access_program_has_no_au_text(run):
    text = 'func.func @f(%n: index) attributes {ember.args = ["n"]} {\n  func.return\n}'
    code, out, err = run(text, "-p", "dlc-to-au")
    assert (code, out) == (1, "")
    assert err == (
        "error: number of access programs of a function must be at least 1, not 0 "
        "(op 'func.func' in function 'f')\n"
    )


def test_the_target_of_au_text_is_an_option():
    (to_au,) = ember_opt.make_passes('dlc-to-au{target="tiny"}')
    assert to_au == DlcToAu(target="tiny")
    (to_au,) = ember_opt.make_passes("dlc-to-au{target=tiny}")
    assert to_au == DlcToAu(target="tiny")


def test_text_in_another_encoding_is_named(tmp_path, capsys):
    file = tmp_path / "k.mlir"
    file.write_bytes(b"// \xff")
    assert ember_opt.main([str(file)]) == 1
    assert capsys.readouterr().err == (
        f"error: {file} must be text in UTF-8: 'utf-8' codec can't decode byte 0xff in position 3: "
        "invalid start byte\n"
    )


def test_a_missing_file_is_named(capsys):
    assert ember_opt.main(["nowhere.mlir"]) == 1
    assert capsys.readouterr().err == (
        "error: [Errno 2] No such file or directory: 'nowhere.mlir'\n"
    )


def test_an_unknown_pass_lists_the_choices():
    with pytest.raises(CompileError) as error:
        ember_opt.make_passes("check-dae,fuse")
    assert str(error.value) == f"pass must be one of {', '.join(sorted(PASSES))}, not 'fuse'"


def test_an_unknown_option_names_the_options_of_the_pass():
    with pytest.raises(CompileError) as error:
        ember_opt.make_passes("check-dae{speed=1}")
    assert str(error.value) == (
        "options in 'check-dae{speed=1}' must fit their passes: "
        'Provided arguments ["speed"] not found in expected arguments ["allow_temporaries"]'
    )


def test_a_broken_pipeline_is_shown():
    with pytest.raises(CompileError) as error:
        ember_opt.make_passes("check-dae{")
    assert str(error.value) == "pipeline must be pass{option=value},pass, not 'check-dae{'"


def test_options_reach_the_pass():
    (check,) = ember_opt.make_passes("check-dae{allow-temporaries=true}")
    assert check == CheckDae(allow_temporaries=True)


def test_registry_names_are_those_of_the_passes():
    assert all(name == pass_type.name for name, pass_type in PASSES.items())
