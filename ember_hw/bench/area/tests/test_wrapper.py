from __future__ import annotations

import re

import pytest

from ember_hw.bench.area.wrapper import Port, ports_of, wrap

VERILOG = """
module \\other (c);
  input c;
endmodule
module unit(clk, rst, data, ready);
  input clk;
  wire clk;
  input [3:0] data;
  output [2:0] ready;
  reg [2:0] ready;
endmodule
"""


def test_ports_are_those_of_the_module_alone() -> None:
    assert ports_of(VERILOG, "unit") == (
        Port("clk", True, 1),
        Port("data", True, 4),
        Port("ready", False, 3),
    )


def test_unknown_module_is_refused() -> None:
    message = "verilog must have a module 'top', not only others"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ports_of(VERILOG, "top")


def test_every_port_has_its_bits_of_a_register() -> None:
    text = wrap(ports_of(VERILOG, "unit"), "unit")
    assert "reg [3:0] stimulus;" in text
    assert "reg [2:0] folded;" in text
    for connection in (".clk(clk)", ".data(stimulus[3:0])", ".ready(response[2:0])"):
        assert connection in text
