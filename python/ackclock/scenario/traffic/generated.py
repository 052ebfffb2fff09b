"""Transfers that come of their own: `[[traffic]]` with arrivals, sources that think, web pages, incast."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, model_validator
from pydantic_core import InitErrorDetails

from ackclock.input.distributions import Counts, Period, Times
from ackclock.input.fields import Loc, check_one_given, closest, fault_at, faults
from ackclock.scenario.keys import EventRate, Moment, Rate
from ackclock.scenario.topology.topology import MAX_FLOWS
from ackclock.scenario.traffic.flows import Transfers
from ackclock.scenario.traffic.sizes import Sizes

#: Connections that browsers open to a server over HTTP/1.1.
BROWSER_LANES = 6

Limit: TypeAlias = Annotated[int, Field(ge=1, le=2**32 - 1)]


class Generated(Transfers):
    """Base class of generated transfers."""

    hints: ClassVar[Mapping[str, str]] = {
        **Transfers.hints,
        "streams": "count: each transfer is a flow",
    }

    generated: ClassVar[bool] = True

    start: Moment = Field("0s", validate_default=True, description="when the traffic begins")
    size: Sizes = Field(
        description='how large a transfer is: "64KB", "10p", or { distribution = "pareto", … }; p are full segments'
    )
    application_rate: Rate | None = Field(
        None, description="rate at which the application writes; absent: as fast as TCP takes it"
    )

    def between_hosts(
        self, sources: Sequence[int], destinations: Sequence[int], place: Loc
    ) -> Iterator[InitErrorDetails]:
        """The hosts are the sources."""
        if self.count > 1:
            key = type(self).model_fields["count"].alias or "count"
            yield fault_at((*place, key), self.count, "1: each pair of hosts is a source")

    @abstractmethod
    def arrivals(self, per_s: float | None) -> Mapping[str, Any]:
        """When transfers begin, as a plan has it. `per_s` is what a load comes to."""

    @abstractmethod
    def transfers_of(self, arrivals: Mapping[str, Any], pairs: int, span_s: float) -> float:
        """Return the largest number of transfers in a time, if each took no time."""

    def last_start_s(self, sources: int) -> float:
        """The latest that a source may start, in seconds."""
        return self.start


class Poisson(Generated):
    """Transfers that begin at random: a Poisson process."""

    kind: Literal["poisson"] = Field(description='"poisson"')
    rate: EventRate | None = Field(None, description='mean rate of transfers, such as "1/s"; or give load')
    load: Annotated[float, Field(gt=0, le=10)] | None = Field(
        None, description="mean share of the bottleneck's rate that their wire bytes take; or give rate"
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Poisson:
        check_one_given('rate = "1/s" or load = 0.5', rate=self.rate, load=self.load)
        return self

    def arrivals(self, per_s: float | None) -> Mapping[str, Any]:
        """A rate."""
        return {"kind": "poisson", "per_s": self.rate if self.rate is not None else per_s}

    def transfers_of(self, arrivals: Mapping[str, Any], pairs: int, span_s: float) -> float:
        """The rate × the time."""
        return float(arrivals["per_s"] * span_s)


class Periodic(Generated):
    """Transfers at equal distances."""

    kind: Literal["periodic"] = Field(description='"periodic"')
    every: Period = Field(description='interval from one transfer\'s start to the next, such as "1s"')

    def arrivals(self, per_s: float | None) -> Mapping[str, Any]:
        """A distance."""
        return {"kind": "periodic", "every_s": self.every}

    def transfers_of(self, arrivals: Mapping[str, Any], pairs: int, span_s: float) -> float:
        """The distances in the time."""
        return span_s / self.every


class Jittered(Generated):
    """Transfers whose first ones begin at random within a range."""

    jitter: Moment = Field(
        "0s", validate_default=True, description="range of the random delay added to each first start"
    )

    def last_start_s(self, sources: int) -> float:
        """With the draw's width."""
        return self.start + self.jitter


class SingleTransfers(Jittered):
    """One transfer of each source, or between each pair of hosts."""

    kind: Literal["once"] = Field(description='"once"')

    def arrivals(self, per_s: float | None) -> Mapping[str, Any]:
        """All at the start."""
        return {"kind": "once", "jitter_s": self.jitter}

    def transfers_of(self, arrivals: Mapping[str, Any], pairs: int, span_s: float) -> float:
        """One of each pair."""
        return pairs


