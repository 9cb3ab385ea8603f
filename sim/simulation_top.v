// The access unit with every input behind a register; the top module of the simulation.
//
// The harness decides a cycle's inputs before the edge that begins the cycle, so the unit sees them
// in that very cycle. No logic hangs on a top-level input this way, and Verilator evaluates all of
// it once a cycle, at the edge, instead of three times.
module simulation_top #(
    parameter BUS_BYTES = 64,
    parameter BUNDLE_BYTES = 1,
    parameter ID_BITS = 1,
    parameter ADDRESS_BITS = 40
) (
    input clk,
    input rst,
    input [11:0] s_axil_awaddr,
    input s_axil_awvalid,
    output s_axil_awready,
    input [31:0] s_axil_wdata,
    input s_axil_wvalid,
    output s_axil_wready,
    output [1:0] s_axil_bresp,
    output s_axil_bvalid,
    input s_axil_bready,
    input [11:0] s_axil_araddr,
    input s_axil_arvalid,
    output s_axil_arready,
    output [31:0] s_axil_rdata,
    output [1:0] s_axil_rresp,
    output s_axil_rvalid,
    input s_axil_rready,
    output [ID_BITS-1:0] m_axi_arid,
    output [ADDRESS_BITS-1:0] m_axi_araddr,
    output [7:0] m_axi_arlen,
    output [2:0] m_axi_arsize,
    output [1:0] m_axi_arburst,
    output m_axi_arvalid,
    input m_axi_arready,
    input [ID_BITS-1:0] m_axi_rid,
    input [8*BUS_BYTES-1:0] m_axi_rdata,
    input [1:0] m_axi_rresp,
    input m_axi_rlast,
    input m_axi_rvalid,
    output m_axi_rready,
    output [8*BUNDLE_BYTES-1:0] m_axis_bundle_tdata,
    output m_axis_bundle_tvalid,
    input m_axis_bundle_tready,
    output m_axis_bundle_tlast,
    output [8*BUS_BYTES-1:0] m_axis_row_tdata,
    output [BUS_BYTES-1:0] m_axis_row_tkeep,
    output m_axis_row_tvalid,
    input m_axis_row_tready,
    output m_axis_row_tlast,
    output m_axis_aresetn,
    output irq
);
    reg reset, awvalid, wvalid, bready, register_arvalid, register_rready;
    reg [11:0] awaddr, register_araddr;
    reg [31:0] wdata;
    reg arready, rvalid, rlast, bundle_tready, row_tready;
    reg [ID_BITS-1:0] rid;
    reg [8*BUS_BYTES-1:0] rdata;
    reg [1:0] rresp;

    always @(posedge clk) begin
        reset <= rst;
        awaddr <= s_axil_awaddr;
        awvalid <= s_axil_awvalid;
        wdata <= s_axil_wdata;
        wvalid <= s_axil_wvalid;
        bready <= s_axil_bready;
        register_araddr <= s_axil_araddr;
        register_arvalid <= s_axil_arvalid;
        register_rready <= s_axil_rready;
        arready <= m_axi_arready;
        rid <= m_axi_rid;
        rdata <= m_axi_rdata;
        rresp <= m_axi_rresp;
        rlast <= m_axi_rlast;
        rvalid <= m_axi_rvalid;
        bundle_tready <= m_axis_bundle_tready;
        row_tready <= m_axis_row_tready;
    end

    access_unit access_unit (
        .clk(clk),
        .rst(reset),
        .s_axil_awaddr(awaddr),
        .s_axil_awprot(3'd0),
        .s_axil_awvalid(awvalid),
        .s_axil_awready(s_axil_awready),
        .s_axil_wdata(wdata),
        .s_axil_wstrb(4'hf),
        .s_axil_wvalid(wvalid),
        .s_axil_wready(s_axil_wready),
        .s_axil_bresp(s_axil_bresp),
        .s_axil_bvalid(s_axil_bvalid),
        .s_axil_bready(bready),
        .s_axil_araddr(register_araddr),
        .s_axil_arprot(3'd0),
        .s_axil_arvalid(register_arvalid),
        .s_axil_arready(s_axil_arready),
        .s_axil_rdata(s_axil_rdata),
        .s_axil_rresp(s_axil_rresp),
        .s_axil_rvalid(s_axil_rvalid),
        .s_axil_rready(register_rready),
        .m_axi_arid(m_axi_arid),
        .m_axi_araddr(m_axi_araddr),
        .m_axi_arlen(m_axi_arlen),
        .m_axi_arsize(m_axi_arsize),
        .m_axi_arburst(m_axi_arburst),
        .m_axi_arlock(),
        .m_axi_arcache(),
        .m_axi_arprot(),
        .m_axi_arqos(),
        .m_axi_arvalid(m_axi_arvalid),
        .m_axi_arready(arready),
        .m_axi_rid(rid),
        .m_axi_rdata(rdata),
        .m_axi_rresp(rresp),
        .m_axi_rlast(rlast),
        .m_axi_rvalid(rvalid),
        .m_axi_rready(m_axi_rready),
        .m_axis_bundle_tdata(m_axis_bundle_tdata),
        .m_axis_bundle_tvalid(m_axis_bundle_tvalid),
        .m_axis_bundle_tready(bundle_tready),
        .m_axis_bundle_tlast(m_axis_bundle_tlast),
        .m_axis_row_tdata(m_axis_row_tdata),
        .m_axis_row_tkeep(m_axis_row_tkeep),
        .m_axis_row_tvalid(m_axis_row_tvalid),
        .m_axis_row_tready(row_tready),
        .m_axis_row_tlast(m_axis_row_tlast),
        .m_axis_aresetn(m_axis_aresetn),
        .irq(irq)
    );
endmodule
