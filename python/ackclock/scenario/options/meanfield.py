"""The table `[meanfield]` of a scenario: what only the mean-field engine has."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ackclock.input import units
from ackclock.input.fields import SizeQuantity
from ackclock.scenario.keys import Interval
from ackclock.scenario.options.options import Options

Window = Annotated[Any, SizeQuantity(units.size, (("p", 1, 1e9),))]


class MeanField(Options):
    """Options of the mean-field engine."""

    mode: Literal["auto", "cubic", "tcp"] = Field(
        "auto",
        description='what CUBIC\'s windows follow: "auto", the greater of the cubic curve and of what Reno would have, '
        'as real senders do; "cubic" or "tcp", that one alone',
    )
    one_reduction_per_rtt: bool = Field(
        True,
        description="a flow reduces once in a round trip at most, as TCP does; false: for each loss, as Belhareth 2014 "
        "prints it",
    )
    recovery: bool = Field(
        True,
        description="losing takes time: lost packets clock nothing out until their sender hears of them, and its "
        "window rests for the round trip that repairs them; false: neither, as Belhareth 2014",
    )
    slow_start: bool = Field(
        False,
        description="flows start when the scenario says, and their windows double in each round trip until a loss, or "
        "until HyStart sees the delay rise; false: all begin together just after a loss",
    )
    loss_weight: Annotated[float, Field(gt=0, le=1000)] = Field(
        1.0,
        description="for how many independent losses a lost packet counts: 1 if each hits a flow at random, less "
        "where losses cluster on one flow, as `ackclock fit` finds it",
    )
    loss_rate_exponent: Annotated[float, Field(ge=-20, le=20)] = Field(
        1.0,
        description="a flow's chance of a loss is proportional to this power of its rate: 1 if packets are dropped at "
        "random, 0 if all flows are hit alike",
    )
    particles: bool = Field(
        False,
        description="each flow of the scenario loses at random, and seeds differ; false: the limit of infinitely many "
        "flows, which is the same for all seeds",
    )
    step: Interval | None = Field(
        None, description="the longest step; absent, and at most: a 25th of the shortest base RTT"
    )
    first_loss: Window | None = Field(
        None,
        description="window of the loss after which all flows begin, 5p for example; not given: a flow's share of what "
        "the link and its buffer hold",
    )
    scale: Annotated[float, Field(ge=1, le=1000)] = Field(
        1.0,
        description="the model runs at so many times less rate and buffer, and its results are scaled up (Belhareth "
        "2014, section 3.3.2); in cubic mode that hides synchronisation. There is no need for it: cost does not grow "
        "with the rate",
    )

    def planned(self) -> dict[str, Any]:
        """Complete JSON-ready values in SI units, for `Plan.options`."""
        return {
            "mode": self.mode,
            "one_reduction_per_rtt": self.one_reduction_per_rtt,
            "recovery": self.recovery,
            "slow_start": self.slow_start,
            "loss_weight": self.loss_weight,
            "loss_rate_exponent": self.loss_rate_exponent,
            "particles": self.particles,
            "step_s": self.step,
            "first_loss_p": None if self.first_loss is None else self.first_loss.value,
            "scale": self.scale,
        }
