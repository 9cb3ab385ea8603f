"""Cells of the ECP5 that yosys knows the ports of, but not what they do: memories, multipliers.

Only what its mapping uses is here: no output registers, no chip selects, no registers within the
multiplier. Another setting asks for a module that there is not, by which synthesis ends.

Ref: Lattice, ECP5 and ECP5-5G Memory User Guide (FPGA-TN-02204), sysDSP User Guide (FPGA-TN-02205).
"""

from __future__ import annotations

import re

_BYTES = 2048
_INITIAL_VALUES = 64


def cell_models() -> str:
    """Return the Verilog of `DP16KD` and `MULT18X18D`."""
    return _block_memory() + _multiplier()


def _pins(name: str, width: int) -> str:
    return ", ".join(f"{name}{bit}" for bit in reversed(range(width)))


def _block_memory() -> str:
    parameters = "".join(
        f"    parameter [319:0] INITVAL_{number:02X} = 0;\n" for number in range(_INITIAL_VALUES)
    )
    return f"""\
// 16 Kbit in bytes of nine bits. An address counts bits, without the ninth ones; a port of 18 or 36
// bits has byte enables in place of the lowest ones. A port of 36 bits has the data pins of both:
// port A writes so, port B reads so.
module DP16KD (
    input {_pins("DIA", 18)},
    input {_pins("ADA", 14)},
    input CEA, OCEA, CLKA, WEA, RSTA, CSA2, CSA1, CSA0,
    output {_pins("DOA", 18)},
    input {_pins("DIB", 18)},
    input {_pins("ADB", 14)},
    input CEB, OCEB, CLKB, WEB, RSTB, CSB2, CSB1, CSB0,
    output {_pins("DOB", 18)}
);
    parameter DATA_WIDTH_A = 18;
    parameter DATA_WIDTH_B = 18;
    parameter REGMODE_A = "NOREG";
    parameter REGMODE_B = "NOREG";
    parameter RESETMODE = "SYNC";
    parameter ASYNC_RESET_RELEASE = "SYNC";
    parameter CSDECODE_A = "0b000";
    parameter CSDECODE_B = "0b000";
    parameter WRITEMODE_A = "NORMAL";
    parameter WRITEMODE_B = "NORMAL";
    parameter CLKAMUX = "CLKA";
    parameter CLKBMUX = "CLKB";
    parameter GSR = "ENABLED";
{parameters}
    generate
        if (REGMODE_A != "NOREG" || REGMODE_B != "NOREG")
            block_memory_with_output_registers none ();
        if (CSDECODE_A != "0b000" || CSDECODE_B != "0b000")
            block_memory_with_chip_selects none ();
        if (CLKAMUX == "INV" || CLKBMUX == "INV")
            block_memory_with_falling_edges none ();
    endgenerate

    reg [8:0] bytes [0:{_BYTES - 1}];
    wire [17:0] dia = {{{_pins("DIA", 18)}}};
    wire [17:0] dib = {{{_pins("DIB", 18)}}};
{_port("a", "A", "{dib, dia}")}{_port("b", "B", "{18'd0, dib}")}
    wire [35:0] wide = DATA_WIDTH_B == 36 ? read_b : {{read_b[17:0], read_a[17:0]}};
    assign {{{_pins("DOA", 18)}}} = wide[17:0];
    assign {{{_pins("DOB", 18)}}} = wide[35:18];
endmodule
"""


def _port(port: str, capital: str, written: str) -> str:
    """Return one side of the memory: the same text for both, with the names of its pins."""
    lanes = "".join(
        f"            if (WIDTH >= {9 * lane + 9} && enables_p[{lane}])\n"
        f"                bytes[first_p | 11'd{lane}] <= data_p[{9 * lane} +: 9];\n"
        for lane in range(4)
    )
    text = f"""
    wire [13:0] address_p = {{{_pins(f"AD{capital}", 14)}}};
    wire [35:0] data_p = {written};
    wire [10:0] first_p =
        address_p[13:3] & (WIDTH == 36 ? 11'h7fc : WIDTH == 18 ? 11'h7fe : 11'h7ff);
    wire [3:0] enables_p =
        WIDTH == 36 ? address_p[3:0] : WIDTH == 18 ? {{2'd0, address_p[1:0]}} : 4'd1;
    // A port of less than a byte changes some bits of one.
    wire [2:0] bit_p =
        address_p[2:0] & (WIDTH == 4 ? 3'd4 : WIDTH == 2 ? 3'd6 : WIDTH == 1 ? 3'd7 : 3'd0);
    wire [8:0] bits_p = ((9'd1 << WIDTH) - 9'd1) << bit_p;
    wire [8:0] part_p = (bytes[first_p] & ~bits_p) | ((data_p[8:0] << bit_p) & bits_p);
    wire [35:0] whole_p =
        {{bytes[first_p | 11'd3], bytes[first_p | 11'd2], bytes[first_p | 11'd1], bytes[first_p]}}
        >> bit_p;
    reg [35:0] read_p;
    always @(posedge CLKP) begin
        if (CEP && WEP && WIDTH < 9) bytes[first_p] <= part_p;
        if (CEP && WEP && WIDTH >= 9) begin
{lanes}        end
        if (CEP && (!WEP || MODE == "READBEFOREWRITE")) read_p <= whole_p;
        if (CEP && WEP && MODE == "WRITETHROUGH") read_p <= data_p;
        if (RSTP) read_p <= 0;
    end
"""
    text = text.replace("WIDTH", f"DATA_WIDTH_{capital}").replace("MODE", f"WRITEMODE_{capital}")
    text = re.sub(r"\b(CLK|CE|WE|RST)P\b", rf"\g<1>{capital}", text)
    return re.sub(r"_p\b", f"_{port}", text)


def _multiplier() -> str:
    return f"""
module MULT18X18D (
    input {_pins("A", 18)},
    input {_pins("B", 18)},
    input {_pins("C", 18)},
    input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB,
    output {_pins("P", 36)}
);
    parameter REG_INPUTA_CLK = "NONE";
    parameter REG_INPUTB_CLK = "NONE";
    parameter REG_PIPELINE_CLK = "NONE";
    parameter REG_OUTPUT_CLK = "NONE";

    generate
        if (REG_INPUTA_CLK != "NONE" || REG_INPUTB_CLK != "NONE" || REG_PIPELINE_CLK != "NONE"
            || REG_OUTPUT_CLK != "NONE") multiplier_with_registers none ();
    endgenerate

    wire [17:0] a = {{{_pins("A", 18)}}};
    wire [17:0] b = {{{_pins("B", 18)}}};
    wire signed [36:0] product = $signed({{SIGNEDA & A17, a}}) * $signed({{SIGNEDB & B17, b}});
    assign {{{_pins("P", 36)}}} = product[35:0];
endmodule
"""
