"""Sweeps: every point of a scenario's `[sweep]` with every seed, over all cores, into one table.

`spec` says what is to be run, `executor` runs it in processes of its own, `folder` keeps what is done, `result` makes
the table of it.
"""
