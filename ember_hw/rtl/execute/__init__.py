"""Arithmetic of the execute side in fabric: IEEE 754 numbers, a fixed number of cycles, no stall.

`float_format` -> `float_combine`, `float_multiply`, `float_convert` -> `row_scale`,
`row_accumulate`; `pass_sequencer`; `reduce_unit` wires them.
"""
