"""The network that a topology draws, and the tables of its links.

It has links and ways, or hosts between which the ways are drawn. A link's table has its rate, delay, queue and
impairments. Random loss, jitter, reordering, duplication and corruption mean what they do in netem (tc-netem(8)): loss
stands before the queue, all else behind the transmitter. Thinned ACKs: RFC 3449 section 5.2.2. Tunnels: RFC 6040.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ackclock.algorithms.selection import Given
from ackclock.input.fields import Loc, Table, fault
from ackclock.plan import EndsPlan, JitterPlan, LoadPlan, MediumPlan, NodePlan, PathPlan
from ackclock.scenario.keys import Burst, Delay, LinkRate, Queue
from ackclock.scenario.traces import Traced

#: Placeholder for the path of a way that is routed between its ends.
NOWHERE = PathPlan((), 0.0)

#: A chance that may be none, and one that may be certain.
Chance = Annotated[float, Field(ge=0, lt=1)]
Share = Annotated[float, Field(ge=0, le=1)]

_LOSSES = "{ every = 1000 }, { probability = 1e-3 } or { p_good_to_bad = 0.01, p_bad_to_good = 0.3 }"


@dataclass(frozen=True, slots=True)
class Link:
    """A link as a topology draws it: its queue is still as it was written, at `place`.

    `borrowed_s` of its delay is the ways', and not what is written as the link's.
    """

    name: str
    rate_bps: float
    queue: Given
    place: Loc
    ends: EndsPlan | None = None
    delay_s: float = 0.0
    weight: float = 1.0
    burst_bytes: int | None = None
    loss: Mapping[str, Any] | None = None
    bottleneck: bool = False
    medium: MediumPlan | None = None
    borrowed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Way:
    """The way of one source's data and that of the ACKs; with `ends`, the engine finds both."""

    forward: PathPlan
    reverse: PathPlan
    base_rtt_s: float
    ends: EndsPlan | None = None


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts between which a group sends, and who sends to whom; the ways are drawn from the seed."""

    sources: tuple[int, ...]
    destinations: tuple[int, ...]
    pairing: str
    longest_rtt_s: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """A network drawn for its groups: for each group, the ways of its sources, or its hosts.

    `testbed` is where it is, if it is made of real hosts.
    """

    links: tuple[Link, ...]
    places: tuple[tuple[Way, ...] | Hosts, ...]
    nodes: tuple[NodePlan, ...] = ()
    routing: str = "single"
    flowlet_gap_s: float | None = None
    load: LoadPlan | None = None
    testbed: Mapping[str, Any] | None = None


class Loss(Table):
    """Random loss of data packets on a link: every n-th of a flow, independently, or in bursts; of SYNs, ACKs if given.

    In bursts (Gilbert and Elliott): each data packet is lost with the probability of the state that it finds, and then
    draws whether the other state follows. These are p, r, 1-h and 1-k of netem's `loss gemodel`.
    """

    every: Annotated[int, Field(ge=2, le=10**15)] | None = Field(
        None, description="every n-th packet of a flow is lost"
    )
    probability: Chance | None = Field(None, description="loss probability of each packet; 0: none is lost")
    syn: Chance | None = Field(
        None, description="with probability: loss probability of each SYN and SYN/ACK; absent: they are never lost"
    )
    ack: Share | None = Field(
        None, description="loss of each ACK and reply to a datagram; beside a probability; absent: they are never lost"
    )
    ack_thinning: Annotated[int, Field(ge=2, le=10**6)] | None = Field(
        None, description="n: of n ACKs the last passes; beside a probability; absent: all do"
    )
    p_good_to_bad: Share | None = Field(
        None, description="bursty loss: probability of going from the good to the bad state"
    )
    p_bad_to_good: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="bursty loss: probability of going from the bad to the good state; its inverse is the mean burst",
    )
    in_bad: Share | None = Field(None, description="bursty loss: loss probability in the bad state; absent: 1")
    in_good: Share | None = Field(None, description="bursty loss: loss probability in the good state; absent: 0")

    @model_validator(mode="after")
    def _one_law(self) -> Loss:
        laws = [key for key in ("every", "probability", "p_good_to_bad") if getattr(self, key) is not None]
        if len(laws) != 1:
            raise fault(f"{' and '.join(laws)} together" if laws else "none of its keys", _LOSSES)
        for key, law in (
            ("syn", "probability"),
            ("ack", "probability"),
            ("ack_thinning", "probability"),
            ("p_bad_to_good", "p_good_to_bad"),
            ("in_bad", "p_good_to_bad"),
            ("in_good", "p_good_to_bad"),
        ):
            if getattr(self, key) is not None and laws != [law]:
                raise fault(f"{key} beside {laws[0]}", f"{key} beside a {law}")
        if laws == ["p_good_to_bad"] and self.p_bad_to_good is None:
            raise fault("p_good_to_bad without p_bad_to_good", _LOSSES)
        return self

    def planned(self) -> Mapping[str, Any]:
        """Return the plan's form."""
        if self.every is not None:
            return {"kind": "every", "packets": self.every}
        if self.p_good_to_bad is not None:
            return {
                "kind": "gilbert_elliott",
                "p_good_to_bad": self.p_good_to_bad,
                "p_bad_to_good": self.p_bad_to_good,
                "in_bad": 1.0 if self.in_bad is None else self.in_bad,
                "in_good": self.in_good or 0.0,
            }
        by_kind = {"syn": self.syn or 0.0, "ack": self.ack or 0.0, "ack_thinning": self.ack_thinning or 1}
        if by_kind != {"syn": 0.0, "ack": 0.0, "ack_thinning": 1}:
            return {"kind": "by_kind", "probability": self.probability, **by_kind}
        return {"kind": "bernoulli", "probability": self.probability}


