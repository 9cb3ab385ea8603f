// A soft core beside an access unit: local memory, two queue windows, the unit's registers, and one
// memory port each. The top module of `bench softcore`'s simulation.
//
// Addresses of the core:
//   0x0000_0000  local memory, 64 KiB, answers in the cycle of the access
//   0x7000_0000  row queue again, where a core with a data cache caches: a line fill pops a line
//   0x8000_0000  bundle queue: a read waits for a bundle, takes it and gives its event bits
//   0x8000_1000  row queue: a read waits for a word of a row and takes it
//   0x8000_2000  the unit's registers
//   0x8000_3000  markers: a write is reported to the harness with its cycle
//   elsewhere    memory, outside; the unit sees it at the same addresses
module softcore_top #(
    parameter BUS_BYTES = 64,
    parameter BUNDLE_BYTES = 1,
    parameter EVENT_BITS = 6,
    parameter ID_BITS = 1,
    parameter ADDRESS_BITS = 40
) (
    input clk,
    input rst,
    // Fills the local memory while `rst` holds the core.
    input load_valid,
    input [31:0] load_address,
    input [31:0] load_data,
    // Memory of the core: a request lasts one cycle and is always taken. A read of 1 or 8 words is
    // answered a word at a time; a write is over at once.
    output core_read,
    output core_write,
    output [31:0] core_address,
    output core_line,
    output [31:0] core_write_data,
    output [3:0] core_write_strobe,
    input core_data_valid,
    input [31:0] core_data,
    output marker_valid,
    output [31:0] marker,
    output core_stopped,
    // Memory of the unit: AXI4.
    output [ID_BITS-1:0] m_axi_arid,
    output [ADDRESS_BITS-1:0] m_axi_araddr,
    output [7:0] m_axi_arlen,
    output [2:0] m_axi_arsize,
    output m_axi_arvalid,
    input m_axi_arready,
    input [ID_BITS-1:0] m_axi_rid,
    input [8*BUS_BYTES-1:0] m_axi_rdata,
    input [1:0] m_axi_rresp,
    input m_axi_rlast,
    input m_axi_rvalid,
    output m_axi_rready
);
    localparam LOCAL_WORDS = 16384;

    wire fetch_valid, data_valid, data_line, data_ready;
    wire [31:0] fetch_address, data_address, data_write, data_read;
    wire [3:0] data_strobe;
    wire is_write = data_strobe != 0;

    reg [31:0] local_memory [0:LOCAL_WORDS-1];
    wire [13:0] fetch_word = fetch_address[15:2];
    wire [13:0] data_word = data_address[15:2];

    softcore_cpu cpu (
        .clk(clk),
        .rst(rst),
        .fetch_valid(fetch_valid),
        .fetch_address(fetch_address),
        .fetch_ready(fetch_valid),
        .fetch_read(local_memory[fetch_word]),
        .data_valid(data_valid),
        .data_address(data_address),
        .data_line(data_line),
        .data_strobe(data_strobe),
        .data_write(data_write),
        .data_ready(data_ready),
        .data_read(data_read),
        .stopped(core_stopped)
    );

    // Which part of the address space an access goes to.
    wire is_local = data_valid && data_address[31:16] == 16'h0000;
    wire is_io = data_valid && data_address[31];
    wire is_bundle = is_io && data_address[14:12] == 0 && !is_write;
    wire is_row_word = is_io && data_address[14:12] == 1 && !is_write;
    wire is_row_line = data_valid && data_address[31:28] == 4'h7 && !is_write;
    wire is_row = is_row_word || is_row_line;
    wire is_register = is_io && data_address[14:12] == 2;
    wire is_marker = is_io && data_address[14:12] == 3 && is_write;
    wire is_memory = data_valid && !is_local && !is_io && !is_row_line;

    integer n;
    always @(posedge clk) begin
        if (load_valid) local_memory[load_address[15:2]] <= load_data;
        for (n = 0; n < 4; n = n + 1)
            if (is_local && data_strobe[n])
                local_memory[data_word][8*n +: 8] <= data_write[8*n +: 8];
    end

    assign marker_valid = is_marker;
    assign marker = data_write;

    // A read of the core's memory: asked for once, then awaited word by word.
    reg awaits_memory;
    reg [2:0] words_after;
    assign core_read = is_memory && !is_write && !awaits_memory;
    assign core_write = is_memory && is_write;
    assign core_address = data_address;
    assign core_line = data_line;
    assign core_write_data = data_write;
    assign core_write_strobe = data_strobe;
    wire memory_ready = core_write || (awaits_memory && core_data_valid);
    always @(posedge clk) begin
        if (rst) awaits_memory <= 0;
        else if (core_read) begin
            awaits_memory <= 1;
            words_after <= data_line ? 3'd7 : 3'd0;
        end else if (awaits_memory && core_data_valid) begin
            awaits_memory <= words_after != 0;
            words_after <= words_after - 3'd1;
        end
    end

    // The unit's registers: AXI4-Lite, an access at a time.
    reg address_taken, write_taken;
    wire awready, wready, bvalid, arready, register_rvalid;
    wire [31:0] register_rdata;
    wire register_ready = is_register && (is_write ? bvalid : register_rvalid);
    wire awvalid = is_register && is_write && !address_taken;
    wire wvalid = is_register && is_write && !write_taken;
    wire register_arvalid = is_register && !is_write && !address_taken;
    always @(posedge clk) begin
        if (rst || register_ready) begin
            address_taken <= 0;
            write_taken <= 0;
        end else begin
            if ((awvalid && awready) || (register_arvalid && arready)) address_taken <= 1;
            if (wvalid && wready) write_taken <= 1;
        end
    end

    // The row queue, a word at a time; a row's last word also ends its beat.
    localparam WORDS = BUS_BYTES / 4;
    localparam WORD_BITS = $clog2(WORDS);
    wire row_tvalid, bundle_tvalid;
    wire [8*BUS_BYTES-1:0] row_tdata;
    wire [BUS_BYTES-1:0] row_tkeep;
    wire [8*BUNDLE_BYTES-1:0] bundle_tdata;
    reg [WORD_BITS-1:0] row_word;
    wire [WORD_BITS-1:0] next_word = row_word + 1'b1;
    wire ends_beat = next_word == 0 || !row_tkeep[{next_word, 2'b00}];
    wire row_tready = is_row && ends_beat;
    always @(posedge clk) begin
        if (rst) row_word <= 0;
        else if (is_row && row_tvalid) row_word <= ends_beat ? {WORD_BITS{1'b0}} : next_word;
    end

    assign data_ready = is_local || is_marker || memory_ready || register_ready
        || (is_bundle && bundle_tvalid) || (is_row && row_tvalid);
    assign data_read = is_local ? local_memory[data_word]
        : is_bundle ? {{(32-EVENT_BITS){1'b0}}, bundle_tdata[EVENT_BITS-1:0]}
        : is_row ? row_tdata[{row_word, 5'b00000} +: 32]
        : is_register ? register_rdata
        : core_data;

    access_unit access_unit (
        .clk(clk),
        .rst(rst),
        .s_axil_awaddr(data_address[11:0]),
        .s_axil_awprot(3'd0),
        .s_axil_awvalid(awvalid),
        .s_axil_awready(awready),
        .s_axil_wdata(data_write),
        .s_axil_wstrb(4'hf),
        .s_axil_wvalid(wvalid),
        .s_axil_wready(wready),
        .s_axil_bresp(),
        .s_axil_bvalid(bvalid),
        .s_axil_bready(1'b1),
        .s_axil_araddr(data_address[11:0]),
        .s_axil_arprot(3'd0),
        .s_axil_arvalid(register_arvalid),
        .s_axil_arready(arready),
        .s_axil_rdata(register_rdata),
        .s_axil_rresp(),
        .s_axil_rvalid(register_rvalid),
        .s_axil_rready(1'b1),
        .m_axi_arid(m_axi_arid),
        .m_axi_araddr(m_axi_araddr),
        .m_axi_arlen(m_axi_arlen),
        .m_axi_arsize(m_axi_arsize),
        .m_axi_arburst(),
        .m_axi_arlock(),
        .m_axi_arcache(),
        .m_axi_arprot(),
        .m_axi_arqos(),
        .m_axi_arvalid(m_axi_arvalid),
        .m_axi_arready(m_axi_arready),
        .m_axi_rid(m_axi_rid),
        .m_axi_rdata(m_axi_rdata),
        .m_axi_rresp(m_axi_rresp),
        .m_axi_rlast(m_axi_rlast),
        .m_axi_rvalid(m_axi_rvalid),
        .m_axi_rready(m_axi_rready),
        .m_axis_bundle_tdata(bundle_tdata),
        .m_axis_bundle_tvalid(bundle_tvalid),
        .m_axis_bundle_tready(is_bundle),
        .m_axis_bundle_tlast(),
        .m_axis_row_tdata(row_tdata),
        .m_axis_row_tkeep(row_tkeep),
        .m_axis_row_tvalid(row_tvalid),
        .m_axis_row_tready(row_tready),
        .m_axis_row_tlast(),
        .m_axis_aresetn(),
        .irq()
    );
endmodule
