"""Passes over the IR; a file bears the command-line name of its pass."""
