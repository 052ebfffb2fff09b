"""The table `[theory]` of a scenario: what only the closed-form engine has.

`model` says which model answers; each that has options has a table of its own.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ackclock.input.fields import Table
from ackclock.scenario.keys import Delay
from ackclock.scenario.options.options import Options


class SingleCubicOptions(Table):
    """Options of a single CUBIC flow with a queue to itself."""

    growth: Literal["acks", "rtt"] = Field(
        "acks",
        description="how the Reno estimate grows: with each window of ACKs, as senders do it "
        '("acks"), or as W + a t / R(t) ("rtt", Belhareth 2014, equation 2.11), slower where there is a queue',
    )
    rounding: Literal["as_sent", "nothing", "loss", "window"] = Field(
        "as_sent",
        description='what is rounded to whole packets: "nothing"; "loss", the window at which a packet is lost '
        '(Belhareth 2014, section 2.4.1.3); "window", the window itself, rounded towards the plateau as Linux does; '
        '"as_sent", as the flow\'s whole_segments says',
    )
    loss_detection: Literal["at_once", "next_round", "rtt_later"] = Field(
        "rtt_later",
        description='when the sender learns of a loss: "at_once"; "next_round", at the end of the round, as in '
        'Belhareth 2014; "rtt_later"; until then the window grows',
    )


class PendulumOptions(Table):
    """Options of two antiparallel flows."""

    growth: Literal["rtt", "acks"] = Field(
        "rtt",
        description='how a Reno window grows: "rtt", by a packet per RTT; "acks", by a fraction of one per ACK, '
        "which is half as fast with delayed ACKs",
    )
    simultaneous_loss: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None,
        description="probability that a loss in one direction causes one in the other, if that queue cannot hold "
        "what arrives; absent: 1 with queues in bytes, 0 with queues in packets",
    )
    simultaneous_losses: Literal["drawn", "expected"] = Field(
        "drawn",
        description='whether these losses are "drawn" at random, or the window is reduced to its "expected" value',
    )
    ack_places: Literal["one", "acknowledged"] = Field(
        "one",
        description='how many places of a queue in packets an ACK takes: "one", or as many as the packets that it '
        '"acknowledged", as condition 4.17 of Braud 2016 has it',
    )


class SynLossOptions(Table):
    """Options of transfers that may lose their SYN."""

    recovery: Delay | None = Field(None, description="how long the repair of a loss takes; absent: one RTT")


class Theory(Options):
    """Options of the closed-form engine."""

    model: Literal[
        "auto",
        "single-cubic",
        "pendulum",
        "syn-loss",
        "random-loss",
        "small-packets",
        "streams",
    ] = Field("auto", description='which model to use; "auto": the first one that fits the scenario')
    single_cubic: SingleCubicOptions = Field(
        default_factory=SingleCubicOptions, description="how a single CUBIC flow with a queue to itself is modelled"
    )
    pendulum: PendulumOptions = Field(
        default_factory=PendulumOptions, description="how two antiparallel New Reno flows are modelled"
    )
    syn_loss: SynLossOptions = Field(
        default_factory=SynLossOptions, description="how transfers that may lose their SYN are modelled"
    )

    def planned(self) -> dict[str, Any]:
        """With the unit in the name."""
        values = super().planned()
        values["syn_loss"]["recovery_s"] = values["syn_loss"].pop("recovery")
        return values
