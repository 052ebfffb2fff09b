"""Parts of most tests' scenarios, in TOML.

Tables `[network]` have no line break at the end, as further keys may follow.
"""

from __future__ import annotations

#: TCP as ns-2 and ns-3 have it too, and samples every 50 ms.
NS_TCP = """\
[tcp]
stack = "ns2"
sack = true
timestamps = true
[record]
interval = "50ms"
"""


def dumbbell(rate: str, rtt: str, limit: str = "1bdp", discipline: str = "pfifo") -> str:
    """Return a network with one bottleneck."""
    queue = f'{{ discipline = "{discipline}", limit = "{limit}" }}'
    return f'[network]\ntopology = "dumbbell"\nrate = "{rate}"\nrtt = "{rtt}"\nqueue = {queue}'


def leaf_spine(leaves: int, spines: int, hosts: int) -> str:
    """Return a data centre of 100 Mbit/s links."""
    size = f"leaves = {leaves}\nspines = {spines}\nhosts = {hosts}"
    links = 'rate = "100Mbit"\ndelay = "10us"\nqueue = { discipline = "pfifo", limit = "100p" }'
    return f'[network]\ntopology = "leaf-spine"\n{size}\n{links}'


def graph_link(source: str, sink: str, delay: str, rate: str = "1Gbit") -> str:
    """Return a link of a graph, in both directions, with queues of 100 packets."""
    queue = 'queue = { discipline = "pfifo", limit = "100p" }'
    return f'[[network.links]]\nfrom = "{source}"\nto = "{sink}"\nrate = "{rate}"\n{queue}\ndelay = "{delay}"\n'


def a_testbed(*hosts: str) -> str:
    """Return a testbed of 10 Mbit/s and 20 ms with these hosts."""
    queue = 'queue = { discipline = "pfifo", limit = "20p" }'
    return f'[network]\ntopology = "testbed"\nrate = "10Mbit"\n{queue}\nrtt = "20ms"\n{"".join(hosts)}'


def host_of_testbed(name: str, role: str, data: str) -> str:
    """Return a sender or receiver of a testbed, with the address of its data."""
    return f'[[network.hosts]]\nname = "{name}"\naddress = "{name}"\nrole = "{role}"\ndata = "{data}"\n'


def router_of_testbed(address: str = "r") -> str:
    """Return the router of a testbed."""
    cards = 'to_receivers = "eth2"\nto_senders = "eth1"'
    return f'[[network.hosts]]\nname = "r"\naddress = "{address}"\nrole = "router"\n{cards}\n'
