"""A board without a board: a whole top in Verilator, reached through the link's own bytes."""
