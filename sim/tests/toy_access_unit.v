// A stand-in with the access unit's ports, small enough to know each cycle of it by heart.
//
// On start it reads `rows` rows of `beats` beats from base + n * stride, one burst a row, one burst
// a cycle, at most SLOTS in flight, and streams them in order: one bundle a row, then its beats.
// `misdeed` makes it break a rule, so that the harness's checks can be tested.
//
//   0x00 control: bit 0 starts, bit 1 clears irq      0x40 cycle of the first AR handshake
//   0x04 base   0x08 stride   0x0c rows   0x10 beats  0x44 cycle of the first R beat
//   0x14 valid bytes of a row's last beat             0x48 cycle of the latest R beat
//   0x18 event bits of every bundle                   0x4c R beats that weren't OKAY
//   0x1c AXI IDs: 0 one for all, 1 one for each slot  0x50 row beats taken before their bundle
//   0x20 misdeed                                      0x54 low word of the first R beat
//   0x24 ARSIZE                                       0x58 bursts that overtook an older one
//   0x28 bit 0 resets the queues                      0x5c beats that split another ID's burst
//   0xff8 answers SLVERR, 0xffc never
module access_unit #(
    parameter BUS_BYTES = 64,
    parameter ID_BITS = 4,
    parameter ADDRESS_BITS = 40,
    parameter EVENT_BITS = 6,
    parameter SCALARS = 2,
    parameter BUNDLE_BITS = (EVENT_BITS + 32 * SCALARS + 7) / 8 * 8
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
    output [ID_BITS-1:0] m_axi_arid,
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
    input [ID_BITS-1:0] m_axi_rid,
    input [8*BUS_BYTES-1:0] m_axi_rdata,
    input [1:0] m_axi_rresp,
    input m_axi_rlast,
    input m_axi_rvalid,
    output m_axi_rready,
    output [BUNDLE_BITS-1:0] m_axis_bundle_tdata,
    output m_axis_bundle_tvalid,
    input m_axis_bundle_tready,
    output m_axis_bundle_tlast,
    output [8*BUS_BYTES-1:0] m_axis_row_tdata,
    output [BUS_BYTES-1:0] m_axis_row_tkeep,
    output m_axis_row_tvalid,
    input m_axis_row_tready,
    output m_axis_row_tlast,
    output m_axis_aresetn,
    output reg irq
);
    localparam SLOTS = 16;
    localparam SLOT_BEATS = 16;
    localparam DROP_VALID = 1, CHANGE_PAYLOAD = 2, FAIL_ASSERTION = 3, HANG = 4, FIXED_BURST = 5,
               FINISH = 6;

    reg [31:0] base, stride, rows, beats, tail_bytes, events, id_per_slot, misdeed, size;
    reg [31:0] cycle, first_request, first_beat, latest_beat, errors, early_beats, first_word;
    reg [31:0] overtakes, splits;
    reg [31:0] requested, bundles, delivered, beat;
    reg busy, request_seen, beat_seen, row_stalled, queue_reset;
    reg [3:0] receiving, previous;
    reg in_burst;
    reg [4:0] filled [0:SLOTS-1];
    reg [8*BUS_BYTES-1:0] buffer [0:SLOTS*SLOT_BEATS-1];

    // Registers.
    reg write_done, read_done;
    reg [1:0] response;
    reg [31:0] read_value;
    wire write = s_axil_awvalid && s_axil_wvalid && !write_done && s_axil_awaddr != 12'hffc;
    wire read = s_axil_arvalid && !read_done && s_axil_araddr != 12'hffc;
    assign s_axil_awready = write;
    assign s_axil_wready = write;
    assign s_axil_bvalid = write_done;
    assign s_axil_bresp = response;
    assign s_axil_arready = read;
    assign s_axil_rvalid = read_done;
    assign s_axil_rresp = response;
    assign s_axil_rdata = read_value;

    // Reads.
    wire [3:0] slot = requested[3:0];
    assign m_axi_arvalid = busy && requested < rows && requested - delivered < SLOTS;
    assign m_axi_arid = id_per_slot[0] ? slot : 0;
    assign m_axi_araddr = base + requested * stride;
    assign m_axi_arlen = beats[7:0] - 1;
    assign m_axi_arsize = size[2:0];
    assign m_axi_arburst = misdeed == FIXED_BURST ? 0 : 1;
    assign m_axi_arlock = 0;
    assign m_axi_arcache = 3;
    assign m_axi_arprot = 0;
    assign m_axi_arqos = 0;
    assign m_axi_rready = 1;
    wire [3:0] target = id_per_slot[0] ? m_axi_rid : receiving;

    // Output streams.
    wire [3:0] head = delivered[3:0];
    wire last_beat = beat + 1 == beats;
    wire row_waits = delivered < requested && beat < filled[head];
    wire row_taken = m_axis_row_tvalid && m_axis_row_tready;
    assign m_axis_aresetn = !queue_reset;
    assign m_axis_bundle_tvalid = bundles < requested && !queue_reset;
    assign m_axis_bundle_tdata = {~bundles, bundles, events[EVENT_BITS-1:0]};
    assign m_axis_bundle_tlast = bundles + 1 == rows;
    assign m_axis_row_tvalid = row_waits && !queue_reset && !(misdeed == DROP_VALID && row_stalled);
    assign m_axis_row_tdata = buffer[{head, beat[3:0]}] ^ (misdeed == CHANGE_PAYLOAD ? cycle : 0);
    assign m_axis_row_tkeep = last_beat ? {BUS_BYTES{1'b1}} >> (BUS_BYTES - tail_bytes) : ~0;
    assign m_axis_row_tlast = last_beat;

    integer n;
    always @(posedge clk) begin
        cycle <= cycle + 1;

        if (s_axil_bready) write_done <= 0;
        if (write) begin
            write_done <= 1;
            response <= s_axil_awaddr == 12'hff8 ? 2 : 0;
            case (s_axil_awaddr)
                12'h00: begin
                    if (s_axil_wdata[0]) begin
                        busy <= 1;
                        {requested, bundles, delivered, beat} <= 0;
                        {errors, early_beats, overtakes, splits} <= 0;
                        {request_seen, beat_seen, receiving, in_burst} <= 0;
                        for (n = 0; n < SLOTS; n = n + 1) filled[n] <= 0;
                    end
                    if (s_axil_wdata[1]) irq <= 0;
                end
                12'h04: base <= s_axil_wdata;
                12'h08: stride <= s_axil_wdata;
                12'h0c: rows <= s_axil_wdata;
                12'h10: beats <= s_axil_wdata;
                12'h14: tail_bytes <= s_axil_wdata;
                12'h18: events <= s_axil_wdata;
                12'h1c: id_per_slot <= s_axil_wdata;
                12'h20: misdeed <= s_axil_wdata;
                12'h24: size <= s_axil_wdata;
                12'h28: queue_reset <= s_axil_wdata;
                default: ;
            endcase
        end
        if (s_axil_rready) read_done <= 0;
        if (read) begin
            read_done <= 1;
            response <= s_axil_araddr == 12'hff8 ? 2 : 0;
            case (s_axil_araddr)
                12'h40: read_value <= first_request;
                12'h44: read_value <= first_beat;
                12'h48: read_value <= latest_beat;
                12'h4c: read_value <= errors;
                12'h50: read_value <= early_beats;
                12'h54: read_value <= first_word;
                12'h58: read_value <= overtakes;
                12'h5c: read_value <= splits;
                default: read_value <= 0;
            endcase
        end

        if (m_axi_arvalid && m_axi_arready) begin
            requested <= requested + 1;
            if (!request_seen) first_request <= cycle;
            request_seen <= 1;
        end
        if (m_axi_rvalid) begin
            buffer[{target, filled[target][3:0]}] <= m_axi_rdata;
            filled[target] <= filled[target] + 1;
            if (m_axi_rlast) receiving <= receiving + 1;
            if (m_axi_rlast && target != receiving) overtakes <= overtakes + 1;
            if (in_burst && target != previous) splits <= splits + 1;
            {in_burst, previous} <= {!m_axi_rlast, target};
            if (m_axi_rresp != 0) errors <= errors + 1;
            if (!beat_seen) {first_beat, first_word} <= {cycle, m_axi_rdata[31:0]};
            beat_seen <= 1;
            latest_beat <= cycle;
        end

        if (m_axis_bundle_tvalid && m_axis_bundle_tready) bundles <= bundles + 1;
        row_stalled <= row_waits && !m_axis_row_tready;
        if (row_taken) begin
            if (bundles <= delivered) early_beats <= early_beats + 1;
            beat <= last_beat ? 0 : beat + 1;
            if (last_beat) begin
                delivered <= delivered + 1;
                filled[head] <= 0;
            end
        end
        if (busy && delivered == rows && bundles == rows && misdeed != HANG) begin
            busy <= 0;
            irq <= 1;
        end

        if (busy && misdeed == FAIL_ASSERTION) assert (0);
        if (busy && misdeed == FINISH) $finish;

        if (rst) begin
            busy <= 0;
            irq <= 0;
            cycle <= 0;
            {write_done, read_done, queue_reset} <= 0;
            {requested, bundles, delivered, rows} <= 0;
            misdeed <= 0;
            size <= $clog2(BUS_BYTES);
        end
    end
endmodule
