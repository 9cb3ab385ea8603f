import re
from dataclasses import replace

import pytest

from ember_hw.errors import ToolError
from ember_hw.sim import build
from ember_hw.sim.build import ModelShape, build_model
from ember_hw.sim.model import VerilatorModel

from .toy import toy_shape, toy_verilog


@pytest.mark.verilator
def test_a_model_is_built_once_and_knows_its_shape(library):
    steps = []
    assert build_model(toy_verilog(), toy_shape(), progress=steps.append) == library
    assert steps == []
    assert (library.parent / "access_unit.v").read_text() == toy_verilog()
    with VerilatorModel(library) as model:
        assert model.shape == toy_shape()


@pytest.mark.verilator
@pytest.mark.slow
def test_another_text_or_option_is_another_model(library, tmp_path):
    steps = []
    text = toy_verilog() + f"// {tmp_path}\n"
    other = build_model(text, toy_shape(), optimise=False, progress=steps.append)
    assert other != library
    assert steps[-2:] == [
        "translating the access unit's Verilog to C++",
        "compiling the access unit's model",
    ]


@pytest.mark.verilator
def test_an_error_in_the_verilog_is_shown():
    text = toy_verilog().replace("assign m_axi_rready = 1;", "assign m_axi_rready = ;")
    message = (
        r"^verilator must compile the access unit's model, but ended with status 1; "
        r"the end of its log:\n.*%Error: access_unit\.v:\d+:\d+: syntax error"
    )
    with pytest.raises(ToolError, match=re.compile(message, re.DOTALL)):
        build_model(text, toy_shape())


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("field", "value", "port"),
    [
        ("bus_bytes", 32, "m_axi_rdata"),
        ("bundle_bytes", 10, "m_axis_bundle_tdata"),
        ("id_bits", 3, "m_axi_arid"),
        ("address_bits", 41, "m_axi_araddr"),
    ],
)
def test_a_shape_that_is_not_the_verilogs_is_shown(field, value, port):
    message = (
        r"^verilator must compile the access unit's model, but ended with status 1; "
        rf"the end of its log:\n.*%Error-WIDTH\w+: harness/simulation_top\.v.*'{port}'"
    )
    with pytest.raises(ToolError, match=re.compile(message, re.DOTALL)):
        build_model(toy_verilog(), replace(toy_shape(), **{field: value}))


def test_cluster_has_no_probes():
    with pytest.raises(ValueError, match=r"^probed_streams must be 0 to 0, not 6$"):
        replace(toy_shape(), units=2, probed_streams=6)


def test_fst_without_its_headers_is_refused(monkeypatch: pytest.MonkeyPatch):
    message = (
        "an FST trace must have the headers lz4.h and zlib.h, and they are not installed; "
        "install liblz4-dev and zlib1g-dev, or trace to a .vcd file"
    )
    monkeypatch.setenv("CXX", "false")  # a compiler that finds no header
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        build.check_fst()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("bus_bytes", 12, "bus_bytes must be 4, 8, 16, 32 or 64, not 12"),
        ("event_bits", 64, "event_bits must be 1 to 63, not 64"),
        ("id_bits", 0, "id_bits must be 1 to 12, not 0"),
        ("address_bits", 65, "address_bits must be 12 to 64, not 65"),
        ("memory_ports", 0, "memory_ports must be 1 to 64, not 0"),
        ("units", 65, "units must be 1 to 64, not 65"),
        ("probed_streams", 33, "probed_streams must be 0 to 32, not 33"),
        ("index_port_bytes", 12, "index_port_bytes must be 0, 4, 8, 16, 32 or 64, not 12"),
        ("index_id_bits", 3, "index_id_bits must be 0 to 0, not 3"),
        ("input_bytes", 3, "input_bytes must be 0, 4, 8, 16, 32 or 64, not 3"),
        ("reduces", 2, "reduces must be 0 to 1, not 2"),
        ("length_bits", 6, "length_bits must be 4 or 8, not 6"),
        ("bundle_bytes", 0, "bundle_bytes must be enough for 6 event bits, not 0"),
    ],
)
def test_impossible_shapes_are_refused(field, value, message):
    shape: ModelShape = toy_shape()
    with pytest.raises(ValueError, match=f"^{message}$"):
        replace(shape, **{field: value})
