"""Data centres: fat trees, leaf and spine, and three tiers after Inventec.

Fat trees: the m-port n-tree, built of equal switches whose ports are all used.

X.-Y. Lin, Y.-C. Chung, T.-Y. Huang: A Multiple LID Routing Scheme for Fat-Tree-Based InfiniBand Networks, IPDPS 2004,
section 3; T. Le (2011) section 3.1.1.1. There are 2 (m/2)^n hosts and (2n − 1) (m/2)^(n−1) switches. (Le writes
(m/2)^(n−1) + m^(n−1) switches, which is the same for n = 2 and 3 and too many beyond.)

A switch of level l has a word of n − 1 digits. Those of level 0, the roots, have digits below m/2; those of the other
levels a first digit below m. Switches of the levels l and l + 1 are joined if their words differ at most in digit l.
Host p0 p1 … p(n−1) hangs on the switch of the last level whose word is p0 … p(n−2).

A data centre of three tiers with 65 switches: T. Le (2011), section 3.1.1.2 and figure 3.3, after Inventec.

What the text says, and how it is read here:

- 5 core switches and 2 regions of 5 switches, 10 Gb/s and 48 ports each. "Each switch in region tier always has 5
  up-links": one to each core switch, which so uses 10 of its ports. That the core "remains 10 links to 10 switches in
  region tier" is read as these same links.
- Each region "aggregates 5 racks" of 5 switches, 50 in all, which makes 65. "Four switches in aggregate tier remain
  fully down-links to each rack": each switch of a rack is linked to four of its region's five switches, rack r to all
  but the r-th, so that all are used alike. (Section 3.1.1 speaks of two outlets of each switch, which does not fit.)
- "1 data node" of each rack with links from two switches of the region is left out: with it there were 510 hosts.
- "Each switch also connects to 10 data nodes": 500 hosts, as the text counts. Figure 3.3 counts 1000: 20 each.

The rate of the racks' links to hosts is not given there, nor any delay.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice, pairwise, product
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from ackclock.input.fields import fault_at, faults, shown
from ackclock.scenario.keys import Delay, LinkRate, Queue
from ackclock.scenario.topology.network import Link
from ackclock.scenario.topology.routed import MAX_NODES, Routed, Wiring

Word: TypeAlias = tuple[int, ...]


class Fabric(Routed):
    """Switches whose ports are alike."""

    delay: Delay = Field(description='propagation delay of each link, such as "1us"')
    queue: Queue = Field(description='queue of each port of a switch, such as { discipline = "pfifo", … }')

    def port(self, rate_bps: float) -> Link:
        """A switch's link."""
        return Link("", rate_bps, self.queue, ("network", "queue"), delay_s=self.delay)

    def attach(self, wiring: Wiring, hosts: Iterable[tuple[int, int]], rate_bps: float) -> None:
        """Hosts' links to their switches, and back: pairs of a host and its switch."""
        card, port = self.card(rate_bps, self.delay), self.port(rate_bps)
        for host, switch in hosts:
            wiring.both_ways(host, switch, card, port)


class FatTree(Fabric):
    """An m-port n-tree."""

    topology: Literal["fat-tree"] = Field(description='a topology: "fat-tree"')
    ports: Annotated[int, Field(ge=2, le=1024)] = Field(description="ports m of each switch, an even number")
    levels: Annotated[int, Field(ge=1, le=16)] = Field(description="levels n of switches")
    rate: LinkRate = Field(description='rate of each link, such as "1Gbit"')
    host_rate: LinkRate | None = Field(None, description="rate of the hosts' links; absent: the same as the others")

    @model_validator(mode="after")
    def _can_be_built(self) -> FatTree:
        if self.ports % 2:
            raise faults([fault_at(("ports",), self.ports, "an even number")])
        if (nodes := self.hosts + self.switches) > MAX_NODES:
            found = f"{shown(self.ports)} ports and {self.levels} levels, {nodes} nodes"
            raise faults([fault_at(("levels",), self.levels, f"at most {MAX_NODES} nodes", found)])
        return self

    @property
    def hosts(self) -> int:
        """Return the number of hosts."""
        return 2 * int(self._half**self.levels)

    @property
    def switches(self) -> int:
        """Return the number of switches."""
        return (2 * self.levels - 1) * int(self._half ** (self.levels - 1))

    @property
    def _half(self) -> int:
        return self.ports // 2

    def wire(self) -> Wiring:
        """Hosts `h0` … and switches `s0-0` …: the level, 0 being the roots, and the number in it."""
        wiring = Wiring()
        hosts = [wiring.host(f"h{number}") for number in range(self.hosts)]
        levels = [self._level(wiring, level) for level in range(self.levels)]
        for upper, (above, below) in enumerate(pairwise(levels)):
            self._join(wiring, upper, above, below)
        places = (switch for switch in levels[-1].values() for _ in range(self._down))
        self.attach(wiring, zip(hosts, places, strict=True), self.host_rate or self.rate)
        return wiring

    @property
    def _down(self) -> int:
        """Hosts of a switch of the last level: all its ports if it is a root too."""
        return self.ports if self.levels == 1 else self._half

    def _level(self, wiring: Wiring, level: int) -> dict[Word, int]:
        digits = [range(self._half)] * (self.levels - 1)
        if level > 0:
            digits[0] = range(self.ports)
        return {word: wiring.switch(f"s{level}-{number}") for number, word in enumerate(product(*digits))}

    def _join(self, wiring: Wiring, upper: int, above: dict[Word, int], below: dict[Word, int]) -> None:
        """Words that differ at most in the digit of the upper level's number."""
        port = self.port(self.rate)
        for word, switch in below.items():
            for digit in range(self._half):
                wiring.both_ways(switch, above[*word[:upper], digit, *word[upper + 1 :]], port)


