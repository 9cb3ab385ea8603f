"""From a board's top to its bitstream: elaboration, synthesis, fit check, route, report."""
