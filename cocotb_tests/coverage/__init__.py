"""Lines and bits of the Verilog that the tests reach: ``python -m cocotb_tests.coverage``."""
