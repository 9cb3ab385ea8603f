"""Embedding operations in scf, as a user would write them, beside hand-written programs.

A case is one of them with its inputs: `cases` has all that the suites `hand` and `ablation` run,
`generated` makes programs of the scf text, `formulas` what their queues carry a lookup.
"""
