"""Sweeps: every point of a scenario's `[sweep]` with every seed, over all cores, into one table.

`order` says what is to be run, `work` runs it in processes of its own, `folder` keeps what is done, `table` makes the
result of it.
"""
