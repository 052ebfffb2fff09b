"""One connection at one end, as facts in the order of time: what was sent, acknowledged and lost, and the internals.

An acknowledgement counts for packets when it acknowledges them for the first time: by the event `packets_acked`, or by
the ACK frames of a received packet. Bytes are those of QUIC packets, headers included (`raw.length`). What is in
flight is counted as RFC 9002 section 2 has it: packets that are not acknowledgements alone, until they are acknowledged
or declared lost; a packet without a list of frames counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from ackclock.qlog import fields
from ackclock.qlog.fields import JsonObject
from ackclock.qlog.records import Log, Record, Trace

#: Frames that do not make a packet count as in flight (RFC 9002 section 2: all others do, and so does padding).
NOT_IN_FLIGHT = frozenset({"ack", "ack_ecn", "path_ack", "mp_ack", "connection_close"})

#: Lost packets that are remembered, to recognise a late acknowledgement of one.
MAX_LOST = 64

#: Events that carry metrics, by their names in the versions and in mvfst.
METRICS = frozenset({"metrics_updated", "recovery_metrics_updated", "metric_update", "congestion_metric_update"})

#: Events of a timer; its expiry is one of them, or a field says so.
TIMERS = frozenset({"loss_timer_updated", "timer_updated", "loss_timer_expired", "loss_alarm"})

#: Acknowledgements: of RFC 9000, and of multipath QUIC.
ACKS = frozenset({"ack", "ack_ecn", "path_ack", "mp_ack"})

#: Frames that report a sender blocked by flow control.
BLOCKED = frozenset({"data_blocked", "stream_data_blocked"})


@dataclass(slots=True)
class Packet:
    """A packet that was sent. `bytes` is None if the log does not say it."""

    time_s: float
    space: str
    number: int
    bytes: float | None
    in_flight: bool


@dataclass(frozen=True, slots=True)
class Sent:
    """A packet leaves; `in_flight_bytes` counts it. `is_probe` is True for a probe of a timeout, if the log says it."""

    time_s: float
    packet: Packet
    in_flight_bytes: float
    is_probe: bool


@dataclass(frozen=True, slots=True)
class Acked:
    """Packets are acknowledged for the first time, or after they were declared lost (`spurious`).

    `prior_in_flight_bytes` counts them; `ce` is the number of CE marks that the peer has counted so far.
    """

    time_s: float
    packets: Sequence[Packet]
    spurious: int
    prior_in_flight_bytes: float
    ce: float | None


@dataclass(frozen=True, slots=True)
class Lost:
    """A packet is declared lost; the packet is None where the log does not have it."""

    time_s: float
    packet: Packet | None
    trigger: str


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metrics that the implementation reports of itself; None is not in this report."""

    time_s: float
    cwnd_bytes: float | None
    ssthresh_bytes: float | None
    in_flight_bytes: float | None
    latest_rtt_s: float | None
    srtt_s: float | None
    min_rtt_s: float | None
    rtt_variance_s: float | None
    pacing_bps: float | None
    pto_count: float | None


@dataclass(frozen=True, slots=True)
class State:
    """The congestion controller is in another state, by the implementation's own name for it."""

    time_s: float
    name: str
    trigger: str


@dataclass(frozen=True, slots=True)
class ProbeTimeout:
    """The probe timeout expires."""

    time_s: float


Fact: TypeAlias = Sent | Acked | Lost | Metrics | State | ProbeTimeout


@dataclass(slots=True)
class Connection:
    """The facts of a trace, and its counts. None is unknown."""

    title: str
    vantage: str
    facts: list[Fact] = field(default_factory=list)
    end_s: float = 0.0
    sent_packets: int = 0
    sent_bytes: float = 0.0
    acked_packets: int = 0
    acked_bytes: float = 0.0
    received_packets: int = 0
    received_bytes: float = 0.0
    lost_packets: int = 0
    spurious: int = 0
    ack_frames: int = 0
    blocked_frames: int = 0
    max_datagram_bytes: float | None = None
    initial_window_bytes: float | None = None
    largest_sent_bytes: float = 0.0
    handshake_s: float | None = None


def connections(log: Log) -> list[Connection]:
    """Return the connections of a log, one for each trace."""
    return [_Reader(trace).read() for trace in log.traces]


