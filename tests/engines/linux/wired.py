"""The commands of a network read back as a graph, so that packets can be followed through it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: A rate that keeps the order of what is delayed by chance.
ENDLESS = "1000gbit"

DELAY = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


@dataclass
class Wired:
    """Namespaces, and what their devices and routes are."""

    peers: dict[tuple[str, str], str] = field(default_factory=dict)
    routes: dict[str, dict[str, str]] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    delay_s: dict[tuple[str, str], float] = field(default_factory=dict)
    shaped: set[tuple[str, str]] = field(default_factory=set)
    transmits: dict[tuple[str, str], str] = field(default_factory=dict)
    up: set[tuple[str, str]] = field(default_factory=set)

    def next_nodes(self, node: str, address: str) -> set[str]:
        """The nodes to which a packet may go from a node."""
        routes = self.routes[node]
        devices = routes.get(f"{address}/32") or routes["default"]
        assert all((node, device) in self.up for device in devices.split())
        return {self.peers[node, device] for device in devices.split()}

    def ways(self, source: str, address: str) -> set[tuple[str, ...]]:
        """All ways of a packet from a node to where the address is, as nodes."""
        if source == self.addresses[address]:
            return {(source,)}
        return {(source, *rest) for node in self.next_nodes(source, address) for rest in self.ways(node, address)}

    def follow(self, source: str, address: str) -> list[tuple[str, str]]:
        """The devices through which a packet leaves, from a node to where the address is."""
        node, taken = source, []
        while node != self.addresses[address]:
            routes = self.routes[node]
            device = routes.get(f"{address}/32") or routes["default"]
            assert (node, device) not in taken, "a loop"
            assert (node, device) in self.up
            taken.append((node, device))
            node = self.peers[node, device]
        return taken


def read(lines: list[str]) -> Wired:
    wired = Wired()
    for line in lines:
        _read(line, wired)
    return wired


def _read(line: str, wired: Wired) -> None:
    if found := re.match(r"ip link add (\S+) netns (\S+) arp off .* type veth peer name (\S+) .* netns (\S+)$", line):
        device, node, peer, other = found.groups()
        assert (node, device) not in wired.peers
        assert (other, peer) not in wired.peers
        wired.peers[node, device] = other
        wired.peers[other, peer] = node
        hardware = re.findall(r"address (\S+)", line)
        assert len(set(hardware)) == 1
    elif found := re.match(r"ip -n (\S+) link set (\S+) up$", line):
        wired.up.add(found.groups())
    elif found := re.match(r"ip -n (\S+) addr add (\S+)/32 dev lo$", line):
        assert found[2] not in wired.addresses
        wired.addresses[found[2]] = found[1]
    elif found := re.match(r"ip -n (\S+) route add (\S+) via 10.0.0.1 dev (\S+) onlink", line):
        assert found[2] not in wired.routes.setdefault(found[1], {})
        wired.routes[found[1]][found[2]] = found[3]
    elif found := re.match(r"ip -n (\S+) route add (\S+) (nexthop .*)$", line):
        assert found[2] not in wired.routes.setdefault(found[1], {})
        wired.routes[found[1]][found[2]] = " ".join(re.findall(r"nexthop via 10.0.0.1 dev (\S+)", found[3]))
    elif found := re.match(r"tc -n (\S+) qdisc add dev (\S+) (?:root|parent 1: netem) (.*)$", line):
        _qdisc((found[1], found[2]), found[3], wired)


def _qdisc(device: tuple[str, str], words: str, wired: Wired) -> None:
    assert device in wired.peers
    if found := re.search(r"delay ([\d.]+)([a-z]+)", words):
        wired.delay_s[device] = wired.delay_s.get(device, 0.0) + float(found[1]) * DELAY[found[2]]
    if (found := re.search(r" rate (\S+)", words)) and found[1] != ENDLESS:
        wired.transmits[device] = found[1]
    if "htb" in words or "opportunity" in words:
        wired.shaped.add(device)
