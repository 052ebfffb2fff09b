"""Imposes silences of known causes on captures: of the packet engine, with timestamps (`pcap.py` reads them).

What the capture would show if a host had stood still, a machine had been paused, the capture had lost packets, an
application had had nothing to send, or a receiver had not read, all for a while. What follows is the capture's own,
later. So windows behind a silence are those of a flow that was not silent; silences do not look at them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ackclock.reproductions.pcap import Record

#: A millisecond, the tick of timestamps.
TICK_NS = 1_000_000

#: The option timestamps, and that with the shift of windows; where options and the window lie in a frame.
TIMESTAMPS, WINDOW_SCALE, OPTIONS, WINDOW, ACKNOWLEDGEMENT, SEQUENCE = 8, 3, 54, 48, 42, 38

#: The first probe of a shut window, and the most time between two.
PROBE_NS, MOST_PROBE_NS = 220_000_000, 2_000_000_000

#: A wide-area round trip to a probe, in ns.
RESPONSE_NS = 20_000_000


class Cut:
    """The records before a time: sent by the sender's clock then, or in the receivers' acknowledgements of those."""

    def __init__(self, records: Iterable[Record], at_ns: int, flows: set[int] | None = None) -> None:
        """Cut the records of these flows; None: of all."""
        self.at_ns = at_ns
        self.flows = flows
        self.sent: dict[int, int] = {}
        self.heard: dict[int, int] = {}
        self.edge: dict[int, int] = {}
        for record in records:
            if record.from_sender and record.time_ns < at_ns:
                self.sent[record.flow] = stamps(record)[0]
                end = ((record.sequence or 0) + record.payload_bytes) % 2**32
                if not _behind(end, self.edge.get(record.flow, end)):
                    self.edge[record.flow] = end
                self.edge.setdefault(record.flow, end)
        for record in records:
            if not record.from_sender and self.before(record):
                self.heard[record.flow] = stamps(record)[0]

    def done(self, records: Iterable[Record]) -> set[int]:
        """Flows of which all that was sent is acknowledged later, without repairs: a pause can follow."""
        acked: dict[int, int] = {}
        again: dict[int, int] = {}
        for record in records:
            if record.from_sender and record.time_ns >= self.at_ns and record.payload_bytes:
                again.setdefault(record.flow, record.sequence or 0)
            elif not record.from_sender and self.before(record):
                acked[record.flow] = record.acknowledgement
        return {flow for flow, edge in self.edge.items() if acked.get(flow) == edge == again.get(flow)}

    def before(self, record: Record) -> bool:
        """Return True if it was sent, or acknowledges data sent, before the time; always True for other flows."""
        if self.flows is not None and record.flow not in self.flows:
            return True
        if record.time_ns < self.at_ns:
            return True
        return not record.from_sender and _behind(stamps(record)[1], self.sent.get(record.flow, 0))

    def later(self, record: Record, by_ns: int, *, stood: bool = False) -> Record:
        """Return a record after a stall; `stood`: the sender's clock stood still."""
        ticks = by_ns // TICK_NS
        own, echo = stamps(record)
        peer_new = not _behind(echo if record.from_sender else own, self.heard.get(record.flow, 0))
        sender, receiver = (0 if stood else ticks), (ticks if peer_new else 0)
        own_more, echo_more = (sender, receiver) if record.from_sender else (receiver, sender)
        return stamped(replace(record, time_ns=record.time_ns + by_ns), own + own_more, echo + echo_more)


def host(
    records: list[Record], at_ns: int, by_ns: int, *, stood: bool = False, timers: bool = False
) -> Iterator[Record]:
    """All that the sending host sends and hears waits until it goes on, with its clock, or without (`stood`).

    As the host captures: what came meanwhile is there at once. `timers`: those of retransmissions are looked at before.
    """
    cut, woken = Cut(records, at_ns), 0
    expired = iter(_oldest(records, at_ns)) if timers else iter(())
    for record in records:
        if record.time_ns < at_ns:
            yield record
            continue
        for again in expired:
            own, echo = stamps(again)
            ticks = (at_ns + by_ns - again.time_ns) // TICK_NS
            yield stamped(replace(again, time_ns=at_ns + by_ns), own + (0 if stood else ticks), echo)
        if cut.before(record):
            woken += 1
            yield replace(record, time_ns=min(at_ns + by_ns + 1000 * woken, record.time_ns + by_ns))
        else:
            yield cut.later(record, by_ns, stood=stood)


def _oldest(records: Iterable[Record], at_ns: int) -> list[Record]:
    """Return each flow's first segment that is outstanding at a time."""
    sent: dict[tuple[int, int], Record] = {}
    acked: dict[int, int] = {}
    for record in records:
        if record.time_ns >= at_ns:
            break
        if not record.from_sender:
            acked[record.flow] = record.acknowledgement
        elif record.payload_bytes:
            sent[record.flow, record.sequence or 0] = record
    return [sent[name] for name in acked.items() if name in sent]


