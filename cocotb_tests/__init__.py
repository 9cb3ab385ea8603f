"""Protocol tests of the emitted Verilog, driven from Python by cocotb."""
