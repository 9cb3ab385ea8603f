// The memory of `BlockMemory` in a simulation: begins as zero.
module block_ram #(
    parameter WIDTH = 8,
    parameter ADDRESS_WIDTH = 1
) (
    input clk,
    input write_en,
    input [ADDRESS_WIDTH - 1:0] write_address,
    input [WIDTH - 1:0] write_data,
    input read_en,
    input [ADDRESS_WIDTH - 1:0] read_address,
    output reg [WIDTH - 1:0] read_data
);
    reg [WIDTH - 1:0] memory[0:(1 << ADDRESS_WIDTH) - 1];

    always @(posedge clk) begin
        if (write_en) memory[write_address] <= write_data;
        if (read_en) read_data <= memory[read_address];
    end
endmodule
