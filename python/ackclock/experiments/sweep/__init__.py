"""Sweeps: every point of a scenario's `[sweep]` with every seed, over all cores, into one table.

`spec` says what is to be run, `run` deals it out to processes, `worker` is what they do, `folder` keeps what is done,
`result` makes the table of it.
"""
