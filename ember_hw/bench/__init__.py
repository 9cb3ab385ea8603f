"""Benchmarks: each suite measures, compares with a reference, and says which bars are missed.

A suite is one module in `suites`; `registry` finds it by its file's name, `result` is what every
one of them yields, and `table` shows it. To add one, add a file with a docstring and a function
``run(job) -> Iterator[Row]``.
"""
