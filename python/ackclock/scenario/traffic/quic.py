"""QUIC: `[[flows]]` whose ends are those of a real stack, the built-in one or a user's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, PlainValidator, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails

from ackclock import _core, algorithms, stacks
from ackclock.algorithms.selection import FromSpec, Given
from ackclock.input import units
from ackclock.input.fields import Loc, Quantity, Spread, Spreadable, fault, fault_at, faults, shown
from ackclock.plan import UDP_HEADER_BYTES
from ackclock.scenario.keys import Congestion
from ackclock.scenario.topology.topology import DRAWN
from ackclock.scenario.traffic.flows import Sending, Start, StartOfFlows

#: The stack keeps as many times a stream's receive window until it is acknowledged, by default.
SEND_WINDOWS = 8

#: Characters of a text for a user's stack.
MAX_TEXT = 200

_TRANSFER = Quantity(units.bytes_of, "1B", "1000TB")


#: Algorithms of the built-in stack; the first is its default.
_ALGORITHMS = ("cubic", "reno")

#: Keys that only the built-in stack has.
_BUILT_IN_KEYS = ("controller", "streams", "mtu_discovery", "ack_eliciting_threshold", "certificate_chain")


def _available(name: str) -> str:
    """Reject a stack that is neither built in nor named on the command line."""
    if name not in stacks.names():
        known = ", ".join(map(shown, stacks.names()))
        raise fault(shown(name), f"{known}, or a library of your own: --stack {name}=FILE")
    return name


def _short_text(text: str) -> str:
    if len(text) > MAX_TEXT or not text.isprintable():
        raise fault(shown(text), f"up to {MAX_TEXT} printable characters")
    return text


_Text = Annotated[str, AfterValidator(_short_text)]


def _congestion(value: object, info: ValidationInfo) -> Given | str:
    """Read an algorithm of the engine as in TCP's flows, one of the stack as a name."""
    if info.data.get("controller") == "engine":
        return FromSpec("congestion", short=True).read(value)
    if not isinstance(value, str):
        raise fault(shown(value), 'a name, or controller = "engine": the stack\'s own have no parameters')
    return _short_text(value)


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
    stack: Annotated[str, AfterValidator(_available)] = Field(
        "noq", description='QUIC stack of both ends: "noq" (noq-proto 1.4), or the NAME of `--stack NAME=FILE`'
    )
    controller: Literal["stack", "engine"] = Field(
        "stack", description="whose congestion control runs in noq: its own, or the engine's"
    )
    congestion: Annotated[Given | str, PlainValidator(_congestion, json_schema_input_type=str | Congestion)] | None = (
        Field(
            None,
            description='congestion control: "cubic" or "reno" of noq, any of the engine\'s, any name of your own '
            'stack; absent: "cubic", or your own stack\'s choice',
        )
    )
    options: _Text | None = Field(None, description="text that your own stack reads; noq has none")
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

    @model_validator(mode="after")
    def _fits_stack(self) -> QuicFlows:
        if problems := list(self._problems()):
            raise faults(problems)
        return self

    def _problems(self) -> Iterator[InitErrorDetails]:
        if not self.is_built_in:
            for key in sorted(self.model_fields_set.intersection(_BUILT_IN_KEYS)):
                expected = f"no {key}: it is one of noq, and stack = {shown(self.stack)} has `options`"
                yield fault_at((key,), getattr(self, key), expected)
            return
        if self.options is not None:
            yield fault_at(("options",), self.options, "no options: noq has none, stacks of --stack have")
        if isinstance(self._algorithm, Given):
            if why := _unmet_requirement(self._algorithm):
                yield fault_at(("congestion",), self._algorithm.name, f"another algorithm: {why}")
        elif self._algorithm not in _ALGORITHMS:
            # The probe times of its BBR come from the operating system.
            is_bbr = self._algorithm in ("bbr", "bbr3")
            why = ": noq 1.4 takes no seed for the probe times of its BBR" if is_bbr else ""
            expected = f'"cubic" or "reno" of noq, or controller = "engine"{why}'
            yield fault_at(("congestion",), self._algorithm, expected)

    @property
    def _algorithm(self) -> Given | str:
        """The congestion control algorithm; an empty text is a user's stack's choice."""
        if self.congestion is not None:
            return self.congestion
        if self.controller == "engine":
            return Given(_ALGORITHMS[0], {})
        return _ALGORITHMS[0] if self.is_built_in else ""

    @property
    def is_built_in(self) -> bool:
        """True for the stack that is compiled in."""
        return self.stack == stacks.BUILT_IN

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
        if isinstance(self._algorithm, Given):
            return f"{self.stack} engine {self._algorithm.name}"
        return f"{self.stack} {self._algorithm}".rstrip()

    @property
    def payload_bytes(self) -> int:
        """Largest UDP payload that its packets may have."""
        return int(self.mtu) - UDP_HEADER_BYTES

    def source(self, size_bytes: float | None, *, qlog: bool) -> Mapping[str, Any]:
        """The connection, as a plan has it; `qlog`: the sender's stack writes its log."""
        common = {
            "stack": self.stack,
            "start_jitter_s": self.start.jitter,
            "size_bytes": None if size_bytes is None else int(size_bytes),
            "initial_window_bytes": int(self.initial_window),
            "receive_window_bytes": int(self.receive_window),
            "ecn": self.ecn,
        }
        if not self.is_built_in:
            return {
                "kind": "stack",
                **common,
                "congestion": self._algorithm,
                "options": self.options or "",
                "max_payload_bytes": self.payload_bytes,
            }
        return {
            "kind": "quic",
            **common,
            "congestion": _planned(self._algorithm),
            "streams": self.streams,
            "discovery_limit_bytes": self.payload_bytes if self.mtu_discovery else None,
            "ack_eliciting_threshold": self.ack_eliciting_threshold,
            "send_window_bytes": SEND_WINDOWS * int(self.receive_window),
            "certificate_chain_bytes": int(self.certificate_chain),
            "qlog": qlog,
        }


def _planned(algorithm: Given | str) -> dict[str, Any] | str:
    """Return an algorithm as a plan has it: the engine's with its parameters, the stack's own by name."""
    if isinstance(algorithm, str):
        return algorithm
    spec = algorithms.spec("congestion", str(algorithm.name))
    return {"kind": spec.name, "parameters": spec.planned(algorithm.values, algorithm.variant)}


def _unmet_requirement(algorithm: Given) -> str:
    """Return what an algorithm of the engine requires and stacks lack; empty if nothing."""
    spec = algorithms.spec("congestion", str(algorithm.name))
    if spec.ecn:
        return f"{spec.name} reacts to the number of marks, and a stack reports only that there are some"
    parameters = spec.planned(algorithm.values, algorithm.variant)
    try:
        _core.check_congestion(spec.name, json.dumps(parameters), quic=True)
    except ValueError as error:
        return str(error)
    return ""
