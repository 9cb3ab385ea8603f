"""The meaning of each level of IR and of the microcode, in Python and NumPy."""
