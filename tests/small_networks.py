"""Tables `[network]` of most tests' scenarios, in TOML, without a line break at the end: further keys may follow."""

from __future__ import annotations


def dumbbell(rate: str, rtt: str, limit: str = "1bdp", discipline: str = "pfifo") -> str:
    """Return a network with one bottleneck."""
    queue = f'{{ discipline = "{discipline}", limit = "{limit}" }}'
    return f'[network]\ntopology = "dumbbell"\nrate = "{rate}"\nrtt = "{rtt}"\nqueue = {queue}'


def leaf_spine(leaves: int, spines: int, hosts: int) -> str:
    """Return a data centre of 100 Mbit/s links."""
    size = f"leaves = {leaves}\nspines = {spines}\nhosts = {hosts}"
    links = 'rate = "100Mbit"\ndelay = "10us"\nqueue = { discipline = "pfifo", limit = "100p" }'
    return f'[network]\ntopology = "leaf-spine"\n{size}\n{links}'
