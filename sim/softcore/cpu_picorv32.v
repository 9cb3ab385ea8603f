// PicoRV32 (rv32im, no cache) behind the ports that softcore_top expects of a core.
//
// Instructions and data share its port, so the fetch port stays idle.
module softcore_cpu (
    input clk,
    input rst,
    output fetch_valid,
    output [31:0] fetch_address,
    input fetch_ready,
    input [31:0] fetch_read,
    output data_valid,
    output [31:0] data_address,
    output data_line,
    output [3:0] data_strobe,
    output [31:0] data_write,
    input data_ready,
    input [31:0] data_read,
    output stopped
);
    assign fetch_valid = 0;
    assign fetch_address = 0;
    assign data_line = 0;

    // What costs area and buys cycles is on; what this program never uses is off.
    picorv32 #(
        .ENABLE_COUNTERS(0),
        .ENABLE_COUNTERS64(0),
        .BARREL_SHIFTER(1),
        .ENABLE_FAST_MUL(1),
        .ENABLE_DIV(1)
    ) core (
        .clk(clk),
        .resetn(!rst),
        .trap(stopped),
        .mem_valid(data_valid),
        .mem_instr(),
        .mem_ready(data_ready),
        .mem_addr(data_address),
        .mem_wdata(data_write),
        .mem_wstrb(data_strobe),
        .mem_rdata(data_read),
        .mem_la_read(),
        .mem_la_write(),
        .mem_la_addr(),
        .mem_la_wdata(),
        .mem_la_wstrb(),
        .pcpi_valid(),
        .pcpi_insn(),
        .pcpi_rs1(),
        .pcpi_rs2(),
        .pcpi_wr(1'b0),
        .pcpi_rd(32'd0),
        .pcpi_wait(1'b0),
        .pcpi_ready(1'b0),
        .irq(32'd0),
        .eoi(),
        .trace_valid(),
        .trace_data()
    );
endmodule
