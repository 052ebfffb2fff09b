"""QUIC: `[[flows]]` whose ends are those of a real stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import InitErrorDetails

from ackclock.input import units
from ackclock.input.fields import Loc, Quantity, Spread, Spreadable, fault, fault_at, shown
from ackclock.plan import UDP_HEADER_BYTES
from ackclock.scenario.topology.endpoints import DRAWN
from ackclock.scenario.traffic.flows import Sending, Start, StartOfFlows

#: The stack keeps as many times a stream's receive window until it is acknowledged, by default.
SEND_WINDOWS = 8

_TRANSFER = Quantity(units.bytes_of, "1B", "1000TB")


def _seeded(name: object) -> object:
    """Reject an algorithm of the stack whose random numbers come from the operating system."""
    if name in ("bbr", "bbr3"):
        raise fault(shown(name), '"cubic" or "reno": noq 1.4 takes no seed for the probe times of its BBR')
    return name


class QuicFlows(Sending):
    """A group of QUIC connections, each of which carries data one way."""

    hints: ClassVar[Mapping[str, str]] = {
        "tcp": "no tcp: the keys of a QUIC stack are in the table itself",
        "request": "no request: in QUIC the sender opens the connection",
        **dict.fromkeys(("application_rate", "slow_reader"), "size or stop: the applications write and read at once"),
        "misbehaviour": "no misbehaviour: it is one of TCP's receivers",
        "pacing": "no pacing: the stack always paces",
    }

    transport: Literal["quic"] = Field(description='"quic"')
    stack: Literal["noq"] = Field("noq", description='QUIC stack of both ends: "noq" (noq-proto 1.4)')
    congestion: Annotated[Literal["cubic", "reno"], BeforeValidator(_seeded)] = Field(
        "cubic", description='congestion control algorithm of the stack: "cubic" or "reno"'
    )
    streams: Annotated[int, Field(ge=1, le=100)] = Field(1, description="streams that share each connection")
    start: StartOfFlows = Field(default_factory=Start, description="when the connections open")
    size: Annotated[Spread, Spreadable(_TRANSFER)] | None = Field(
        None, description='data to transfer over all streams, such as "64KB"; absent: endless'
    )
    initial_window: Annotated[float, Quantity(units.bytes_of, "2400B", "1GB")] = Field(
        "12000B", validate_default=True, description="initial congestion window"
    )
    mtu: Annotated[float, Quantity(units.bytes_of, "1228B", "65535B")] = Field(
        "1500B", validate_default=True, description="largest IP packet"
    )
    mtu_discovery: bool = Field(True, description="probes for the largest packet; false: UDP payloads of 1200 bytes")
    ack_eliciting_threshold: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = Field(
        None, description="packets that the receiver may leave unacknowledged (ACK frequency); absent: one"
    )
    receive_window: Annotated[float, Quantity(units.bytes_of, "1200B", "100GB")] = Field(
        "1.25MB", validate_default=True, description="receive buffer of each stream"
    )
    ecn: bool = Field(True, description="packets are ECN-capable, as the stack asks for")
    certificate_chain: Annotated[float, Quantity(units.bytes_of, "0B", "15KB")] = Field(
        "2500B", validate_default=True, description="bytes of the server's certificates in the handshake"
    )

    def between_hosts(
        self, sources: Sequence[int], destinations: Sequence[int], place: Loc
    ) -> Iterator[InitErrorDetails]:
        """Yield a fault for drawn pairs, which QUIC lacks."""
        if self.pattern in DRAWN:
            expected = '"all" or "round-robin": the ends of QUIC are not drawn from the seed'
            yield fault_at((*place, "between"), self.pattern, expected)

    def last_start_s(self, sources: int) -> float:
        """The latest that a connection of so many sources may open, in seconds."""
        return self.start.last_s(sources)

    @property
    def connections(self) -> int:
        """Connections of each source."""
        return 1

    @property
    def protocol(self) -> str:
        """The default name of the group."""
        return f"{self.stack} {self.congestion}"

    @property
    def payload_bytes(self) -> int:
        """Largest UDP payload that its packets may have."""
        return int(self.mtu) - UDP_HEADER_BYTES

    def source(self, size_bytes: float | None) -> Mapping[str, Any]:
        """The connection, as a plan has it."""
        return {
            "kind": "quic",
            "stack": self.stack,
            "congestion": self.congestion,
            "start_jitter_s": self.start.jitter,
            "size_bytes": None if size_bytes is None else int(size_bytes),
            "streams": self.streams,
            "initial_window_bytes": int(self.initial_window),
            "discovery_limit_bytes": self.payload_bytes if self.mtu_discovery else None,
            "ack_eliciting_threshold": self.ack_eliciting_threshold,
            "receive_window_bytes": int(self.receive_window),
            "send_window_bytes": SEND_WINDOWS * int(self.receive_window),
            "ecn": self.ecn,
            "certificate_chain_bytes": int(self.certificate_chain),
        }
