"""What cells do is what the RTL that they were made of does."""

from __future__ import annotations

import ctypes
import re
from itertools import accumulate

import pytest

from ember_hw.boards.gate_level import gate_level_verilog
from ember_hw.errors import ToolError
from ember_hw.sim.verilated import verilated

#: Memories for which yosys takes ports of each width, multipliers of each sign, registers.
#: Reads of what is written in the same cycle are of the old value.
DESIGN = """
module memory #(
    parameter BITS = 8, parameter ADDRESS_BITS = 8, parameter PARTS = 1, parameter PORTS = 1
) (
    input clk, input write, input [PARTS-1:0] parts,
    input [ADDRESS_BITS-1:0] to, input [ADDRESS_BITS-1:0] from, input [BITS-1:0] data,
    output reg [BITS-1:0] first, output reg [BITS-1:0] second
);
    reg [BITS-1:0] words [0:(1<<ADDRESS_BITS)-1];
    integer n;
    always @(posedge clk) begin
        for (n = 0; n < PARTS; n = n + 1)
            if (write && parts[n])
                words[to][n*(BITS/PARTS) +: BITS/PARTS] <= data[n*(BITS/PARTS) +: BITS/PARTS];
        first <= words[from];
        if (PORTS == 2) second <= words[to]; else second <= 0;
    end
endmodule

module circuit (
    input clk, input rst, input write,
    input [13:0] to, input [13:0] from, input [35:0] data, input [3:0] parts,
    output [35:0] wide, output [17:0] half, output [17:0] half_second,
    output [8:0] byte_, output [8:0] byte_second, output bit_,
    output [35:0] unsigned_product, output reg [31:0] signed_product,
    output reg [7:0] count, output [3:0] few_
);
    memory #(36, 9, 4) m1 (clk, write, parts, to[8:0], from[8:0], data, wide,);
    memory #(18, 10, 2, 2)
        m2 (clk, write, parts[1:0], to[9:0], from[9:0], data[17:0], half, half_second);
    memory #(9, 11, 1, 2)
        m3 (clk, write, 1'b1, to[10:0], from[10:0], data[8:0], byte_, byte_second);
    memory #(1, 14) m5 (clk, write, 1'b1, to, from, data[0], bit_,);
    assign unsigned_product = data[17:0] * {to, parts};
    always @(posedge clk) begin
        signed_product <= $signed(data[15:0]) * $signed(data[31:16]);
        if (rst) count <= 8'h5a; else if (write) count <= count + parts;
    end
    reg [3:0] few [0:15];
    always @(posedge clk) if (write) few[to[3:0]] <= data[3:0];
    assign few_ = few[from[3:0]];
endmodule
"""
#: The RTL, its netlist, and one with a fault, side by side: bits that differ from the RTL.
TOP = """
module top (
    input clk, input rst, input write,
    input [13:0] to, input [13:0] from, input [63:0] data, input [3:0] parts,
    output gates_differ, output faulty_differ
);
    wire [170:0] rtl, gates, faulty;
    circuit of_rtl (clk, rst, write, to, from, data[35:0], parts, {rtl});
    circuit_gates of_gates (clk, rst, write, to, from, data[35:0], parts, {gates});
    circuit_faulty of_faulty (clk, rst, write, to, from, data[35:0], parts, {faulty});
    assign gates_differ = rtl != gates;
    assign faulty_differ = rtl != faulty;
endmodule
"""
WIDTHS = (36, 18, 18, 9, 9, 1, 36, 32, 8, 4)
#: Every address is written once before reads count.
HARNESS = """
#include "Vtop.h"
#include <cstdint>
static uint64_t state = 1;
static uint64_t random64() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
extern "C" void count_differing(int64_t cycles, int64_t *found) {
    Vtop top;
    const int64_t filled = 1 << 14;
    for (int64_t cycle = 0; cycle < filled + cycles; cycle++) {
        const bool fills = cycle < filled;
        top.clk = 0;
        top.rst = cycle == 0 || (!fills && random64() % 64 == 0);
        top.write = fills || random64() % 2;
        top.to = fills ? cycle : random64() % 8 ? random64() % filled : top.from;
        top.from = random64() % filled;
        top.data = random64();
        top.parts = fills ? 15 : random64() % 16;
        top.eval();
        found[0] += cycle > filled + 1 && top.gates_differ;
        found[1] += cycle > filled + 1 && top.faulty_differ;
        top.clk = 1;
        top.eval();
    }
}
"""


@pytest.fixture(scope="module")
def gates() -> str:
    return gate_level_verilog(DESIGN, "circuit")


def _ports(name: str) -> str:
    ends = list(accumulate(WIDTHS))
    return ", ".join(f"{name}[{e - 1}:{e - w}]" for e, w in zip(ends, WIDTHS, strict=True))


def _named(gates: str, name: str) -> str:
    return re.sub(r"^module circuit\b", f"module {name}", gates, flags=re.MULTILINE)


@pytest.mark.verilator
@pytest.mark.timeout(600)
def test_gates_do_what_the_rtl_does(gates: str) -> None:
    """And the same with one bit of a product turned around don't."""
    faulty, count = re.subn(r"(assign \\unsigned_product\S*\.product  = )", r"\g<1>1 ^ ", gates)
    assert count == 1
    top = TOP
    for name in ("rtl", "gates", "faulty"):
        top = top.replace(f"{{{name}}}", _ports(name))
    text = top + DESIGN + _named(gates, "circuit_gates") + _named(faulty, "circuit_faulty")
    library = verilated("gates-test", text, HARNESS, optimise="-O1")
    found = (ctypes.c_int64 * 2)()
    library.count_differing(ctypes.c_int64(20_000), found)
    assert found[0] == 0
    assert found[1] > 15_000


def test_gates_have_the_ports_alone_and_no_initial_value(gates: str) -> None:
    assert re.findall(r"^module (\w+)", gates, re.MULTILINE) == ["circuit"]
    assert "initial" not in gates
    assert not re.search(r"^  reg .* = ", gates, re.MULTILINE)


def test_what_has_no_model_ends_synthesis() -> None:
    text = (
        "module circuit (input clk, output q);\n"
        '  MULT18X18D #(.REG_OUTPUT_CLK("CLK0")) m (.A0(clk), .P0(q));\nendmodule\n'
    )
    with pytest.raises(ToolError, match="multiplier_with_registers"):
        gate_level_verilog(text, "circuit")
