"""Base class of groups of TCP flows, written one by one or generated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from ackclock import algorithms
from ackclock.scenario.keys import DEFAULT_STACK, Congestion, Moment, Name, Request, Tcp
from ackclock.scenario.topology.endpoints import Placed


class Sending(Placed):
    """A group that sends something."""

    label: Name | None = Field(None, description="name of the group; absent: its congestion control")
    stop: Moment | None = Field(
        None,
        description="flows and UDP: when sources stop supplying data; other traffic: no transfer starts after it",
    )
    priority: Annotated[int, Field(ge=0, le=15)] = Field(
        0, description="priority of the packets of these flows and of their ACKs, 0 to 15 as in tc-prio(8)"
    )


class Transfers(Sending):
    """A group of TCP flows."""

    hints: ClassVar[Mapping[str, str]] = {
        **{key: f"it in a table: tcp = {{ {key} = … }}" for key in algorithms.spec("stack", DEFAULT_STACK).parameters},
        "stack": 'it in a table: tcp = { stack = "…" }',
    }

    congestion: Congestion | None = Field(
        None, description='a congestion control, such as "cubic"; absent: that of the TCP stack'
    )
    tcp: Tcp | None = Field(None, description="overrides of [tcp] for these flows")
    request: Request | None = Field(
        None, description='the receiver opens the connection and sends a request of this size, such as "300B"'
    )
