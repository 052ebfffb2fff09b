"""Groups of like flows: `[[flows]]`."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from ackclock.input.fields import Spread, Spreadable, Table
from ackclock.scenario.keys import MOMENT, RATE, TRANSFER, Moment
from ackclock.scenario.topology.endpoints import MAX_FLOWS
from ackclock.scenario.traffic.flow_group import Transfers


class Starts(Table):
    """When sources start: source i at `at` + i × `every`."""

    at: Moment = Field("0s", validate_default=True, description="start of the first source")
    every: Moment = Field("0s", validate_default=True, description="interval between one source's start and the next")


class Start(Starts):
    """When flows start: those of source i at `at` + i × `every` + a draw from [0, `jitter`) of the run's seed."""

    jitter: Moment = Field("0s", validate_default=True, description="range of the random delay added to each start")


class _StartAt:
    """An annotation: a bare time is the start of all."""

    @staticmethod
    def table(value: object) -> object:
        if isinstance(value, (dict, Starts)):
            return value
        MOMENT.read(value)
        return {"at": value}

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(self.table, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, handler(schema)]}


#: A bare time, or a table.
StartOfSources: TypeAlias = Annotated[Starts, _StartAt()]
StartOfFlows: TypeAlias = Annotated[Start, _StartAt()]


class Flows(Transfers):
    """A group of like flows."""

    streams: Annotated[int, Field(ge=1, le=MAX_FLOWS)] = Field(
        1, description="parallel flows of each source, over the same access link"
    )
    start: StartOfFlows = Field(default_factory=Start, description="when the flows start")
    size: Annotated[Spread, Spreadable(TRANSFER)] | None = Field(
        None, description='data to transfer, such as "64KB" or "10p" (full segments); absent: endless'
    )
    application_rate: Annotated[Spread, Spreadable(RATE)] | None = Field(
        None, description="rate at which the application writes; absent: as fast as TCP takes it"
    )

    def last_start_s(self, sources: int) -> float:
        """The latest that a flow of so many sources may start, in seconds."""
        return self.start.at + (sources - 1) * self.start.every + self.start.jitter
