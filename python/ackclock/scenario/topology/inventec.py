"""A data centre of three tiers with 65 switches: T. Le (2011), section 3.1.1.2 and figure 3.3, after Inventec.

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

from typing import Literal

from pydantic import Field

from ackclock.scenario.keys import Delay, LinkRate, Queue
from ackclock.scenario.topology.routed import Routed
from ackclock.scenario.topology.wiring import Cable, Wiring

CORES = 5
REGIONS = 2
REGION_SWITCHES = 5
RACKS = 5
RACK_SWITCHES = 5


class Inventec(Routed):
    """Five cores, two regions, ten racks: 65 switches."""

    topology: Literal["inventec"] = Field(description='a topology: "inventec"')
    hosts: Literal[500, 1000] = Field(500, description="500 hosts as in Le's text, or 1000 as in his figure")
    rate: LinkRate = Field(description='rate of the hosts\' links, such as "1Gbit"')
    switch_rate: LinkRate = Field("10Gbit", validate_default=True, description="rate between switches")
    delay: Delay = Field(description='propagation delay of each link, such as "1us"')
    queue: Queue = Field(description='queue of each port of a switch, such as { discipline = "pfifo", … }')

    def wire(self) -> Wiring:
        """Hosts `h0` …; switches `core-0` …, `region-0-0` … (region and number), `rack-0-0` … (rack and number)."""
        wiring = Wiring()
        hosts = iter([wiring.host(f"h{number}") for number in range(self.hosts)])
        cores = [wiring.switch(f"core-{number}") for number in range(CORES)]
        between = Cable(self.switch_rate, self.delay, self.queue, ("network", "queue"))
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
                    self._hosts(wiring, edge, [next(hosts) for _ in range(self._hosts_of_a_switch)])
        return wiring

    @property
    def _hosts_of_a_switch(self) -> int:
        return self.hosts // (REGIONS * RACKS * RACK_SWITCHES)

    def _hosts(self, wiring: Wiring, edge: int, hosts: list[int]) -> None:
        port = Cable(self.rate, self.delay, self.queue, ("network", "queue"))
        for host in hosts:
            wiring.both_ways(host, edge, self.card(self.rate, self.delay), port)
