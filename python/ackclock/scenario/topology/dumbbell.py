"""The dumbbell: all flows through one bottleneck, each with its own base RTT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator
from pydantic_core import InitErrorDetails

from ackclock.input.fields import Loc, Spread, Spreadable, Table, fault_at, faults
from ackclock.plan import HopPlan, LoadPlan, PathPlan
from ackclock.scenario.keys import RTT, Burst, LinkRate, Queue
from ackclock.scenario.topology.network import Drawing, Impaired, Link, Loss, Way, lossy
from ackclock.scenario.topology.topology import ACCESS_QUEUE, MAX_FLOWS, Placed, Topology, not_longer

#: Name of the shared link.
NAME = "bottleneck"

#: Tolerance for a whole number of sources: more than is lost in writing 0.333 or so.
TOLERANCE = 1e-6


class Reverse(Table):
    """A shared link on the way back: of the ACKs, and of the data of flows whose direction is "up"."""

    rate: LinkRate = Field(description='its rate, such as "10Mbit"')
    queue: Queue = Field(description='its queue, such as { discipline = "pfifo", limit = "100p" }')
    loss: Loss | None = Field(None, description="random loss before the queue")

    def link(self) -> Link:
        """Return the link."""
        place = ("network", "reverse", "queue")
        return Link("reverse", self.rate, self.queue, place, loss=lossy(self.loss))


class Dumbbell(Impaired, Topology):
    """All flows through one bottleneck, each with its own base RTT."""

    placed_by: ClassVar[frozenset[str]] = frozenset({"congestion_factor", "direction", "rtt", "rtt_spread"})

    topology: Literal["dumbbell"] = Field(description='a topology: "dumbbell"')
    rate: LinkRate = Field(description='the bottleneck\'s rate, such as "100Mbit"')
    rtt: Annotated[Spread, Spreadable(RTT)] = Field(
        description='the two-way propagation delay, such as "100ms", a list, or { from = "80ms", to = "260ms" }'
    )
    queue: Queue = Field(description='the bottleneck\'s queue, such as { discipline = "pfifo", limit = "1bdp" }')
    burst: Burst | None = Field(
        None,
        description="burst of a token bucket that replaces the transmitter (tc's htb and tbf); absent: a transmitter",
    )
    access_rate: LinkRate | None = Field(None, description="rate of each source's own access link; absent: infinite")
    aggregation: Annotated[float, Field(gt=0, le=1e6)] | None = Field(
        None, description="instead of access_rate: ratio of the bottleneck's rate to that of an access link"
    )
    access_queue: Queue | None = Field(None, description="queue of each access link; absent: pfifo of 1000 packets")
    reverse: Reverse | None = Field(None, description="a shared link on the return path; absent: pure delay")

    @model_validator(mode="after")
    def _access_queue_requires_a_rate(self) -> Dumbbell:
        if self.access_queue is not None and self.access_bps is None:
            raise faults([fault_at(("access_queue",), {}, 'an access_rate = "…" beside it')])
        if self.access_rate is not None and self.aggregation is not None:
            found = "both access_rate and aggregation"
            raise faults([fault_at(("aggregation",), 0, "one of access_rate and aggregation", found)])
        return self

    @property
    def access_bps(self) -> float | None:
        """The rate of each source's own link; None if it is infinite."""
        return self.rate / self.aggregation if self.aggregation is not None else self.access_rate

    def sources(self, group: Placed) -> int:
        """Return the number of sources, as counted or from the congestion factor, which may leave none."""
        exact = self._sources(group)
        return group.count if exact is None else round(exact)

    def _sources(self, group: Placed) -> float | None:
        if group.congestion_factor is None or self.access_bps is None:
            return None
        return group.congestion_factor * self.capacity_bps(group) / self.access_bps

    def mistakes(self, flows: Sequence[Placed], traffic: Sequence[Placed]) -> Iterator[InitErrorDetails]:
        """A list of RTTs is for the sources without their own."""
        yield from super().mistakes(flows, traffic)
        if flows and not traffic and not any(map(self.sources, flows)):
            expected = "a factor above 0 in some group: without a source nothing is sent"
            yield fault_at(("flows", 0, "congestion_factor"), flows[0].congestion_factor, expected)
        users = self._users(flows) or max((self.sources(group) for group in traffic), default=1)
        yield from not_longer(self.rtt, users, ("network", "rtt"))

    def misplaced(self, group: Placed, place: Loc) -> Iterator[InitErrorDetails]:
        """Data goes up only over a link."""
        yield from super().misplaced(group, place)
        if group.direction == "up" and self.reverse is None:
            yield fault_at((*place, "direction"), "up", "a link for it: network.reverse = { rate = …, queue = … }")

        if group.congestion_factor is not None:
            yield from self._wrong_factor(group, (*place, "congestion_factor"))

    def _wrong_factor(self, group: Placed, place: Loc) -> Iterator[InitErrorDetails]:
        exact = self._sources(group)
        if "count" in group.model_fields_set:
            yield fault_at(place, 0, "one of count and congestion_factor", "both count and congestion_factor")
        if exact is None:
            yield fault_at(place, group.congestion_factor, "network.access_rate or network.aggregation beside it")
        elif abs(exact - round(exact)) > TOLERANCE:
            found = f"{group.congestion_factor:g}, which makes {exact:.6g} sources"
            yield fault_at(place, group.congestion_factor, "a factor that makes a whole number of sources", found)
        elif place[0] == "traffic" and not round(exact):
            yield fault_at(place, group.congestion_factor, "a factor above 0: transfers have a source")
        elif exact > MAX_FLOWS:
            yield fault_at(place, group.congestion_factor, f"at most {MAX_FLOWS} sources", f"{exact:.6g} sources")

    def capacity_bps(self, group: Placed) -> float:
        """The rate of the link that the data goes over."""
        return self.reverse.rate if group.direction == "up" and self.reverse else self.rate

    def draw(self, flows: Sequence[Placed], traffic: Sequence[Placed]) -> Drawing:
        """Bottleneck and reverse link; behind them an access link for each source, if they have a rate."""
        shared = iter(self.rtt.over(self._users(flows)))
        rtts_s = [self._own(group) or [next(shared) for _ in range(self.sources(group))] for group in flows]
        rtts_s += [self._own(group) or self.rtt.over(self.sources(group)) for group in traffic]
        links, ways = self._shared_links(self._borrowed_s(rtts_s)), []
        for group, group_s in zip([*flows, *traffic], rtts_s, strict=True):
            ways.append(tuple(self._way(group.direction, rtt_s, links) for rtt_s in group_s))
        return Drawing(tuple(links), tuple(ways), load=self._load([*flows, *traffic]))

    def _load(self, groups: Sequence[Placed]) -> LoadPlan | None:
        if self.access_bps is None:
            return None
        up = sum(self.sources(group) for group in groups if group.direction == "up")
        down = sum(self.sources(group) for group in groups) - up
        return LoadPlan(
            aggregation=self.rate / self.access_bps,
            multiplexing=down,
            congestion_factor=down * self.access_bps / self.rate,
            reverse_factor=up * self.access_bps / self.reverse.rate if self.reverse else None,
        )

    def _users(self, flows: Sequence[Placed]) -> int:
        return sum(self.sources(group) for group in flows if group.rtt is None)

    def _own(self, group: Placed) -> list[float] | None:
        return group.rtt.over(self.sources(group)) if group.rtt else None

    def _borrowed_s(self, rtts_s: Sequence[Sequence[float]]) -> float:
        """The delay that all ways have behind the bottleneck, where that is to vary there; else none."""
        varies = self.medium() or any(change.link == NAME and change.is_impaired for change in self.changes)
        return min(map(min, rtts_s)) / 2 if varies else 0.0

    def _shared_links(self, borrowed_s: float) -> list[Link]:
        bottleneck = Link(
            name=NAME,
            rate_bps=self.rate,
            queue=self.queue,
            place=("network", "queue"),
            delay_s=borrowed_s,
            burst_bytes=self.burst,
            loss=self.loss_planned(),
            bottleneck=True,
            medium=self.medium(),
            borrowed_s=borrowed_s,
        )
        links = [bottleneck]
        if self.reverse:
            links.append(self.reverse.link())
        return links

    def _way(self, direction: str | None, rtt_s: float, links: list[Link]) -> Way:
        """Access link, bottleneck, half the RTT; back over the reverse link, and the other half. Up: the other way."""
        down, up = [0], [1] if self.reverse else []
        access = []
        if self.access_bps is not None:
            access = [len(links)]
            name = f"access-{len(links) - 1 - len(up)}"
            links.append(Link(name, self.access_bps, self.access_queue or ACCESS_QUEUE, ("network", "access_queue")))
        there, back = (up, down) if direction == "up" else (down, up)
        half_s = rtt_s / 2
        there_s, back_s = (half_s - links[0].borrowed_s * (0 in path) for path in (there, back))
        return Way(_path([*access, *there], there_s), _path(back, back_s), rtt_s)


def _path(links: list[int], delay_s: float) -> PathPlan:
    return PathPlan(tuple(HopPlan(0.0, link) for link in links), delay_s)
