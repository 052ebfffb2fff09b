"""Runs on other machines: `target` (where, as a user says it), `remote` (what happens there), `pool` (a connection).

The scheduler and its workers are Dask's (https://distributed.dask.org), the optional extra `ackclock[cluster]`; it is
imported when a place is opened, and by nothing else. What is run there is the same as in the processes of this machine,
in the same order into the same tables, so the result has the same bytes.
"""
