"""Links between a host and a board: the frame protocol, in gateware and on the host."""
