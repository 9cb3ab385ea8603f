"""A soft core beside the access unit, simulated: what an FPGA engineer would have without it."""
