"""Random programs with random faults, on hardware and interpreters: what may differ, and what not.

`generate` makes a case from a seed, `faults` spoils it, `hardware` runs it on a simulated access
unit, `compare` judges what came of it, `shrink` makes a failing one small.
"""
