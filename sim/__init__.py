"""Verilator model of the access unit with memory and execute side; imported as `ember_hw.sim`."""
