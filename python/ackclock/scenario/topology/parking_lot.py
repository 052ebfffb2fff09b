"""The parking lot: bottlenecks in a row, flows through all of them, and flows that cross one each."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ackclock.scenario.keys import Delay, LinkRate, Queue
from ackclock.scenario.topology.routed import Routed
from ackclock.scenario.topology.wiring import Cable, Wiring


class ParkingLot(Routed):
    """Bottlenecks in a row."""

    placed_by: ClassVar[frozenset[str]] = Routed.placed_by | {"path"}

    topology: Literal["parking-lot"] = Field(description='a topology: "parking-lot"')
    hops: Annotated[int, Field(ge=1, le=100)] = Field(description="number of bottlenecks in a row")
    rate: LinkRate = Field(description='rate of each bottleneck, such as "100Mbit"')
    delay: Delay = Field(description='propagation delay of each bottleneck, such as "10ms"')
    queue: Queue = Field(description='queue of each bottleneck, such as { discipline = "pfifo", limit = "100p" }')
    access_rate: LinkRate = Field(description='rate of the hosts\' links, such as "1Gbit"')
    access_delay: Delay = Field("0s", validate_default=True, description="propagation delay of the hosts' links")

    def wire(self) -> Wiring:
        """Switches `s0` … in a row; for each way, a host that sends and one that receives at its ends."""
        wiring = Wiring()
        switches = [wiring.switch(f"s{number}") for number in range(self.hops + 1)]
        place = ("network", "queue")
        along = Cable(self.rate, self.delay, self.queue, place)
        for number, (one, other) in enumerate(pairwise(switches), start=1):
            wiring.link(one, other, along, f"hop-{number}")
            wiring.link(other, one, along, bottleneck=False)
        port = Cable(self.access_rate, self.access_delay, self.queue, place)
        card = self.card(self.access_rate, self.access_delay)
        for (first, last), hosts in zip(self._spans(), self.named_ways().values(), strict=True):
            for switch, name in zip((switches[first], switches[last]), hosts, strict=True):
                host = wiring.host(name)
                wiring.link(host, switch, card)
                wiring.link(switch, host, port, bottleneck=False)
        return wiring

    def named_ways(self) -> dict[str, tuple[str, str]]:
        """`long` through all, `hop-1` … across one each."""
        names = ["long", *(f"hop-{number}" for number in range(1, self.hops + 1))]
        return {name: (f"{name}-source", f"{name}-sink") for name in names}

    def _spans(self) -> list[tuple[int, int]]:
        """The switches at which each way begins and ends, in the order of the names."""
        return [(0, self.hops), *((number - 1, number) for number in range(1, self.hops + 1))]
