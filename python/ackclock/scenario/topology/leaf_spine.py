"""Leaf and spine: two tiers of switches, each leaf joined to every spine, the hosts on the leaves."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ackclock.input.fields import fault_at, faults
from ackclock.scenario.keys import Delay, LinkRate, Queue
from ackclock.scenario.topology.routed import MAX_NODES, Routed
from ackclock.scenario.topology.wiring import Cable, Wiring


class LeafSpine(Routed):
    """Leaves and spines."""

    topology: Literal["leaf-spine"] = Field(description='a topology: "leaf-spine"')
    leaves: Annotated[int, Field(ge=1, le=10_000)] = Field(description="number of leaves")
    spines: Annotated[int, Field(ge=1, le=10_000)] = Field(description="number of spines")
    hosts: Annotated[int, Field(ge=1, le=10_000)] = Field(description="hosts of each leaf")
    rate: LinkRate = Field(description='rate of the hosts\' links, such as "1Gbit"')
    spine_rate: LinkRate | None = Field(
        None, description="rate between leaf and spine; absent: the same as the hosts' links"
    )
    delay: Delay = Field(description='propagation delay of each link, such as "1us"')
    queue: Queue = Field(description='queue of each port of a switch, such as { discipline = "pfifo", … }')

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
        place = ("network", "queue")
        port = Cable(self.rate, self.delay, self.queue, place)
        between = Cable(self.spine_rate or self.rate, self.delay, self.queue, place)
        for number, host in enumerate(hosts):
            wiring.both_ways(host, leaves[number // self.hosts], self.card(self.rate, self.delay), port)
        for leaf in leaves:
            for spine in spines:
                wiring.both_ways(leaf, spine, between)
        return wiring