class _Reader:
    """Turns the records of a trace into facts."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.result = Connection(trace.title, trace.vantage)
        self.outstanding: dict[str, dict[int, Packet]] = {}
        self.lost: dict[str, dict[int, Packet]] = {}
        self.in_flight = 0.0
        self.ptos = 0.0
        self.has_expiries = any(_is_expiry(record) for record in trace.records)
        self.has_half_open_ranges = _has_half_open_ranges(trace.records)

    def read(self) -> Connection:
        for record in self.trace.records:
            self.result.end_s = max(self.result.end_s, record.time_s)
            self._record(record)
        return self.result

    def _record(self, record: Record) -> None:
        if record.name == "packet_sent":
            self._sent(record)
        elif record.name == "packet_received":
            self._received(record)
        elif record.name == "packets_acked":
            self._packets_acked(record)
        elif record.name in ("packet_lost", "packets_lost"):
            self._lost(record)
        elif record.name in METRICS:
            self._metrics(record)
        elif record.name == "congestion_state_updated":
            state = fields.word(record.data, "new").lower()
            self.result.facts.append(State(record.time_s, state, fields.word(record.data, "trigger").lower()))
        elif record.name in TIMERS and _is_expiry(record):
            self.result.facts.append(ProbeTimeout(record.time_s))
        elif record.name in ("key_discarded", "key_retired"):
            self._discard(fields.word(record.data, "key_type").lower())
        elif _is_parameters(record):
            self._parameters(record.data)

    def _parameters(self, data: JsonObject) -> None:
        result = self.result
        result.max_datagram_bytes = fields.number(data, "max_datagram_size") or result.max_datagram_bytes
        result.initial_window_bytes = fields.number(data, "initial_congestion_window") or result.initial_window_bytes

    def _sent(self, record: Record) -> None:
        data, result = record.data, self.result
        size, number = _size(data), _number(data)
        result.sent_packets += 1
        result.sent_bytes += size or 0.0
        if number is None:
            return
        frames = [fields.word(frame, "frame_type").lower() for frame in fields.tables(data, "frames")]
        result.blocked_frames += sum(name in BLOCKED for name in frames)
        counts = not frames or any(name not in NOT_IN_FLIGHT for name in frames)
        packet = Packet(record.time_s, _space(data), number, size, counts)
        self.outstanding.setdefault(packet.space, {})[number] = packet
        if counts:
            self.in_flight += size or 0.0
            if packet.space.startswith("application_data"):
                result.largest_sent_bytes = max(result.largest_sent_bytes, size or 0.0)
        trigger = fields.word(data, "trigger")
        is_probe = "pto" in trigger or data.get("is_pto_probe_packet") is True
        result.facts.append(Sent(record.time_s, packet, self.in_flight, is_probe))

    def _received(self, record: Record) -> None:
        data, result = record.data, self.result
        result.received_packets += 1
        result.received_bytes += _size(data) or 0.0
        space = _kind(data)
        if space == "application_data" and result.handshake_s is None and result.sent_packets:
            result.handshake_s = record.time_s
        for frame in fields.tables(data, "frames"):
            if fields.word(frame, "frame_type").lower() in ACKS and "acked_ranges" in frame:
                result.ack_frames += 1
                of = _with_path(space, frame) if "path_id" in frame else _with_path(space, data)
                ranges = fields.ranges(frame["acked_ranges"])
                whole = [(first, last - self.has_half_open_ranges) for first, last in ranges]
                self._acknowledge(record.time_s, of, whole, _ce(frame))

    def _packets_acked(self, record: Record) -> None:
        numbers = record.data.get("packet_numbers")
        self.result.ack_frames += 1
        space = fields.word(record.data, "packet_number_space") or "application_data"
        self._acknowledge(record.time_s, _with_path(space, record.data), fields.ranges(numbers), None)

    def _acknowledge(self, time_s: float, space: str, ranges: Iterable[tuple[int, int]], ce: float | None) -> None:
        outstanding, lost, prior = self.outstanding.get(space, {}), self.lost.get(space, {}), self.in_flight
        packets: list[Packet] = []
        spurious = 0
        for first, last in ranges:
            packets += _take(outstanding, first, last)
            late = [number for number in lost if first <= number <= last]
            for number in late:
                del lost[number]
            spurious += len(late)
        packets.sort(key=lambda packet: packet.number)
        for packet in packets:
            self._leave(packet)
        self.result.acked_packets += len(packets)
        self.result.acked_bytes += sum(packet.bytes or 0.0 for packet in packets)
        self.result.spurious += spurious
        if packets or spurious or ce is not None:
            self.result.facts.append(Acked(time_s, packets, spurious, prior, ce))

    def _lost(self, record: Record) -> None:
        data = record.data
        number, trigger = _number(data), fields.word(data, "trigger")
        packet = self.outstanding.get(_space(data), {}).pop(number, None) if number is not None else None
        if packet is not None:
            self._leave(packet)
            lost = self.lost.setdefault(packet.space, {})
            lost[packet.number] = packet
            if len(lost) > MAX_LOST:
                del lost[next(iter(lost))]
        count = max(1, min(int(fields.number(data, "lost_packets") or 1), 1_000_000))
        self.result.lost_packets += count
        self.result.facts.append(Lost(record.time_s, packet, trigger))

    def _discard(self, key: str) -> None:
        """Take packets out of flight whose keys are discarded (RFC 9002 section 6.4)."""
        for space in ("initial", "handshake"):
            for packet in self.outstanding.pop(space, {}).values() if space in key else ():
                self._leave(packet)

    def _leave(self, packet: Packet) -> None:
        if packet.in_flight:
            self.in_flight = max(0.0, self.in_flight - (packet.bytes or 0.0))

    def _metrics(self, record: Record) -> None:
        data, unit_s = record.data, self.trace.unit_s

        def seconds(*names: str) -> float | None:
            value = fields.number(data, *names)
            return value * unit_s if value else None

        ptos = fields.number(data, "pto_count")
        if ptos is not None and not self.has_expiries and ptos > self.ptos:
            self.result.facts.append(ProbeTimeout(record.time_s))
        self.ptos = self.ptos if ptos is None else ptos
        metrics = Metrics(
            record.time_s,
            fields.number(data, "congestion_window", "cwnd", "current_cwnd"),
            fields.number(data, "ssthresh"),
            fields.number(data, "bytes_in_flight"),
            seconds("latest_rtt"),
            seconds("smoothed_rtt"),
            seconds("min_rtt"),
            seconds("rtt_variance", "rtt_var"),
            fields.number(data, "pacing_rate"),
            ptos,
        )
        if any(getattr(metrics, name) is not None for name in METRIC_FIELDS):
            self.result.facts.append(metrics)


#: Fields of which one makes an event a report.
METRIC_FIELDS = (
    *("cwnd_bytes", "ssthresh_bytes", "in_flight_bytes", "latest_rtt_s", "srtt_s", "min_rtt_s", "rtt_variance_s"),
    *("pacing_bps", "pto_count"),
)


def _has_half_open_ranges(records: Iterable[Record]) -> bool:
    """Return True if the last number of an acknowledged range is the first that is not, as in logs of noq 1.4.

    Otherwise ranges never touch, and no packet is acknowledged before it is sent (RFC 9000 section 19.3.1).
    """
    sent: dict[str, int] = {}
    touches = is_ahead = False
    for record in records:
        if record.name == "packet_sent":
            sent[_space(record.data)] = _number(record.data) or 0
        for frame in fields.tables(record.data, "frames") if record.name == "packet_received" else ():
            if fields.word(frame, "frame_type").lower() in ACKS and "acked_ranges" in frame:
                ranges = sorted(fields.ranges(frame["acked_ranges"]))
                touches |= any(last + 1 >= first for (_, last), (first, _) in pairwise(ranges))
                is_ahead |= bool(ranges) and ranges[-1][1] > sent.get(_space(record.data), ranges[-1][1])
    return touches and is_ahead


def _take(outstanding: dict[int, Packet], first: int, last: int) -> list[Packet]:
    """Remove and return the packets of a range. Their numbers rise in the order of sending, so only gaps are passed."""
    taken = []
    if last - first < len(outstanding):
        taken = [number for number in range(first, last + 1) if number in outstanding]
    else:
        for number in outstanding:
            if number > last:
                break
            if number >= first:
                taken.append(number)
    return [outstanding.pop(number) for number in taken]


def _is_parameters(record: Record) -> bool:
    return record.name == "recovery_parameters_set" or (
        record.name == "parameters_set" and record.category == "recovery"
    )


def _is_expiry(record: Record) -> bool:
    """Return True if the event is the expiry of the probe timeout, and of no other timer."""
    if record.name not in TIMERS:
        return False
    kind = fields.word(record.data, "timer_type", "type").lower()
    expired = record.name in ("loss_timer_expired", "loss_alarm") or fields.word(record.data, "event_type") == "expired"
    return expired and kind in ("pto", "")


def _ce(frame: JsonObject) -> float | None:
    """Return the CE marks that an ACK frame counts: a field of its own, or one of an object `ecn_counts`."""
    count = fields.number(frame, "ce", "ecn_ce")
    return fields.number(fields.table(frame, "ecn_counts"), "ce") if count is None else count


def _number(data: JsonObject) -> int | None:
    header = fields.table(data, "header")
    value = fields.integer(header.get("packet_number"))
    return fields.integer(data.get("packet_number")) if value is None else value


def _size(data: JsonObject) -> float | None:
    raw, header = fields.table(data, "raw"), fields.table(data, "header")
    for place, names in ((raw, ("length", "payload_length")), (header, ("packet_size",)), (data, ("packet_size",))):
        if (size := fields.number(place, *names)) is not None:
            return size
    return fields.number(header, "payload_length", "length")


def _kind(data: JsonObject) -> str:
    """Return the packet number space of a packet's type."""
    header = fields.table(data, "header")
    kind = (fields.word(header, "packet_type") or fields.word(data, "packet_type", "type")).lower()
    return kind if kind in ("initial", "handshake") else "application_data"


def _space(data: JsonObject) -> str:
    """Return the packet number space; each path of a multipath connection has its own."""
    return _with_path(_kind(data), data)


def _with_path(space: str, data: Mapping[str, object]) -> str:
    path = fields.integer(data.get("path_id"))
    return f"{space} {path}" if path else space
