"""A controller for SDR SDRAM, and the model of the chip that holds it to its timing."""