class LeafSpine(Fabric):
    """Leaves and spines."""

    topology: Literal["leaf-spine"] = Field(description='a topology: "leaf-spine"')
    leaves: Annotated[int, Field(ge=1, le=10_000)] = Field(description="number of leaves")
    spines: Annotated[int, Field(ge=1, le=10_000)] = Field(description="number of spines")
    hosts: Annotated[int, Field(ge=1, le=10_000)] = Field(description="hosts of each leaf")
    rate: LinkRate = Field(description='rate of the hosts\' links, such as "1Gbit"')
    spine_rate: LinkRate | None = Field(
        None, description="rate between leaf and spine; absent: the same as the hosts' links"
    )

    @model_validator(mode="after")
    def _can_be_built(self) -> LeafSpine:
        nodes = self.leaves * (1 + self.hosts) + self.spines
        if nodes > MAX_NODES or self.leaves * self.spines > MAX_NODES:
            found = f"{nodes} nodes and {self.leaves * self.spines} links between leaf and spine"
            raise faults([fault_at(("leaves",), 0, f"at most {MAX_NODES} of each", found)])
        return self

    def wire(self) -> Wiring:
        """Hosts `h0` …, leaf by leaf; switches `leaf-0` … and `spine-0` …."""
        wiring = Wiring()
        hosts = [wiring.host(f"h{number}") for number in range(self.leaves * self.hosts)]
        leaves = [wiring.switch(f"leaf-{number}") for number in range(self.leaves)]
        spines = [wiring.switch(f"spine-{number}") for number in range(self.spines)]
        between = self.port(self.spine_rate or self.rate)
        self.attach(wiring, ((host, leaves[number // self.hosts]) for number, host in enumerate(hosts)), self.rate)
        for leaf in leaves:
            for spine in spines:
                wiring.both_ways(leaf, spine, between)
        return wiring


CORES = 5
REGIONS = 2
REGION_SWITCHES = 5
RACKS = 5
RACK_SWITCHES = 5


class Inventec(Fabric):
    """Five cores, two regions, ten racks: 65 switches."""

    topology: Literal["inventec"] = Field(description='a topology: "inventec"')
    hosts: Literal[500, 1000] = Field(500, description="500 hosts as in Le's text, or 1000 as in his figure")
    rate: LinkRate = Field(description='rate of the hosts\' links, such as "1Gbit"')
    switch_rate: LinkRate = Field("10Gbit", validate_default=True, description="rate between switches")

    def wire(self) -> Wiring:
        """Hosts `h0` …; switches `core-0` …, `region-0-0` … (region and number), `rack-0-0` … (rack and number)."""
        wiring = Wiring()
        hosts = iter([wiring.host(f"h{number}") for number in range(self.hosts)])
        cores = [wiring.switch(f"core-{number}") for number in range(CORES)]
        between = self.port(self.switch_rate)
        for region in range(REGIONS):
            switches = [wiring.switch(f"region-{region}-{number}") for number in range(REGION_SWITCHES)]
            for switch in switches:
                for core in cores:
                    wiring.both_ways(switch, core, between)
            for rack in range(RACKS):
                above = [switch for number, switch in enumerate(switches) if number != rack]
                for number in range(RACK_SWITCHES):
                    edge = wiring.switch(f"rack-{region * RACKS + rack}-{number}")
                    for switch in above:
                        wiring.both_ways(edge, switch, between)
                    few = islice(hosts, self.hosts // (REGIONS * RACKS * RACK_SWITCHES))
                    self.attach(wiring, ((host, edge) for host in few), self.rate)
        return wiring
