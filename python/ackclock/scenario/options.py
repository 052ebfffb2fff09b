"""Options of one engine: the tables `[theory]`, `[fluid]`, `[meanfield]` and `[linux]` of a scenario.

The network, its traffic and its algorithms are said once for all engines; here is what only a model has, such as how
its flows lose in step. An engine reads its own complete values from `Plan.options`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ackclock.input import units
from ackclock.input.fields import PlannedTable, Quantity, SizeQuantity, Table, check_one_given, fault, nearest, shown
from ackclock.input.tagged_union import Chosen, tables_by_tag
from ackclock.scenario.keys import Delay, Interval

# --- theory


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


class Theory(PlannedTable):
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

    def planned(self) -> dict[str, Any]:  # noqa: D102
        values = super().planned()
        values["syn_loss"]["recovery_s"] = values["syn_loss"].pop("recovery")
        return values


# --- fluid

Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Exponent: TypeAlias = Annotated[float, Field(ge=-20, le=20)]
Flows: TypeAlias = Annotated[float, Field(gt=0, le=1e6)]


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
        check_one_given(shares=self.shares, from_=self.from_)
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
        check_one_given(flows=self.flows, from_=self.from_)
        return self


AnySynchronisation: TypeAlias = (
    NoSynchronisation | NormalSynchronisation | FullSynchronisation | ReplayedSynchronisation | LossSynchronisation
)
AnyVictims: TypeAlias = ByRate | ByWindow | AtRandom | WeightedVictims | ReplayedVictims


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


class Fluid(PlannedTable):
    """Options of the fluid engine."""

    plan_keys: ClassVar[Mapping[str, str]] = {"step": "step_s"}

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
    step: Interval | None = Field(
        None, description="the longest step; absent, and at most: a tenth of the shortest RTT"
    )


# --- meanfield

#: A window in packets.
Window = Annotated[Any, SizeQuantity(units.size, (("p", 1, 1e9),)), AfterValidator(lambda size: size.value)]


class MeanField(PlannedTable):
    """Options of the mean-field engine."""

    plan_keys: ClassVar[Mapping[str, str]] = {"step": "step_s", "first_loss": "first_loss_p"}

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


# --- linux

#: A kernel's version, or one of the words.
KERNEL = r"[A-Za-z0-9][A-Za-z0-9._+~-]*"

#: A sysctl of a network namespace, as sysctl(8) writes it.
SYSCTL = re.compile(r"net\.[a-z0-9_]+(\.[A-Za-z0-9_-]+)+")

Memory: TypeAlias = Annotated[float, Quantity(units.bytes_of, "96MiB", "64GiB")]
AppInterval: TypeAlias = Annotated[float, Quantity(units.time_s, "10us", "1s")]


def _sysctls(value: object) -> object:
    """Names of the network's sysctls, and what they are set to: a number, or words."""
    if not isinstance(value, dict):
        raise fault(shown(value), 'a table such as { "net.ipv4.tcp_limit_output_bytes" = 262144 }')
    for name, setting in value.items():
        if not SYSCTL.fullmatch(str(name)):
            raise fault(shown(name), 'the name of a sysctl of the network, such as "net.ipv4.tcp_recovery"')
        if isinstance(setting, bool) or not isinstance(setting, (int, str)) or "\n" in str(setting):
            raise fault(shown(setting), f"a whole number or a text for {name}")
        if isinstance(setting, str) and not re.fullmatch(r"[\w .,:/+-]+", setting):
            raise fault(shown(setting), f"a whole number, or words without quotes, for {name}")
    return value


def _kernel(value: object) -> object:
    """No file: a scenario comes by mail too, and would name a program to run."""
    expected = '"guest", "live", or the version of a guest kernel such as "6.1.192"'
    if not isinstance(value, str) or not value:
        raise fault(shown(value), expected)
    if not re.fullmatch(KERNEL, value):
        raise fault(shown(value), f"{expected}; a file is for --kernel alone")
    return value


class Linux(PlannedTable):
    """Options of the engine of the real Linux kernel."""

    kernel: Annotated[str, BeforeValidator(_kernel), Field(pattern=f"^{KERNEL}$")] = Field(
        "guest",
        description='which kernel: "guest", a User-Mode Linux in virtual time; its version, if there are '
        'several; "live", the one that this machine runs; "hosts", those of a testbed (absent there: "hosts")',
    )
    memory: Memory = Field(
        "512MiB",
        validate_default=True,
        description="what a guest may use; Linux sizes the memory of its sockets by it",
    )
    app_interval: AppInterval = Field(
        "5ms", validate_default=True, description="how often the applications read and write"
    )
    reader: Literal["immediate", "periodic"] = Field(
        "immediate",
        description='"immediate": the application reads at once, so ACKs are not delayed by it; "periodic": it reads '
        'every "app_interval"',
    )
    writer: Literal["immediate", "periodic"] = Field(
        "immediate",
        description='"immediate": the application writes whenever there is room; "periodic": every "app_interval", '
        "before it reads",
    )
    offloads: bool = Field(
        False, description="whether batches of segments stay together through the network, as one large packet"
    )
    sysctls: Annotated[dict[str, int | str], BeforeValidator(_sysctls)] = Field(
        {}, description='settings of all hosts, such as { "net.ipv4.tcp_limit_output_bytes" = 262144 }'
    )

    def planned(self) -> dict[str, Any]:  # noqa: D102
        values = super().planned()
        values["memory_bytes"] = int(values.pop("memory"))
        values["app_interval_s"] = values.pop("app_interval")
        return values


#: Engine → its table.
OPTIONS: Mapping[str, type[PlannedTable]] = {"theory": Theory, "fluid": Fluid, "meanfield": MeanField, "linux": Linux}
