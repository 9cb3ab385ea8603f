"""What a lookup means: one file of rules, held at every entry point that can express them.

`rules` has the calls, `results` what must come of them, `elsewhere` the rules that other tests
hold, `entry_points` the ways into the project.
"""
