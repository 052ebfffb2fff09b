"""A testbed: real hosts and a router between them, reached by ssh.

R. Braud, chapter 3: a router between two machines, its rate, delay and queue configured by lists. What is given is set
there by `tc`, and the same scenario is a dumbbell for every other engine; what is not given is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import InitErrorDetails

from ackclock.hosts import ssh
from ackclock.input.fields import Quantity, Table, fault, fault_at, faults, shown, text_reader
from ackclock.input.units import Size
from ackclock.plan import HopPlan, PathPlan
from ackclock.scenario.keys import DELAY_BOUNDS, RATE_BOUNDS, Burst, Queue
from ackclock.scenario.topology.network import Drawing, Link, Loss, Way, lossy
from ackclock.scenario.topology.topology import Placed, Topology

#: A network interface, as the kernel takes it, but nothing that begins as an option does.
INTERFACE = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}"

#: Placeholder of a rate that is not measured yet, in bit/s; no engine uses it.
UNKNOWN_BPS = 1e9

#: Host names, in messages and in the result.
HOST = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"


def _data(value: object) -> object:
    try:
        return str(IPv4Address(value if isinstance(value, str) else ""))
    except ValueError:
        raise fault(shown(value), 'an IPv4 address, such as "10.1.0.1"') from None


#: Value of a quantity that the hosts measure before a run.
MEASURED = "measured"


class Measurable(Quantity):
    """An annotation: a quantity, or the word for one that is measured."""

    __slots__ = ()

    def read(self, value: object) -> Any:
        """The quantity in SI units, or the word."""
        return MEASURED if value == MEASURED else Quantity.read(self, value)

    def _or_word(self) -> str:
        return f', or "{MEASURED}"'


Interface: TypeAlias = Annotated[str, text_reader(INTERFACE, 'the name of a network interface, such as "eth1"')]


class Host(Table):
    """A machine of the testbed."""

    name: Annotated[str, text_reader(HOST, 'a name of letters, digits, "_", "." and "-"')] = Field(
        description="what it is called in messages and in the result"
    )
    address: Annotated[str, text_reader(ssh.DESTINATION.pattern, ssh.EXPECTED)] = Field(
        description='how ssh reaches it, such as "alice" or "root@alice.example.net"'
    )
    role: Literal["sender", "receiver", "router"] = Field(description='"sender", "receiver" or "router"')
    data: Annotated[str, BeforeValidator(_data)] | None = Field(
        None, description="sender and receiver: the IPv4 address that carries its data"
    )
    to_receivers: Interface | None = Field(
        None, description="router: the interface towards the receivers, which gets rate and queue"
    )
    to_senders: Interface | None = Field(
        None, description="router: the interface towards the senders, which gets the delay"
    )

    @model_validator(mode="after")
    def _has_the_links_of_its_role(self) -> Host:
        wanted = ("to_receivers", "to_senders") if self.role == "router" else ("data",)
        wrong = []
        for key in ("data", "to_receivers", "to_senders"):
            if (getattr(self, key) is not None) != (key in wanted):
                expected = f"{key}, which a {self.role} has" if key in wanted else f"no {key} of a {self.role}"
                found = "nothing" if key in wanted else "a key that does not belong here"
                wrong.append(fault_at((key,), {}, expected, found))
        if wrong:
            raise faults(wrong)
        return self


class Testbed(Topology):
    """Real hosts and a router between them, reached by ssh."""

    placed_by: ClassVar[frozenset[str]] = frozenset()

    topology: Literal["testbed"] = Field(description='a topology: "testbed"')
    hosts: list[Host] = Field(description="tables [[network.hosts]]: senders, receivers, and one router")
    existing_path: bool = Field(
        False,
        description="true: the path is left as it is; there is no router among the hosts, and rate and queue are those "
        "assumed of its bottleneck",
    )
    rate: Annotated[float | str, Measurable(*RATE_BOUNDS)] = Field(
        description='the rate set on the router towards the receivers, such as "100Mbit"; with existing_path, that '
        'of the path, or "measured": the hosts measure it before a run'
    )
    queue: Queue = Field(
        description='its queue towards the receivers, such as { discipline = "pfifo", limit = "100p" }'
    )
    rtt: Annotated[float | str, Measurable(*DELAY_BOUNDS)] | None = Field(
        None,
        description='the two-way delay that the router adds, such as "20ms" ("0ms": none is added, and the path has '
        "hardly any); \"measured\": none is added, and the path's own is measured before a run; absent: the path's "
        "own, whatever it is",
    )
    loss: Loss | None = Field(
        None, description="random loss before the queue, of the senders' data, as it reaches the router"
    )
    burst: Burst | None = Field(
        None, description="burst of the token bucket that sets the rate; absent: the least that the kernel can sustain"
    )

    @model_validator(mode="after")
    def _has_all_roles(self) -> Testbed:
        roles = [host.role for host in self.hosts]
        place = ("hosts",)
        for role in ("sender", "receiver"):
            if role not in roles:
                raise faults([fault_at(place, {}, f'a host with role = "{role}"', "none")])
        if (routers := roles.count("router")) != (0 if self.existing_path else 1):
            expected = "none, with existing_path = true" if self.existing_path else "one"
            raise faults([fault_at(place, {}, f'hosts with role = "router": {expected}', str(routers))])
        for key in ("name", "address", "data"):
            given = [value for host in self.hosts if (value := getattr(host, key)) is not None]
            if twice := [value for value in given if given.count(value) > 1]:
                raise faults([fault_at(place, {}, f"hosts that differ in {key}", f"{shown(twice[0])} twice")])
        if self.rate == MEASURED and not self.existing_path:
            expected = (
                "a rate, which the router gets; a path's is measured where it is left as it is (existing_path = true)"
            )
            raise faults([fault_at(("rate",), {}, expected, shown(MEASURED))])
        if self.loss is not None and self.existing_path:
            raise faults(
                [fault_at(("loss",), {}, "none, with existing_path = true: there is no router to lose packets")]
            )
        for key, value in self.queue.values.items():
            if isinstance(value, Size) and value.in_bdp and (not self._rtt_s or self.rate == MEASURED):
                raise faults([fault_at(("queue", key), {}, "packets or bytes, or network.rtt beside it", str(value))])
        return self

    def mistakes(self, flows: Sequence[Placed], traffic: Sequence[Placed]) -> Iterator[InitErrorDetails]:
        """Yield the faults of any topology, and shares of a rate that is not known."""
        yield from super().mistakes(flows, traffic)
        for number, group in enumerate(traffic):
            if self.rate == MEASURED and getattr(group, "load", None) is not None:
                yield fault_at(("traffic", number, "load"), 0, 'rate = "…", for network.rate is measured', "a load")

    @property
    def _rtt_s(self) -> float:
        """The delay that is added."""
        return self.rtt if isinstance(self.rtt, float) else 0.0

    @property
    def _rate_bps(self) -> float:
        """The rate, or one that stands for it until it is measured."""
        return self.rate if isinstance(self.rate, float) else UNKNOWN_BPS

    def capacity_bps(self, group: Placed) -> float:
        """The router's rate."""
        return self._rate_bps

    def draw(self, flows: Sequence[Placed], traffic: Sequence[Placed]) -> Drawing:
        """The router's link, and half of the delay either way."""
        rtt_s = self._rtt_s
        link = Link(
            "bottleneck",
            self._rate_bps,
            self.queue,
            ("network", "queue"),
            burst_bytes=self.burst,
            loss=lossy(self.loss),
            bottleneck=True,
        )
        way = Way(PathPlan((HopPlan(0.0, 0),), rtt_s / 2), PathPlan((), rtt_s / 2), rtt_s)
        places = tuple((way,) * self.sources(group) for group in (*flows, *traffic))
        return Drawing((link,), places, testbed=self.planned())

    def planned(self) -> dict[str, Any]:
        """For `Plan.options`: the hosts, and the delay that is added; None if the path's own is not known.

        What is to be measured, and once it is, what was found.
        """
        wanted = [name for name in ("rate", "rtt") if getattr(self, name) == MEASURED]
        return {
            "hosts": [host.model_dump(mode="json") for host in self.hosts],
            "existing_path": self.existing_path,
            "rtt_s": None if self.rtt == MEASURED else self.rtt,
            "measure": wanted,
            "measured": None,
        }
