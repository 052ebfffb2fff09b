"""Groups of flows: what all of them have, and `[[flows]]` of like flows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic_core import core_schema

from ackclock import algorithms
from ackclock.input import units
from ackclock.input.distributions import Period
from ackclock.input.fields import PlannedTable, Quantity, Spread, Spreadable, Table, fault, fault_at, faults
from ackclock.scenario.keys import (
    DEFAULT_STACK,
    MOMENT,
    RATE,
    TRANSFER,
    Congestion,
    Dscp,
    Moment,
    Name,
    Rate,
    Request,
    Tcp,
)
from ackclock.scenario.topology.topology import MAX_FLOWS, Placed


class Pause(PlannedTable):
    """Times in which an application reads nothing."""

    plan_keys: ClassVar[Mapping[str, str]] = {"at": "at_s", "for": "for_s", "every": "every_s"}

    at: Moment = Field("0s", validate_default=True, description="beginning of the first pause, from the run's start")
    for_: Period = Field(alias="for", description='length of a pause, such as "2s"')
    every: Period | None = Field(
        None, description="interval from the beginning of one pause to the next; absent: there is one"
    )

    @model_validator(mode="after")
    def _reads_between(self) -> Pause:
        if self.every is not None and self.every <= self.for_:
            raise faults([fault_at(("every",), 0, f"more than for ({self.for_:g} s)", f"{self.every:g} s")])
        return self


class SlowReader(Table):
    """A receiving application that leaves data in the receive buffer, which closes the window."""

    rate: Rate | None = Field(None, description="rate at which it reads; absent: as fast as data arrive")
    chunk: Annotated[float, Quantity(units.bytes_of, "64B", "1GB")] | None = Field(
        None, description='bytes of a read, which waits until so many have arrived, such as "64KB"; absent: a segment'
    )
    pause: Pause | None = Field(None, description="times in which it reads nothing")

    def planned(self, mss_bytes: int) -> dict[str, Any]:
        """Complete JSON-ready values in SI units, as a plan has them."""
        return {
            "rate_bps": self.rate,
            "chunk_bytes": mss_bytes if self.chunk is None else int(self.chunk),
            "pause": self.pause.planned() if self.pause else None,
        }


class Writes(PlannedTable):
    """An application that writes messages."""

    plan_keys: ClassVar[Mapping[str, str]] = {"size": "size_bytes", "every": "every_s"}

    size: Annotated[int, Quantity(units.bytes_of, "1B", "1GB"), AfterValidator(int)] = Field(
        description="bytes of a write"
    )
    count: Annotated[int, Field(ge=1, le=10**6)] = Field(
        1, description="writes of a message; each is handed to TCP at once, one after the other"
    )
    every: Period = Field(description="interval from message to message; the first begins when the connection opens")
    nodelay: bool = Field(
        False, description="no Nagle's algorithm; otherwise a short segment waits while one is unacknowledged"
    )


# S. Savage et al.: TCP congestion control with a misbehaving receiver, ACM CCR 29(5), 1999.
class Misbehaviour(Table):
    """A misbehaving receiver."""

    ack_division: Annotated[int, Field(ge=1, le=8)] = Field(
        1, description="ACKs for each that advances; each is of a part of its last segment"
    )
    duplicate_acks: Annotated[int, Field(ge=0, le=1000)] = Field(0, description="copies of each ACK")
    optimistic_acks: Annotated[int, Field(ge=0, le=10**6)] = Field(
        0, description="segments acknowledged before they arrive; losses are concealed as well"
    )
    conceals_losses: bool = Field(False, description="lost segments are acknowledged; they never arrive")
    conceals_marks: bool = Field(False, description="no ECN mark is reported")

    def planned(self) -> dict[str, Any] | None:
        """Complete JSON-ready values, as a plan has them; None for a receiver that follows the rules."""
        values = self.model_dump()
        return None if values == Misbehaviour().model_dump() else values


def _no_wildcard(name: str) -> str:
    if name == "*":
        raise fault('"*"', "another name: in metrics [*] means all flows")
    return name


class Sending(Placed):
    """A group that sends something."""

    name: Annotated[Name, AfterValidator(_no_wildcard)] | None = Field(
        None, description="name of the group; absent: its congestion control, and the kind of its traffic"
    )
    stop: Moment | None = Field(
        None,
        description="flows and UDP: when sources stop supplying data; other traffic: no transfer starts after it",
    )
    priority: Annotated[int, Field(ge=0, le=15)] = Field(
        0, description="priority of the packets of these flows and of their ACKs, 0 to 15 as in tc-prio(8)"
    )
    dscp: Dscp = Field(
        "cs0", validate_default=True, description='DS codepoint of their packets and ACKs, such as "ef" or "cs1"'
    )


class Transfers(Sending):
    """A group of TCP flows."""

    hints: ClassVar[Mapping[str, str]] = {
        **{key: f"it in a table: tcp = {{ {key} = … }}" for key in algorithms.spec("stack", DEFAULT_STACK).parameters},
        "stack": 'it in a table: tcp = { stack = "…" }',
        "kind": "a kind of traffic in [[traffic]]; [[flows]] are long-lived, or of one size",
    }

    congestion: Congestion | None = Field(
        None, description='a congestion control, such as "cubic"; absent: that of the TCP stack'
    )
    tcp: Tcp | None = Field(None, description="overrides of [tcp] for these flows")
    slow_reader: SlowReader | None = Field(
        None, description="the application at the receiver, if it does not read at once; requires tcp.receive_window"
    )
    writes: Writes | None = Field(None, description="messages of the sender's application; absent: none")
    misbehaviour: Misbehaviour | None = Field(None, description="misbehaviour of the receiver; absent: none")
    request: Request | None = Field(
        None, description='the receiver opens the connection and sends a request of this size, such as "300B"'
    )


class Starts(Table):
    """When sources start: source i at `at` + i × `every`."""

    at: Moment = Field("0s", validate_default=True, description="start of the first source")
    every: Moment = Field("0s", validate_default=True, description="interval between one source's start and the next")


class Start(Starts):
    """When flows start: those of source i at `at` + i × `every` + a draw from [0, `jitter`) of the run's seed."""

    jitter: Moment = Field("0s", validate_default=True, description="range of the random delay added to each start")

    def last_s(self, sources: int) -> float:
        """The latest that a flow of so many sources may start, in seconds."""
        return self.at + (sources - 1) * self.every + self.jitter


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

    transport: Literal["tcp"] = Field("tcp", description='"tcp"; or "quic", which has other keys')
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
        return self.start.last_s(sources)

    @property
    def connections(self) -> int:
        """Connections of each source."""
        return self.streams
