"""The dumbbell: all flows through one bottleneck, each with its own base RTT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator
from pydantic_core import InitErrorDetails

from ackclock.fields import Loc, Spread, Spreadable, Table, fault_at, faults
from ackclock.keys import RTT, Burst, Queue, Rate
from ackclock.plan import HopPlan, PathPlan
from ackclock.topology.parts import ACCESS_QUEUE, Drawing, Link, Loss, Placed, Topology, Way, not_longer


class Reverse(Table):
    """A shared link on the way back: of the ACKs, and of the data of flows whose direction is "up"."""

    rate: Rate = Field(description='its rate, such as "10Mbit"')
    queue: Queue = Field(description='its queue, such as { discipline = "pfifo", limit = "100p" }')


class Dumbbell(Topology):
    """All flows through one bottleneck, each with its own base RTT."""

    placed_by: ClassVar[frozenset[str]] = frozenset({"direction", "rtt"})

    topology: Literal["dumbbell"] = Field(description='a topology: "dumbbell"')
    rate: Rate = Field(description='the bottleneck\'s rate, such as "100Mbit"')
    rtt: Annotated[Spread, Spreadable(RTT)] = Field(
        description='the two-way propagation delay, such as "100ms", a list, or { from = "80ms", to = "260ms" }'
    )
    queue: Queue = Field(description='the bottleneck\'s queue, such as { discipline = "pfifo", limit = "1bdp" }')
    burst: Burst | None = Field(
        None,
        description="burst of a token bucket in the link's place (htb and tbf of tc); absent: packets are transmitted",
    )
    loss: Loss | None = Field(None, description="random loss of data packets before the bottleneck's queue")
    access_rate: Rate | None = Field(None, description="rate of each source's own access link; absent: infinite")
    access_queue: Queue | None = Field(None, description="queue of each access link; absent: pfifo of 1000 packets")
    reverse: Reverse | None = Field(None, description="a shared link on the way back; absent: pure delay")

    @model_validator(mode="after")
    def _access_queue_has_a_link(self) -> Dumbbell:
        if self.access_queue is not None and self.access_rate is None:
            raise faults([fault_at(("access_queue",), {}, 'an access_rate = "…" beside it')])
        return self

    def mistakes(self, flows: Sequence[Placed], traffic: Sequence[Placed]) -> Iterator[InitErrorDetails]:
        """A list of RTTs is for the sources without their own."""
        yield from super().mistakes(flows, traffic)
        users = self._users(flows) or max((self.sources(group) for group in traffic), default=1)
        yield from not_longer(self.rtt, users, ("network", "rtt"))

    def misplaced(self, group: Placed, place: Loc) -> Iterator[InitErrorDetails]:
        """Data goes up only over a link."""
        yield from super().misplaced(group, place)
        if group.direction == "up" and self.reverse is None:
            yield fault_at((*place, "direction"), "up", "a link for it: network.reverse = { rate = …, queue = … }")

    def capacity_bps(self, group: Placed) -> float:
        """The rate of the link that the data goes over."""
        return self.reverse.rate if group.direction == "up" and self.reverse else self.rate

    def draw(self, flows: Sequence[Placed], traffic: Sequence[Placed]) -> Drawing:
        """Bottleneck and reverse link; behind them an access link for each source, if they have a rate."""
        shared = iter(self.rtt.over(self._users(flows)))
        rtts_s = [self._own(group) or [next(shared) for _ in range(self.sources(group))] for group in flows]
        rtts_s += [self._own(group) or self.rtt.over(self.sources(group)) for group in traffic]
        links, ways = self._shared_links(), []
        for group, group_s in zip([*flows, *traffic], rtts_s, strict=True):
            ways.append(tuple(self._way(group.direction, rtt_s, links) for rtt_s in group_s))
        return Drawing(tuple(links), tuple(ways))

    def _users(self, flows: Sequence[Placed]) -> int:
        return sum(self.sources(group) for group in flows if group.rtt is None)

    def _own(self, group: Placed) -> list[float] | None:
        return group.rtt.over(self.sources(group)) if group.rtt else None

    def _shared_links(self) -> list[Link]:
        burst_bytes = None if self.burst is None else int(self.burst)
        loss = self.loss.planned() if self.loss else None
        place = ("network", "queue")
        links = [Link("bottleneck", self.rate, self.queue, place, burst_bytes=burst_bytes, loss=loss, bottleneck=True)]
        if self.reverse:
            links.append(Link("reverse", self.reverse.rate, self.reverse.queue, ("network", "reverse", "queue")))
        return links

    def _way(self, direction: str | None, rtt_s: float, links: list[Link]) -> Way:
        """Access link, bottleneck, half the RTT; back over the reverse link, and the other half. Up: the other way."""
        down, up = [0], [1] if self.reverse else []
        access = []
        if self.access_rate is not None:
            access = [len(links)]
            links.append(self._access_link(len(links) - 1 - len(up)))
        there, back = (up, down) if direction == "up" else (down, up)
        return Way(_path([*access, *there], rtt_s / 2), _path(back, rtt_s / 2), rtt_s)

    def _access_link(self, number: int) -> Link:
        assert self.access_rate is not None
        queue = self.access_queue or ACCESS_QUEUE
        return Link(f"access-{number}", self.access_rate, queue, ("network", "access_queue"))


def _path(links: list[int], delay_s: float) -> PathPlan:
    return PathPlan(tuple(HopPlan(0.0, link) for link in links), delay_s)
