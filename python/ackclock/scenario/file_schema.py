"""The keys and tables of a scenario file, each checked for itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ackclock.algorithms.selection import Given
from ackclock.input.fields import Table
from ackclock.scenario.keys import Duration, Interval, Moment, Name, Pcap, Seed, Tcp
from ackclock.scenario.options import Fluid, Linux, MeanField, Theory
from ackclock.scenario.topology import Network
from ackclock.scenario.traffic import Traffic
from ackclock.scenario.traffic.flows import Flows

#: Most runs of a scenario.
MAX_RUNS = 10_000


class Record(Table):
    """Recorded data."""

    interval: Interval = Field("10ms", validate_default=True, description="sampling period")
    packets: bool = Field(False, description="a per-packet log")
    pcap: Pcap = Field(
        False,
        description='a packet capture at the senders; or at each place in a list: "senders", "receivers", "link:NAME"; '
        "and the fate of each packet",
    )
    traffic: bool = Field(False, description="samples of the flows of [[traffic]] too")
    links: Literal["bottlenecks", "all"] | None = Field(
        None, description='links whose queues are sampled: "bottlenecks" or "all"; absent: all if there are 16 or fewer'
    )
    delays: bool = Field(False, description="end-to-end delays of data packets: the table delays, and metrics")
    cubic_state: bool = Field(
        False, description="internal state of CUBIC and its variants at each sample: the table cubic_samples"
    )
    epochs: Literal["gap", "first", "per RTT"] = Field(
        "gap",
        description='which losses form one congestion epoch: "gap", each within an RTT of the previous one; "first", '
        'within an RTT of the first; "per RTT", in the same RTT of a fixed clock',
    )
    paths: bool = Field(False, description="the links of each flow's path in a routed network: the table paths")


class Written(Table):
    """All that a file may hold."""

    name: Name | None = Field(None, description="a title")
    duration: Duration = Field(description='how long to simulate, such as "60s"')
    warmup: Moment = Field("0s", validate_default=True, description="initial period left out of the metrics")
    repeats: Annotated[int, Field(ge=1, le=MAX_RUNS)] | None = Field(
        None, description="number of runs, with seeds 1, 2, 3 …"
    )
    seeds: list[Seed] | None = Field(None, description="explicit seeds, instead of repeats")
    network: Network = Field(description='a table [network] with a topology, such as topology = "dumbbell"')
    tcp: Tcp = Field(
        default_factory=lambda: Given(None, {}),
        description="the TCP of all flows: a stack, and values that override its defaults",
    )
    flows: list[Flows] = Field([], description="tables [[flows]]: flows listed explicitly")
    traffic: list[Traffic] = Field([], description="tables [[traffic]]: generated transfers, and UDP")
    record: Record = Field(default_factory=Record, description="what is recorded")
    theory: Theory = Field(default_factory=Theory, description="options of the closed-form engine")
    fluid: Fluid = Field(default_factory=Fluid, description="options of the fluid engine")
    meanfield: MeanField = Field(default_factory=MeanField, description="options of the mean-field engine")
    linux: Linux = Field(default_factory=Linux, description="options of the Linux engine, which runs the real kernel")
    traces: dict[str, str] = Field(
        {},
        description="contents of rate traces by the names that rates refer to; absent: files in the scenario's folder",
    )
    sweep: dict[str, Any] = Field(
        {},
        description='lists of values by dotted path, such as "network.queue.limit": every combination is a point',
    )