class Loop(Jittered):
    """Something that begins again when it has come to an end, and a time has passed."""

    #: The key of the largest number of rounds.
    limit_key: ClassVar[str]

    think: Times = Field(
        "0s",
        validate_default=True,
        description=(
            'pause between the end of one transfer and the start of the next: "5s", or '
            '{ distribution = "exponential", mean = "5s" }'
        ),
    )

    @model_validator(mode="after")
    def _takes_time_or_ends(self) -> Loop:
        if getattr(self, self.limit_key) is None and self.think.mean_s == 0:
            raise faults([self._endless()])
        return self

    @classmethod
    def joint_mistakes(cls, given: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """Neither an end nor a time to think, nor a misspelt one."""
        names = (cls.limit_key, "think")
        if not any(key in names or closest(key, names) for key in given):
            yield cls._endless()

    @classmethod
    def _endless(cls) -> InitErrorDetails:
        expected = f'{cls.limit_key} = …, or a think = "…" that takes time'
        return fault_at((cls.limit_key,), 0, expected, "nothing")

    def rounds_in(self, span_s: float) -> float:
        """Return the largest number of rounds in a time."""
        limit = getattr(self, self.limit_key)
        by_time = 1 + span_s / self.think.mean_s if self.think.mean_s else math.inf
        return min(by_time, math.inf if limit is None else limit)


class Sources(Loop):
    """Sources that transfer, think, transfer and so on."""

    limit_key: ClassVar[str] = "transfers"

    kind: Literal["sources"] = Field(description='"sources"')
    transfers: Limit | None = Field(None, description="maximum number of transfers per source; absent: no limit")

    def arrivals(self, per_s: float | None) -> Mapping[str, Any]:
        """A closed loop."""
        think = self.think.planned()
        return {"kind": "sources", "jitter_s": self.jitter, "think": think, "transfers": self.transfers}

    def transfers_of(self, arrivals: Mapping[str, Any], pairs: int, span_s: float) -> float:
        """Return the transfers of all sources."""
        return pairs * self.rounds_in(span_s)


class Web(Loop):
    """Users that fetch pages: a main object, then embedded ones over parallel lanes; then they think."""

    hints: ClassVar[Mapping[str, str]] = {**Generated.hints, "count": "users: the number of users"}
    limit_key: ClassVar[str] = "pages"

    kind: Literal["web"] = Field(description='"web"')
    count: Annotated[int, Field(ge=1, le=MAX_FLOWS)] = Field(1, alias="users", description="number of users")
    size: Sizes = Field(description="size of an embedded object, written as for any transfer")
    main: Sizes | None = Field(None, description="size of a page's main object; absent: the same as the embedded ones")
    objects: Counts = Field(description='embedded objects per page: 5, or { distribution = "geometric", mean = 5 }')
    parallel: Annotated[int, Field(ge=1, le=1000)] = Field(
        BROWSER_LANES, description="connections open at a time; 6 is what browsers open over HTTP/1.1"
    )
    pages: Limit | None = Field(None, description="maximum number of pages per user; absent: no limit")

    def arrivals(self, per_s: float | None) -> Mapping[str, Any]:
        """Pages; the planner puts in the main object's size."""
        return {
            "kind": "web",
            "jitter_s": self.jitter,
            "think": self.think.planned(),
            "pages": self.pages,
            "size_main": None,
            "objects": self.objects.planned(),
            "parallel": self.parallel,
        }

    def transfers_of(self, arrivals: Mapping[str, Any], pairs: int, span_s: float) -> float:
        """The objects of all users' pages."""
        return pairs * self.rounds_in(span_s) * (1 + self.objects.mean_count)


class Incast(Generated):
    """Rounds of several senders to one receiver, all at once."""

    hints: ClassVar[Mapping[str, str]] = {**Generated.hints, "count": "senders: the senders of a round"}

    kind: Literal["incast"] = Field(description='"incast"')
    count: Annotated[int, Field(ge=1, le=MAX_FLOWS)] = Field(
        alias="senders", description="number of senders in a round"
    )
    between: Literal["random", "round-robin"] | None = Field(
        None,
        description=(
            'between hosts: each round draws its receiver and its senders ("random", the default), or all '
            'rounds have the first receiver and the first senders ("round-robin")'
        ),
    )
    every: Period | None = Field(
        None,
        description="interval from one round's start to the next; absent: the next starts when the last is complete",
    )
    rounds: Limit | None = Field(None, description="maximum number of rounds; absent: no limit, which requires every")

    @model_validator(mode="after")
    def _ends(self) -> Incast:
        if self.rounds is None and self.every is None:
            raise faults([fault_at(("rounds",), 0, 'rounds = … or every = "…"', "nothing")])
        return self

    def between_hosts(
        self, sources: Sequence[int], destinations: Sequence[int], place: Loc
    ) -> Iterator[InitErrorDetails]:
        """Whichever host receives, there must be senders enough beside it."""
        others = len(sources) - any(host in sources for host in destinations)
        if self.count > others:
            yield fault_at((*place, "senders"), self.count, f"at most {others}, the hosts beside the receiver")

    @property
    def pattern(self) -> str:
        """Anybody may send to anybody."""
        return "all"

    @property
    def pairing(self) -> str:
        """Return how a round selects its ends."""
        return (self.between or "random").replace("-", "_")

    def arrivals(self, per_s: float | None) -> Mapping[str, Any]:
        """Rounds."""
        return {"kind": "incast", "senders": self.count, "every_s": self.every, "rounds": self.rounds}

    def transfers_of(self, arrivals: Mapping[str, Any], pairs: int, span_s: float) -> float:
        """The senders of all rounds."""
        by_time = span_s / self.every if self.every else math.inf
        return self.count * min(by_time, math.inf if self.rounds is None else self.rounds)
