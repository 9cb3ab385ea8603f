"""Arithmetic of the execute side in fabric: IEEE 754 numbers, a fixed number of cycles, no stall.

`float_format` -> `float_add`, `float_multiply`, `float_maximum`, `float_convert`.
"""
