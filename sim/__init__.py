"""Verilator model of the access unit, its memory and its execute side; imported as `ember_hw.sim`."""
