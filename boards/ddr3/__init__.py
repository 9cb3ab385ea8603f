"""DDR3 SDRAM behind a LiteDRAM controller, which is generated when a board is built."""