def lost(records: Iterable[Record], at_ns: int, by_ns: int) -> Iterator[Record]:
    """The capture loses all for a while."""
    return (record for record in records if not at_ns <= record.time_ns < at_ns + by_ns)


def application(records: list[Record], at_ns: int, by_ns: int, flows: set[int]) -> Iterator[Record]:
    """The application of these flows has nothing to send for a while; what is under way is acknowledged."""
    cut = Cut(records, at_ns, flows)
    return (record if cut.before(record) else cut.later(record, by_ns) for record in records)


def receiver(records: list[Record], at_ns: int, by_ns: int, flows: set[int], *, probed: bool) -> Iterator[Record]:
    """The receivers of these flows read nothing for a while: their window ends where the sender is.

    Before, they read nothing either: the window has room for what comes until then.
    """
    cut, shift = Cut(records, at_ns, flows), shifts(records)
    newest: dict[int, Record] = {}
    shut: dict[int, Record] = {}
    for record in records:
        number = record.flow
        if number not in flows or (record.from_sender and cut.before(record)) or record.flags & 0x02:
            yield record
        elif record.from_sender:
            yield cut.later(record, by_ns)
        elif cut.before(record):
            left = (cut.edge[number] - record.acknowledgement) % 2**32 + 2 ** shift[number] - 1
            newest[number] = record
            shut[number] = windowed(record, min(left >> shift[number], _window(record)))
            yield shut[number]
        else:
            if number in shut:
                last, opened = shut.pop(number), newest.pop(number)
                yield from _waited(last, opened, by_ns, probed)
            yield cut.later(record, by_ns)


def _waited(last: Record, opened: Record, by_ns: int, probed: bool) -> Iterator[Record]:
    """Probes of a shut window, and the update that opens it."""
    after_ns = PROBE_NS
    while probed and after_ns + RESPONSE_NS < by_ns:
        yield _probe(last, last.time_ns + after_ns)
        yield _ticked(last, after_ns + RESPONSE_NS)
        after_ns += min(2 * after_ns, MOST_PROBE_NS)
    yield _ticked(opened, by_ns - TICK_NS)


def _ticked(record: Record, by_ns: int) -> Record:
    own, echo = stamps(record)
    return stamped(replace(record, time_ns=record.time_ns + by_ns), own + by_ns // TICK_NS, echo)


def _probe(answer: Record, time_ns: int) -> Record:
    """A segment without data, one byte before what is acknowledged, as Linux has it."""
    kept = bytearray(answer.kept)
    kept[26:30], kept[30:34] = answer.kept[30:34], answer.kept[26:30]
    kept[34:36], kept[36:38] = answer.kept[36:38], answer.kept[34:36]
    kept[SEQUENCE : SEQUENCE + 4] = ((answer.acknowledgement - 1) % 2**32).to_bytes(4)
    kept[ACKNOWLEDGEMENT : ACKNOWLEDGEMENT + 4] = answer.kept[SEQUENCE : SEQUENCE + 4]
    own, echo = stamps(answer)
    return stamped(Record(time_ns, answer.length, bytes(kept)), echo + (time_ns - answer.time_ns) // TICK_NS, own)


def in_order(records: Iterable[Record]) -> list[Record]:
    """By time; what was equal stays as it was."""
    return sorted(records, key=lambda record: record.time_ns)


def shifts(records: Iterable[Record]) -> dict[int, int]:
    """By how much the windows that the receivers of flows say are shifted."""
    found: dict[int, int] = {}
    for record in records:
        if not record.from_sender and record.flags & 0x02:
            place = _option(record, WINDOW_SCALE)
            found[record.flow] = record.kept[place + 2] if place else 0
    return found


def windowed(record: Record, window: int) -> Record:
    """With another window."""
    return replace(record, kept=record.kept[:WINDOW] + window.to_bytes(2) + record.kept[WINDOW + 2 :])


def _window(record: Record) -> int:
    return int.from_bytes(record.kept[WINDOW : WINDOW + 2])


def stamps(record: Record) -> tuple[int, int]:
    """TSval and TSecr. Raises `ValueError` without timestamps."""
    place = _option(record, TIMESTAMPS)
    if place is None:
        raise ValueError("found a segment without timestamps; expected a capture of flows that have them")
    own, echo = struct.unpack_from(">II", record.kept, place + 2)
    return own, echo


def stamped(record: Record, own: int, echo: int) -> Record:
    """With other timestamps."""
    place = _option(record, TIMESTAMPS) or 0
    values = struct.pack(">II", own % 2**32, echo % 2**32)
    return replace(record, kept=record.kept[: place + 2] + values + record.kept[place + 10 :])


def _option(record: Record, kind: int) -> int | None:
    """Return the offset of an option in the frame."""
    place, end = OPTIONS, record.header_bytes
    while place < end and record.kept[place] != 0:
        if record.kept[place] == kind:
            return place
        place += 1 if record.kept[place] == 1 else record.kept[place + 1]
    return None


def _behind(one: int, other: int) -> bool:
    return (other - one) % 2**32 < 2**31
