"""Results to give away: one file that holds what was run, what came of it, and the sums of both; and to run again.

`archive` is the file, `rerun` runs what is in one and compares.
"""
