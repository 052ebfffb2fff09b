"""UDP: constant rates, timed bursts, on and off, and a sender that follows the delay it measures."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator
from pydantic_core import InitErrorDetails

from ackclock.input.distributions import Period, Times
from ackclock.input.fields import Loc, Quantity, Table, check_one_given, fault_at, faults
from ackclock.input.units import time_s
from ackclock.plan import UDP_HEADER_BYTES
from ackclock.scenario.keys import EventRate, Payload
from ackclock.scenario.topology.topology import DRAWN
from ackclock.scenario.traffic.flows import Sending, StartOfSources, Starts


class Datagrams(Sending):
    """Base class of UDP sources."""

    hints: ClassVar[Mapping[str, str]] = {
        "congestion": "no congestion: UDP has none",
        "tcp": "no tcp: this is UDP",
        "size": 'packet = "…": the payload of a datagram',
    }

    packet: Payload = Field(description='payload of a datagram, such as "1B"; IPv4 and UDP headers add 28 bytes')
    start: StartOfSources = Field(
        default_factory=Starts, description="when the sources start: a time, or { at, every }"
    )

    def between_hosts(
        self, sources: Sequence[int], destinations: Sequence[int], place: Loc
    ) -> Iterator[InitErrorDetails]:
        """Yield a fault for drawn pairs, which UDP lacks."""
        if self.pattern in DRAWN:
            expected = '"all" or "round-robin": the ends of UDP are not drawn from the seed'
            yield fault_at((*place, "between"), self.pattern, expected)

    def last_start_s(self, sources: int) -> float:
        """The latest that a source starts, in seconds."""
        return self.start.at + (sources - 1) * self.start.every

    @property
    def protocol(self) -> str:
        """Beginning of the default name of the group."""
        return "udp"

    @property
    def header_bytes(self) -> int:
        """Bytes of the headers of IPv4 and UDP."""
        return UDP_HEADER_BYTES

    @abstractmethod
    def source(self) -> Mapping[str, Any]:
        """When datagrams leave, as a plan has it."""


class Burst(Table):
    """Datagrams in bursts."""

    packets: Annotated[int, Field(ge=1, le=10**9)] = Field(description="datagrams of a burst")
    every: Period = Field(description="from the start of a burst to that of the next")


class RateAdaptation(Table):
    """A sender that follows the round-trip time it measures: less delay than the target, fewer packets."""

    target: Annotated[float, Quantity(time_s, "1us", "1h")] = Field(description="queueing delay to hold")
    min: EventRate = Field(description='the lowest rate, such as "10/s"')
    max: EventRate = Field(description='the highest rate, such as "500/s"')

    @model_validator(mode="after")
    def _rising(self) -> RateAdaptation:
        if self.max < self.min:
            raise faults([fault_at(("max",), 0, f"at least as much as min ({self.min:g}/s)", f"{self.max:g}/s")])
        return self


class Udp(Datagrams):
    """A constant rate, all the time or in bursts; or one that follows the delay."""

    kind: Literal["udp"] = Field(description='"udp"')
    rate: EventRate | None = Field(None, description='datagrams per second, such as "250/s"; or give rate_adaptation')
    burst: Burst | None = Field(None, description='{ packets = 100, every = "1s" }; absent: continuous')
    rate_adaptation: RateAdaptation | None = Field(
        None, description='{ target = "20ms", min = "10/s", max = "500/s" }: the rate follows the measured delay'
    )

    @model_validator(mode="after")
    def _one_way(self) -> Udp:
        expected = 'rate = "250/s" or rate_adaptation = { target = "20ms", min = …, max = … }'
        check_one_given(expected, rate=self.rate, rate_adaptation=self.rate_adaptation)
        if self.burst and self.rate_adaptation:
            raise faults([fault_at(("burst",), {}, "no burst with rate_adaptation")])
        if self.burst and self.rate and self.burst.packets / self.rate > self.burst.every:
            expected = f"at least {self.burst.packets / self.rate:g} s, which {self.burst.packets} datagrams take"
            raise faults([fault_at(("burst", "every"), 0, expected, f"{self.burst.every:g} s")])
        return self

    def source(self) -> Mapping[str, Any]:
        """Constant, in bursts, or adaptive."""
        if self.rate_adaptation:
            bounds = {"min_per_s": self.rate_adaptation.min, "max_per_s": self.rate_adaptation.max}
            return {"kind": "adaptive", "target_s": self.rate_adaptation.target, **bounds}
        if self.burst:
            timing = {"packets": self.burst.packets, "every_s": self.burst.every}
            return {"kind": "bursts", "per_s": self.rate, **timing}
        return {"kind": "constant", "per_s": self.rate}


class OnOff(Datagrams):
    """A constant rate for a while, then silence for a while."""

    kind: Literal["on-off"] = Field(description='"on-off"')
    rate: EventRate = Field(description='datagrams per second while it is on, such as "250/s"')
    on: Times = Field(description='how long it is on: "1s", or { distribution = "exponential", mean = "1s" }')
    off: Times = Field(description="how long it is off, written as on")

    @model_validator(mode="after")
    def _takes_time(self) -> OnOff:
        if self.on.mean_s == 0:
            raise faults([fault_at(("on",), 0, "more than no time", "0 s")])
        return self

    def source(self) -> Mapping[str, Any]:
        """On and off."""
        return {"kind": "on_off", "per_s": self.rate, "on": self.on.planned(), "off": self.off.planned()}
