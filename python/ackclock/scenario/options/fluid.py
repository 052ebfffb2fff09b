"""The table `[fluid]` of a scenario: what only the fluid engine has."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from ackclock.input.fields import Quantity, Table, fault, nearest, shown
from ackclock.input.tagged_union import Chosen, tables_by_tag
from ackclock.input.units import time_s
from ackclock.scenario.options.options import Options

Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Exponent: TypeAlias = Annotated[float, Field(ge=-20, le=20)]
Flows: TypeAlias = Annotated[float, Field(gt=0, le=1e6)]
Step: TypeAlias = Annotated[float, Quantity(time_s, "1us", "1h")]


class NoSynchronisation(Table):
    """Smooth losses: there are no congestion events."""

    kind: Literal["none"] = Field(description='"none"')


class NormalSynchronisation(Table):
    """A number of flows from a truncated normal distribution."""

    kind: Literal["normal"] = Field(description='"normal"')
    least: Share = Field(0.3, description="X: the least share of the flows that an event hits")
    mean: Flows | None = Field(None, description="mean in flows; absent: halfway between the least and all")
    sd: Annotated[float, Field(ge=0, le=1e6)] = Field(1.5, description="standard deviation in flows")


class FullSynchronisation(Table):
    """All flows."""

    kind: Literal["full"] = Field(description='"full"')


class ReplayedSynchronisation(Table):
    """Loss synchronisation measured in a result."""

    kind: Literal["replayed"] = Field(description='"replayed"')
    shares: Annotated[list[Share], Field(min_length=1)] | None = Field(
        None, description="share of the flows hit, event by event, and again from the first"
    )
    from_: str | None = Field(
        None, alias="from", description='a result folder whose congestion epochs are measured: "results/x-packet"'
    )

    @model_validator(mode="after")
    def _one(self) -> ReplayedSynchronisation:
        _one_of(self.shares, self.from_, "shares")
        return self


class LossSynchronisation(Table):
    """By lot, as many as the packets that the event is about to lose make it; what `ackclock fit` finds."""

    kind: Literal["losses"] = Field(description='"losses"')
    loss_weight: Annotated[float, Field(ge=0, le=1e6)] = Field(
        1.0,
        description="for how many independent losses a lost packet counts: 1 if each hits a flow at random, less "
        "where losses cluster on one flow",
    )


class ByRate(Table):
    """The flows of the highest rates."""

    kind: Literal["rate"] = Field(description='"rate"')


class ByWindow(Table):
    """The flows of the largest windows."""

    kind: Literal["window"] = Field(description='"window"')


class AtRandom(Table):
    """Any flows."""

    kind: Literal["random"] = Field(description='"random"')


class WeightedVictims(Table):
    """Any flows, with chances that go with powers of their rate and of their growth; what `ackclock fit` finds."""

    kind: Literal["weighted"] = Field(description='"weighted"')
    rate: Exponent = Field(1.0, description="exponent of a flow's rate")
    growth: Exponent = Field(0.0, description="exponent of the growth of its window, in packets per second")


class ReplayedVictims(Table):
    """Loss assignment measured in a result."""

    kind: Literal["replayed"] = Field(description='"replayed"')
    flows: Annotated[list[list[Annotated[int, Field(ge=0)]]], Field(min_length=1)] | None = Field(
        None,
        description="the flows hit first, event by event, and again from the first; then those of the highest rates",
    )
    from_: str | None = Field(
        None, alias="from", description='a result folder whose congestion epochs are measured: "results/x-packet"'
    )

    @model_validator(mode="after")
    def _one(self) -> ReplayedVictims:
        _one_of(self.flows, self.from_, "flows")
        return self


AnySynchronisation: TypeAlias = (
    NoSynchronisation | NormalSynchronisation | FullSynchronisation | ReplayedSynchronisation | LossSynchronisation
)
AnyVictims: TypeAlias = ByRate | ByWindow | AtRandom | WeightedVictims | ReplayedVictims


def _one_of(given: object, folder: str | None, name: str) -> None:
    if (given is None) == (folder is None):
        found = f"neither {name} nor from" if given is None else f"both {name} and from"
        raise fault(found, f"one of {name} and from")


def _named(union: Any, words: tuple[str, ...]) -> Chosen:
    """A table of the union, or for the kinds in `words` the word alone."""
    tables = tables_by_tag("kind", union)

    def plain(word: object) -> Table:
        if not isinstance(word, str) or word not in words:
            raise fault(shown(word), f"{nearest(word, words)}, or a table with a kind")
        return tables[word].model_validate({"kind": word})

    return Chosen("kind", tables, plain, {"enum": list(words)})


SYNCHRONISATIONS = ("none", "normal", "full", "losses")
VICTIMS = ("rate", "window", "random", "weighted")


class Fluid(Options):
    """Options of the fluid engine."""

    synchronisation: Annotated[AnySynchronisation, _named(AnySynchronisation, SYNCHRONISATIONS)] = Field(
        "normal",
        validate_default=True,
        description='how many flows a congestion event hits: "none", "normal", "full", "losses", or a table with a '
        "kind",
    )
    loss_assignment: Annotated[AnyVictims, _named(AnyVictims, VICTIMS)] = Field(
        "rate",
        validate_default=True,
        description='which flows: "rate", "window", "random", "weighted", or { kind = "replayed", … }',
    )
    cuts: Literal["once", "packets"] = Field(
        "once",
        description='how often an event cuts the window of a flow that it hits: "once", as TCP does; "packets", again '
        "for each packet that the flow loses, as the equation W b λ with λ in packets has it",
    )
    slow_start: bool = Field(True, description="whether flows begin with slow start")
    step: Step | None = Field(None, description="the longest step; absent, and at most: a tenth of the shortest RTT")

    def planned(self) -> dict[str, Any]:
        """Complete JSON-ready values in SI units, for `Plan.options`."""
        return {
            "synchronisation": self.synchronisation.model_dump(mode="json", by_alias=True),
            "loss_assignment": self.loss_assignment.model_dump(mode="json", by_alias=True),
            "cuts": self.cuts,
            "slow_start": self.slow_start,
            "step_s": self.step,
        }
