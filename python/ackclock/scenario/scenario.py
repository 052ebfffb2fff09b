"""The scenario: what the user wrote, checked.

A scenario is a TOML file of tables whose every quantity carries its unit. Reading one reports all mistakes at once,
each as one line with the file, the line, the key, what was found and what is expected. What was not written is left
open: defaults of algorithms and TCP stacks are on their cards and are filled in by `ackclock.plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from ackclock.catalog.given import Given
from ackclock.errors import ScenarioError
from ackclock.input.fields import Table, faults
from ackclock.input.source import Source
from ackclock.scenario import consistency
from ackclock.scenario.keys import Duration, Interval, Moment, Name, Seed, Tcp
from ackclock.scenario.options import Fluid, Linux, MeanField, Theory
from ackclock.scenario.topology import Network
from ackclock.scenario.traffic import Traffic
from ackclock.scenario.traffic.flows import Flows


class Record(Table):
    """What is written down."""

    interval: Interval = Field("10ms", validate_default=True, description="period of the samples")
    packets: bool = Field(False, description="a per-packet log")
    pcap: bool = Field(False, description="a packet capture at the senders")
    traffic: bool = Field(False, description="samples of the flows of [[traffic]] too")
    links: Literal["bottlenecks", "all"] | None = Field(
        None, description='whose queues are sampled: "bottlenecks" or "all"; absent: all if there are 16 or fewer'
    )


class Scenario(Table):
    """The whole file."""

    name: Name | None = Field(None, description="a title")
    duration: Duration = Field(description='how long to simulate, such as "60s"')
    warmup: Moment = Field("0s", validate_default=True, description="the beginning that is left out of the metrics")
    repeats: Annotated[int, Field(ge=1, le=consistency.MOST_RUNS)] | None = Field(
        None, description="runs with seeds 1, 2, 3 …"
    )
    seeds: list[Seed] | None = Field(None, description="the seeds themselves, instead of repeats")
    network: Network = Field(description='a table [network] with a topology, such as topology = "dumbbell"')
    tcp: Tcp = Field(
        default_factory=lambda: Given(None, {}),
        description="the TCP of all flows: a stack and what differs from its card",
    )
    flows: list[Flows] = Field([], description="tables [[flows]]: flows one by one")
    traffic: list[Traffic] = Field([], description="tables [[traffic]]: flows that are generated, and UDP")
    record: Record = Field(default_factory=Record, description="what is written down")
    theory: Theory = Field(default_factory=Theory, description="options of the closed-form engine")
    fluid: Fluid = Field(default_factory=Fluid, description="options of the fluid engine")
    meanfield: MeanField = Field(default_factory=MeanField, description="options of the mean-field engine")
    linux: Linux = Field(default_factory=Linux, description="options of the engine of the real Linux kernel")
    sweep: dict[str, Any] = Field(
        {}, description='lists of values by dotted keys, such as "network.queue.limit": every combination is a point'
    )

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        if mistakes := [*consistency.mistakes(self)]:
            raise faults(mistakes)
        return self


def checked(content: Mapping[str, Any], source: Source) -> Scenario:
    """The scenario that a file's values are. Raises `ScenarioError` with every mistake, each in its place."""
    try:
        return Scenario.model_validate(content)
    except ValidationError as error:
        problems = [source.problem(d["loc"], d["ctx"]["found"], d["ctx"]["expected"]) for d in error.errors()]
        raise ScenarioError(sorted(problems, key=lambda problem: problem.line or 0)) from None


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file, for editors."""
    schema = _without_nulls(Scenario.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "ackclock scenario"}


def _without_nulls(schema: Any) -> Any:
    """A TOML file cannot say null: what is optional is left out instead."""
    if isinstance(schema, list):
        return [_without_nulls(item) for item in schema if item != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _without_nulls(value) for key, value in schema.items() if (key, value) != ("default", None)}
    only = kept.get("anyOf")
    if isinstance(only, list) and len(only) == 1:
        del kept["anyOf"]
        return only[0] | kept
    return kept