def lossy(loss: Loss | None) -> Mapping[str, Any] | None:
    """Return the plan's form of a loss; None for one that never drops."""
    planned = loss.planned() if loss else None
    never = {"kind": "bernoulli", "probability": 0}
    return None if planned == never else planned


class Jitter(Table):
    """A propagation delay that varies around the link's: each packet's is drawn, and is not below zero."""

    deviation: Delay = Field(description='half the width of a uniform, standard deviation of a normal one: "5ms"')
    distribution: Literal["uniform", "normal"] = Field("uniform", description='of the differences: "uniform", "normal"')
    in_order: bool = Field(True, description="true: no packet overtakes another; false: each arrives at its time")


class OfPackets(Table):
    """A chance of each packet."""

    probability: Share = Field(description="chance of each packet; 0: none")


class Impaired(Table):
    """The keys of a link that say what it does to packets besides queueing."""

    loss: Loss | None = Field(None, description="random loss before the queue")
    jitter: Jitter | None = Field(None, description='variable delay: { deviation = "5ms" }')
    reorder: OfPackets | None = Field(None, description="packets that skip the link's delay, overtaking others")
    duplicate: OfPackets | None = Field(None, description="packets that arrive twice")
    corrupt: OfPackets | None = Field(None, description="corrupted packets: the receiver discards them")
    ecn: Literal["preserve", "bleach", "ect1_to_ect0", "ce_to_ect0"] | None = Field(
        None, description='how the ECN field is rewritten; "bleach": to Not-ECT; "preserve": not'
    )
    tunnel: Literal["rfc6040", "compatibility", "rfc3168", "ce_lost"] | None = Field(
        None, description="ECN of a tunnel over the link; absent: there is none"
    )

    @model_validator(mode="after")
    def _fits(self) -> Impaired:
        if isinstance(getattr(self, "rate", None), Traced) and getattr(self, "burst", None) is not None:
            raise fault("a burst beside a trace", "one of them: a trace has no token bucket")
        if self.reorder is not None and getattr(self, "delay", None) == 0:
            raise fault("reorder without a delay", "a delay that some packets arrive without")
        return self

    @property
    def is_impaired(self) -> bool:
        """Return True if the medium does more than delay, or is explicitly set not to."""
        keys = (self.jitter, self.reorder, self.duplicate, self.corrupt, self.ecn, self.tunnel)
        return any(key is not None for key in keys)

    def loss_planned(self) -> Mapping[str, Any] | None:
        """Return the plan's form of a link's loss; None for one that never drops."""
        return lossy(self.loss)

    def medium(self, before: MediumPlan | None = None) -> MediumPlan | None:
        """Return the medium: as before, with the changes written. None if neither does more than delay."""
        made = before or MediumPlan()
        if self.jitter is not None:
            jitter = JitterPlan(self.jitter.deviation, self.jitter.distribution, self.jitter.in_order)
            made = replace(made, jitter=jitter)
        for key in ("reorder", "duplicate", "corrupt"):
            if (written := getattr(self, key)) is not None:
                made = replace(made, **{key: written.probability})
        if self.ecn is not None:
            made = replace(made, ecn=None if self.ecn == "preserve" else self.ecn)
        if self.tunnel is not None:
            made = replace(made, tunnel=self.tunnel)
        return made if self.is_impaired and (before or made != MediumPlan()) else before


class LinkTable(Impaired):
    """A link that a scenario writes out."""

    rate: LinkRate = Field(description='its rate, such as "100Mbit"')
    delay: Delay = Field(description='its propagation delay, such as "10ms"')
    queue: Queue = Field(description='its queue, such as { discipline = "pfifo", limit = "100p" }')
    burst: Burst | None = Field(
        None, description="burst of a token bucket that replaces the transmitter; absent: a transmitter"
    )

    def link(self, place: Loc, name: str = "") -> Link:
        """Return the link, without ends. `place` is the table's."""
        return Link(
            name,
            self.rate,
            self.queue,
            (*place, "queue"),
            delay_s=self.delay,
            burst_bytes=self.burst,
            loss=self.loss_planned(),
            medium=self.medium(),
        )
