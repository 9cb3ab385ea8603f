"""The suites, one a file; the first line of its docstring says what a suite measures."""
