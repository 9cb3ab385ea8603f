// Two toy access units behind one register port, each with its own channel, and an index stream
// each that takes a beat every second cycle. The first byte of a beat must be its number.
module access_cluster (
    input clk,
    input rst,
    input [12:0] s_axil_awaddr,
    input [2:0] s_axil_awprot,
    input s_axil_awvalid,
    output s_axil_awready,
    input [31:0] s_axil_wdata,
    input [3:0] s_axil_wstrb,
    input s_axil_wvalid,
    output s_axil_wready,
    output [1:0] s_axil_bresp,
    output s_axil_bvalid,
    input s_axil_bready,
    input [12:0] s_axil_araddr,
    input [2:0] s_axil_arprot,
    input s_axil_arvalid,
    output s_axil_arready,
    output [31:0] s_axil_rdata,
    output [1:0] s_axil_rresp,
    output s_axil_rvalid,
    input s_axil_rready,
    `PORTS
    output [1:0] m_axis_aresetn,
    output [1:0] irq
);
    // The toy answers in the cycle after an access, so the address still says whose answer it is.
    wire write_unit = s_axil_awaddr[12];
    wire read_unit = s_axil_araddr[12];
    wire [1:0] awready, wready, bvalid, arready, rvalid;
    wire [3:0] bresp, rresp;
    wire [63:0] rdata;
    assign s_axil_awready = awready[write_unit];
    assign s_axil_wready = wready[write_unit];
    assign s_axil_bvalid = |bvalid;
    assign s_axil_bresp = bvalid[1] ? bresp[3:2] : bresp[1:0];
    assign s_axil_arready = arready[read_unit];
    assign s_axil_rvalid = |rvalid;
    assign s_axil_rresp = rvalid[1] ? rresp[3:2] : rresp[1:0];
    assign s_axil_rdata = rvalid[1] ? rdata[63:32] : rdata[31:0];

    `UNITS
endmodule
