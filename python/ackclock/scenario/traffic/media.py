"""Real-time media: a video over RTP whose rate follows a congestion control algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, model_validator

from ackclock import algorithms
from ackclock.input import units
from ackclock.input.distributions import Period
from ackclock.input.fields import Quantity, fault_at, faults, word_reader
from ackclock.scenario.keys import Moment, Payload, Rate, RealtimeCongestion
from ackclock.scenario.traffic.datagrams import Datagrams

#: Bytes of an RTP header without extensions (RFC 3550 section 5.1).
RTP_HEADER_BYTES = 12

#: Packets of a frame of mean size, at most: half of RTP's sequence numbers, which separate late packets from new ones
#: (RFC 3550 appendix A.1).
MAX_FRAME_PACKETS = 1 << 15

Frames: TypeAlias = Annotated[float, Quantity(units.count_rate_hz, "1/s", "1000/s")]


class Media(Datagrams):
    """A video whose rate follows a congestion control algorithm for real-time media."""

    kind: Literal["media"] = Field(description='"media"')
    hints: ClassVar[Mapping[str, str]] = {
        **{key: text for key, text in Datagrams.hints.items() if key != "congestion"},
        "rate": "min_rate, start_rate and max_rate",
        "control": 'congestion = "…"',
    }

    congestion: RealtimeCongestion = Field(description='the congestion control: "gcc", "nada" or "scream", or a table')
    packet: Payload = Field("1200B", validate_default=True, description="largest payload of an RTP packet")
    min_rate: Rate = Field("150kbit", validate_default=True, description="lowest rate of IP packets")
    start_rate: Rate = Field("300kbit", validate_default=True, description="rate at the start")
    max_rate: Rate = Field("1.5Mbit", validate_default=True, description="highest rate")
    frame_rate: Frames = Field("30/s", validate_default=True, description="frames per second")
    size_variation: Annotated[float, Field(ge=0, le=1)] = Field(
        0.15, description="scale of the Laplace distribution of frame sizes, relative to their mean"
    )
    reaction: Moment = Field(
        "200ms", validate_default=True, description="the encoder ignores new targets for this time"
    )
    feedback_interval: Period = Field("100ms", validate_default=True, description="interval of the reports")
    feedback: Literal["interval", "frame"] | None = Field(
        None, description='"frame": reports also at each frame and 16th packet, scream\'s own choice; or "interval"'
    )
    circuit_breaker: bool = Field(False, description="the flow ends for good by the rules of RFC 8083")
    ecn: Annotated[Any, word_reader((True, False, "classic"))] = Field(
        False, description="packets are ECN-capable, if the congestion control reacts to marks"
    )

    @model_validator(mode="after")
    def _is_consistent(self) -> Media:
        rising = (("start_rate", self.start_rate, "min_rate", self.min_rate),
                  ("max_rate", self.max_rate, "start_rate", self.start_rate))  # fmt: skip
        mistakes = [
            fault_at((key,), 0, f"at least {low_key} ({low:g} bit/s)", f"{value:g} bit/s")
            for key, value, low_key, low in rising
            if value < low
        ]
        packets = self.max_rate / (8 * self.frame_rate * (self.packet + self.header_bytes))
        if packets > MAX_FRAME_PACKETS:
            found = f"{self.max_rate:g} bit/s, {packets:.0f} packets in each frame"
            mistakes.append(fault_at(("max_rate",), 0, f"at most {MAX_FRAME_PACKETS} packets in each frame", found))
        if self.ecn and not self._spec.ecn:
            mistakes.append(fault_at(("ecn",), self.ecn, f"false: {self._spec.name} does not react to marks"))
        if mistakes:
            raise faults(mistakes)
        return self

    @property
    def _spec(self) -> algorithms.AlgorithmSpec:
        return algorithms.spec("realtime", str(self.congestion.name))

    @property
    def protocol(self) -> str:
        """The congestion control's name."""
        return self._spec.name

    @property
    def header_bytes(self) -> int:
        """Bytes of the headers of IPv4, UDP and RTP."""
        return super().header_bytes + RTP_HEADER_BYTES

    def source(self) -> Mapping[str, Any]:
        """Media, with the complete parameters of its congestion control."""
        parameters = self._spec.planned(self.congestion.values, self.congestion.variant)
        return {
            "kind": "media",
            "congestion": {"kind": self._spec.name, "parameters": parameters},
            "min_rate_bps": self.min_rate,
            "start_rate_bps": self.start_rate,
            "max_rate_bps": self.max_rate,
            "frames_per_s": self.frame_rate,
            "size_variation": self.size_variation,
            "reaction_s": self.reaction,
            "feedback_interval_s": self.feedback_interval,
            "feedback": self.feedback or self._spec.feedback,
            "circuit_breaker": self.circuit_breaker,
            "ecn": self._spec.ecn if self.ecn is True else self.ecn or "off",
        }
