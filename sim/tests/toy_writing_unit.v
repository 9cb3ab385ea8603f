// A stand-in that writes: `bursts` bursts of `beats` beats from `base` on, one behind the other.
//
// Beat n carries 7 * n + lane in each byte. `misdeed` makes it break a rule.
//
//   0x00 control: bit 0 starts, bit 1 clears irq   0x40 answers that were OKAY
//   0x04 base   0x08 bursts   0x0c beats           0x44 SLVERR   0x48 DECERR
//   0x10 bytes of the last beat of all             0x4c cycle of the latest beat
//   0x14 misdeed   0x18 AWSIZE                     0x50 cycle of the latest answer
//   0x1c order: 0 addresses beside their beats, 1 before them, 2 behind them
module access_unit #(
    parameter BUS_BYTES = 16,
    parameter ADDRESS_BITS = 40
) (
    input clk,
    input rst,
    input [11:0] s_axil_awaddr,
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
    input [11:0] s_axil_araddr,
    input [2:0] s_axil_arprot,
    input s_axil_arvalid,
    output s_axil_arready,
    output [31:0] s_axil_rdata,
    output [1:0] s_axil_rresp,
    output s_axil_rvalid,
    input s_axil_rready,
    output [3:0] m_axi_arid,
    output [ADDRESS_BITS-1:0] m_axi_araddr,
    output [7:0] m_axi_arlen,
    output [2:0] m_axi_arsize,
    output [1:0] m_axi_arburst,
    output m_axi_arlock,
    output [3:0] m_axi_arcache,
    output [2:0] m_axi_arprot,
    output [3:0] m_axi_arqos,
    output m_axi_arvalid,
    input m_axi_arready,
    input [3:0] m_axi_rid,
    input [8*BUS_BYTES-1:0] m_axi_rdata,
    input [1:0] m_axi_rresp,
    input m_axi_rlast,
    input m_axi_rvalid,
    output m_axi_rready,
    output m_axi_result_awid,
    output [ADDRESS_BITS-1:0] m_axi_result_awaddr,
    output [7:0] m_axi_result_awlen,
    output [2:0] m_axi_result_awsize,
    output [1:0] m_axi_result_awburst,
    output m_axi_result_awlock,
    output [3:0] m_axi_result_awcache,
    output [2:0] m_axi_result_awprot,
    output [3:0] m_axi_result_awqos,
    output m_axi_result_awvalid,
    input m_axi_result_awready,
    output reg [8*BUS_BYTES-1:0] m_axi_result_wdata,
    output [BUS_BYTES-1:0] m_axi_result_wstrb,
    output m_axi_result_wlast,
    output m_axi_result_wvalid,
    input m_axi_result_wready,
    input m_axi_result_bid,
    input [1:0] m_axi_result_bresp,
    input m_axi_result_bvalid,
    output m_axi_result_bready,
    output m_axis_aresetn,
    output reg irq
);
    localparam DROP_VALID = 1, CHANGE_PAYLOAD = 2, EARLY_LAST = 3, WIDE_STROBES = 4,
               FIXED_BURST = 5;

    reg [31:0] base, bursts, beats, tail_bytes, misdeed, size, order;
    reg [31:0] cycle, latest_beat, latest_answer;
    reg [31:0] asked, sent, beat, number, good, slave_errors, decode_errors;
    reg busy, stalled;

    // Registers.
    reg write_done, read_done;
    reg [31:0] read_value;
    wire write = s_axil_awvalid && s_axil_wvalid && !write_done;
    wire read = s_axil_arvalid && !read_done;
    assign s_axil_awready = write;
    assign s_axil_wready = write;
    assign s_axil_bvalid = write_done;
    assign s_axil_bresp = 0;
    assign s_axil_arready = read;
    assign s_axil_rvalid = read_done;
    assign s_axil_rresp = 0;
    assign s_axil_rdata = read_value;
    assign m_axis_aresetn = 1;

    // It reads nothing.
    assign {m_axi_arid, m_axi_araddr, m_axi_arlen, m_axi_arsize, m_axi_arburst, m_axi_arlock} = 0;
    assign {m_axi_arcache, m_axi_arprot, m_axi_arqos, m_axi_arvalid} = 0;
    assign m_axi_rready = 1;

    // Writes.
    wire [31:0] beat_address = base + (number << size);
    wire [31:0] lane = beat_address & (BUS_BYTES - 1);
    wire is_final = sent + 1 == bursts && beat + 1 == beats;
    wire [31:0] valid_bytes = is_final ? tail_bytes : 1 << size;
    wire [BUS_BYTES-1:0] lanes = ({{BUS_BYTES{1'b0}}, 1'b1} << valid_bytes) - 1;
    assign m_axi_result_awid = 0;
    assign m_axi_result_awaddr = base + ((asked * beats) << size);
    assign m_axi_result_awlen = beats[7:0] - 1;
    assign m_axi_result_awsize = size[2:0];
    assign m_axi_result_awburst = misdeed == FIXED_BURST ? 0 : 1;
    assign {m_axi_result_awlock, m_axi_result_awcache} = 5'd15;
    assign {m_axi_result_awprot, m_axi_result_awqos} = 0;
    assign m_axi_result_awvalid = busy && asked < bursts && !(order == 2 && sent <= asked)
                                  && !(misdeed == DROP_VALID && stalled);
    assign m_axi_result_wvalid = busy && sent < bursts && !(order == 1 && asked <= sent);
    assign m_axi_result_wlast = beat + 1 == beats || misdeed == EARLY_LAST;
    assign m_axi_result_wstrb = misdeed == WIDE_STROBES ? ~0 : lanes << lane;
    assign m_axi_result_bready = cycle[0];  // answers wait for it

    integer n;
    always @(*) begin
        for (n = 0; n < BUS_BYTES; n = n + 1)
            m_axi_result_wdata[8*n+:8] = 7 * number[7:0] + n[7:0]
                                         + (misdeed == CHANGE_PAYLOAD ? cycle[7:0] : 0);
    end

    always @(posedge clk) begin
        cycle <= cycle + 1;
        stalled <= m_axi_result_awvalid && !m_axi_result_awready;
        if (s_axil_bready) write_done <= 0;
        if (s_axil_rready) read_done <= 0;
        if (m_axi_result_awvalid && m_axi_result_awready) asked <= asked + 1;
        if (m_axi_result_wvalid && m_axi_result_wready) begin
            number <= number + 1;
            latest_beat <= cycle;
            beat <= beat + 1 == beats ? 0 : beat + 1;
            if (beat + 1 == beats) sent <= sent + 1;
        end
        if (m_axi_result_bvalid && m_axi_result_bready) begin
            latest_answer <= cycle;
            good <= good + (m_axi_result_bresp == 0);
            slave_errors <= slave_errors + (m_axi_result_bresp == 2);
            decode_errors <= decode_errors + (m_axi_result_bresp == 3);
        end
        if (busy && good + slave_errors + decode_errors == bursts) begin
            busy <= 0;
            irq <= 1;
        end
        if (write) begin
            write_done <= 1;
            case (s_axil_awaddr)
                12'h00: begin
                    if (s_axil_wdata[0]) begin
                        busy <= 1;
                        irq <= 0;
                        {asked, sent, beat, number} <= 0;
                        {good, slave_errors, decode_errors} <= 0;
                    end
                    if (s_axil_wdata[1]) irq <= 0;
                end
                12'h04: base <= s_axil_wdata;
                12'h08: bursts <= s_axil_wdata;
                12'h0c: beats <= s_axil_wdata;
                12'h10: tail_bytes <= s_axil_wdata;
                12'h14: misdeed <= s_axil_wdata;
                12'h18: size <= s_axil_wdata;
                12'h1c: order <= s_axil_wdata;
                default: ;
            endcase
        end
        if (read) begin
            read_done <= 1;
            case (s_axil_araddr)
                12'h40: read_value <= good;
                12'h44: read_value <= slave_errors;
                12'h48: read_value <= decode_errors;
                12'h4c: read_value <= latest_beat;
                12'h50: read_value <= latest_answer;
                default: read_value <= 0;
            endcase
        end
        if (rst) begin
            {busy, irq, write_done, read_done, stalled} <= 0;
            cycle <= 0;
        end
    end
endmodule
