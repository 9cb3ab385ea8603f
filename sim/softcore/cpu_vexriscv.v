// VexRiscv (rv32im, 4 KB instruction cache, 4 KB data cache of 32-byte lines, direct-mapped) behind
// the ports that softcore_top expects of a core. Addresses from 0x8000_0000 on are not cached.
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
    localparam INCREMENTING = 3'b010;

    wire fetch_cyc, fetch_stb, data_cyc, data_stb, data_we;
    wire [29:0] fetch_adr, data_adr;
    wire [3:0] data_sel;
    wire [2:0] data_cti;
    assign fetch_valid = fetch_cyc && fetch_stb;
    assign fetch_address = {fetch_adr, 2'b00};
    assign data_valid = data_cyc && data_stb;
    assign data_address = {data_adr, 2'b00};
    assign data_line = data_cti == INCREMENTING;
    assign data_strobe = data_we ? data_sel : 4'd0;
    assign stopped = 0;

    VexRiscv core (
        .externalResetVector(32'd0),
        .timerInterrupt(1'b0),
        .softwareInterrupt(1'b0),
        .externalInterruptArray(32'd0),
        .iBusWishbone_CYC(fetch_cyc),
        .iBusWishbone_STB(fetch_stb),
        .iBusWishbone_ACK(fetch_ready),
        .iBusWishbone_WE(),
        .iBusWishbone_ADR(fetch_adr),
        .iBusWishbone_DAT_MISO(fetch_read),
        .iBusWishbone_DAT_MOSI(),
        .iBusWishbone_SEL(),
        .iBusWishbone_ERR(1'b0),
        .iBusWishbone_CTI(),
        .iBusWishbone_BTE(),
        .dBusWishbone_CYC(data_cyc),
        .dBusWishbone_STB(data_stb),
        .dBusWishbone_ACK(data_ready),
        .dBusWishbone_WE(data_we),
        .dBusWishbone_ADR(data_adr),
        .dBusWishbone_DAT_MISO(data_read),
        .dBusWishbone_DAT_MOSI(data_write),
        .dBusWishbone_SEL(data_sel),
        .dBusWishbone_ERR(1'b0),
        .dBusWishbone_CTI(data_cti),
        .dBusWishbone_BTE(),
        .clk(clk),
        .reset(rst)
    );
endmodule
