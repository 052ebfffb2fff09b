"""Transfers that tshark wrote as CSV, as captures: to a receiver that listens at port 5000.

The fields have no options. The length of an acknowledgement gives the number of its SACK blocks. Their edges are
reconstructed: what is sent in order arrives in order, except what was lost, so the receiver's state after each
arrival is known, and `Arrivals` finds how many there had been.
"""

from __future__ import annotations

import csv
import gzip
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ackclock.reproductions import pcap

#: The receiver's port.
PORT = 5000

#: Bytes of an acknowledgement with timestamps alone; what the option SACK takes, and each of its blocks (RFC 2018).
PLAIN_BYTES, SACK_BYTES, BLOCK_BYTES = 52, 4, 8

#: Blocks that fit beside timestamps; segments among which those above an acknowledgement are.
MAX_BLOCKS, MAX_OUTSTANDING = 3, 4096

#: Answers that are no further apart belong together.
SLACK_NS = 2_000_000

Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Row:
    """A segment; numbers are relative."""

    time_ns: int
    ports: tuple[int, int]
    length: int
    sequence: int
    acknowledgement: int
    payload: int

    @property
    def is_data(self) -> bool:
        """Return True if it carries data to the receiver."""
        return self.ports[1] == PORT and self.payload > 0

    @property
    def is_ack(self) -> bool:
        """Return True if the receiver acknowledges with it."""
        return self.ports[0] == PORT and self.sequence > 0 and self.acknowledgement > 0

    @property
    def blocks(self) -> int:
        """Return the number of its SACK blocks."""
        return max(0, self.length - PLAIN_BYTES - SACK_BYTES) // BLOCK_BYTES if self.is_ack else 0


def write(transfer: Path, capture: Path) -> None:
    """Writes a transfer (`.csv.gz`) as a capture."""
    with gzip.open(transfer, "rt", encoding="utf-8") as file:
        rows = [_row(fields) for fields in csv.DictReader(file) if fields["tcp.seq"]]
    pcap.write(capture, _records(rows))


def strip(capture: Path, stripped: Path) -> None:
    """Writes a capture of one connection, from its SYN on, as if only such a table of it were left."""
    records = pcap.read(capture)
    first, initial = records[0], {one.source_port: one.sequence for one in records if one.flags & 0x02}
    rows = []
    for one in records:
        ours = one.source_port == first.source_port
        others = (number for port, number in initial.items() if port != one.source_port)
        row = Row(
            time_ns=one.time_ns - first.time_ns,
            ports=(first.source_port, PORT) if ours else (PORT, first.source_port),
            length=one.length - pcap.IP,
            sequence=((one.sequence or 0) - (initial[one.source_port] or 0)) % 2**32,
            acknowledgement=(one.acknowledgement - (next(others) or 0)) % 2**32 if one.flags & 0x10 else 0,
            payload=one.payload_bytes,
        )
        rows.append(row)
    pcap.write(stripped, _records(rows))


def _row(fields: dict[str, str]) -> Row:
    return Row(
        time_ns=round(1e9 * float(fields["frame.time_relative"])),
        ports=(int(fields["tcp.srcport"]), int(fields["tcp.dstport"])),
        length=int(fields["frame.len"]),
        sequence=int(fields["tcp.seq"]),
        acknowledgement=int(fields["tcp.ack"] or 0),
        payload=int(fields["tcp.len"] or 0),
    )


@dataclass(slots=True)
class Receiver:
    """The sequence numbers that have arrived: in order up to `next`, and above that in joined spans."""

    next: int = 1
    above: list[Span] = field(default_factory=list)

    def take(self, span: Span) -> None:
        """Take an arrival in; the span that it joins becomes the last one."""
        start, end = span
        joined = [one for one in self.above if one[0] <= end and start <= one[1]]
        self.above = [one for one in self.above if one not in joined]
        start, end = min([start, *(one[0] for one in joined)]), max([end, *(one[1] for one in joined)])
        if start <= self.next:
            self.next = max(self.next, end)
        else:
            self.above.append((start, end))


class Arrivals:
    """The segments that arrived, in the order of the copies that did, and the receiver's state after each of them.

    Of several copies the one that arrived is the last that was sent a round trip before the acknowledgement that covers
    it. What is sent in order arrives in order. So the numbers of an acknowledgement bound how many had arrived, and its
    time says where between the bounds.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        acked, samples = _acknowledged(rows)
        shortest_ns = min((rtt_ns for _, rtt_ns, again in samples if not again), default=0)
        arrived = sorted(_arrived(copies, time_ns - shortest_ns, start) for start, copies, time_ns in acked)
        self._spans = [span for _, span in arrived]
        rtts = sorted((sent_ns, rtt_ns) for sent_ns, rtt_ns, _ in samples if rtt_ns >= shortest_ns)
        self._reported_ns = _delivery_reports_ns([sent_ns for sent_ns, _ in arrived], rtts)
        receiver = Receiver()
        self._next, self._ranges = [1], [0]
        for span in self._spans:
            receiver.take(span)
            self._next.append(receiver.next)
            self._ranges.append(len(receiver.above))

    def by(self, time_ns: int) -> int:
        """Return the number of arrivals that the sender can know of by a time."""
        return bisect_left(self._reported_ns, time_ns + SLACK_NS)

    def bounds(self, acknowledgement: int) -> tuple[int, int]:
        """Return the least and the largest number of arrivals after which a receiver acknowledges so much."""
        least = bisect_left(self._next, acknowledgement)
        return least, max(least, bisect_right(self._next, acknowledgement) - 1)

    def with_ranges(self, blocks: int, count: int, least: int, most: int) -> int:
        """Return the number of arrivals nearest to `count` after which there are so many ranges to report."""
        fits = [
            at for at in range(least, min(most, len(self._spans)) + 1) if min(self._ranges[at], MAX_BLOCKS) == blocks
        ]
        return min(fits, key=lambda at: abs(at - count), default=count)

    def blocks(self, count: int) -> list[Span]:
        """Return the ranges above what is acknowledged after so many arrivals, the one with the last of them first."""
        acknowledged = self._next[count]
        receiver = Receiver(next=acknowledged)
        for span in self._spans[max(0, count - MAX_OUTSTANDING) : count]:
            if span[0] > acknowledged:
                receiver.take(span)
        return receiver.above[::-1]


def _acknowledged(
    rows: Sequence[Row],
) -> tuple[list[tuple[int, Sequence[Span], int]], list[tuple[int, int, bool]]]:
    """Return the segments that were acknowledged, and round trips.

    Of each segment: its number, the time and payload of each copy, and when it was acknowledged. Of each round trip:
    when it began, how long it was, and if it was that of a retransmission, one of several.
    """
    sent: dict[int, list[Span]] = {}
    acked: list[tuple[int, Sequence[Span], int]] = []
    samples: list[tuple[int, int, bool]] = []
    una = recover = high = 1
    for row in rows:
        if row.is_data:
            sent.setdefault(row.sequence, []).append((row.time_ns, row.payload))
            high = max(high, row.sequence + row.payload)
        elif row.is_ack and row.acknowledgement > una:
            starts = sorted(start for start in sent if start < row.acknowledgement)
            new = [(start, sent.pop(start), row.time_ns) for start in starts]
            new = [one for one in new if one[0] >= una]
            acked += new
            in_recovery = una < recover
            for _, copies, _ in new[:1] if in_recovery else new[-1:]:
                if in_recovery or len(copies) == 1:
                    trips = copies[1:] if in_recovery else copies
                    samples += [(sent_ns, row.time_ns - sent_ns, in_recovery) for sent_ns, _ in trips]
            una = row.acknowledgement
        if row.blocks and una >= recover:
            recover = high
    return acked, samples


def _arrived(copies: Sequence[tuple[int, int]], until_ns: int, start: int) -> tuple[int, Span]:
    """Return when the copy was sent that arrived, and its span."""
    possible = [copy for copy in copies if copy[0] <= until_ns] or copies[:1]
    time_ns, payload = possible[-1]
    return time_ns, (start, start + payload)


def _delivery_reports_ns(sent_ns: Sequence[int], samples: Sequence[tuple[int, int]]) -> Sequence[float]:
    """Return when the sender learnt of each arrival, by the round trips before and after."""
    if not samples or not sent_ns:
        return sent_ns
    times_ns, rtts_ns = zip(*samples, strict=True)
    reported_ns = np.asarray(sent_ns) + np.interp(sent_ns, times_ns, rtts_ns)
    return list(np.maximum.accumulate(reported_ns))


def _records(rows: Sequence[Row]) -> Iterator[pcap.Record]:
    arrivals = Arrivals(rows)
    mss_bytes = max(row.payload for row in rows)
    counts = _counts([row for row in rows if row.is_ack], arrivals)
    for row in rows:
        count = next(counts) if row.is_ack else 0
        blocks = arrivals.blocks(count)[: row.blocks] if row.blocks else []
        header = _header(row, blocks, mss_bytes)
        yield pcap.Record(row.time_ns, len(header) + row.payload, header)


def _counts(answers: Sequence[Row], arrivals: Arrivals) -> Iterator[int]:
    """Yield the number of segments that had arrived when each was sent.

    One with blocks reports an arrival more than the one before, or several where a receiver does not answer each: those
    of a burst equally many, all together what their time allows.
    """
    left = _left(answers)
    count = place = 0
    for burst in _bursts(answers):
        place += len(burst)
        least, most = arrivals.bounds(burst[-1].acknowledgement)
        if not burst[0].blocks:
            count = max(count, least)
            yield count
            continue
        after = left[place - 1]
        last = max(count + len(burst), least, arrivals.by(burst[-1].time_ns))
        last = min(last, max(most - after, least))
        last = max(count, arrivals.with_ranges(burst[-1].blocks, last, max(count, least), most))
        yield from (count + -(-(last - count) * number // len(burst)) for number in range(1, len(burst) + 1))
        count = last


def _left(answers: Sequence[Row]) -> list[int]:
    """Return for each how many with blocks follow that acknowledge the same."""
    left = [0] * len(answers)
    for place in range(len(answers) - 2, -1, -1):
        after = answers[place + 1]
        if after.acknowledgement == answers[place].acknowledgement and after.blocks:
            left[place] = left[place + 1] + 1
    return left


def _bursts(answers: Sequence[Row]) -> Iterator[list[Row]]:
    """Answers with blocks that come together and acknowledge the same; the others one by one."""
    burst: list[Row] = []
    for row in answers:
        same = burst and row.acknowledgement == burst[-1].acknowledgement and row.blocks and burst[-1].blocks
        if burst and (not same or row.time_ns - burst[-1].time_ns > SLACK_NS):
            yield burst
            burst = []
        burst.append(row)
    if burst:
        yield burst


def _header(row: Row, blocks: Sequence[Span], mss_bytes: int) -> bytes:
    """Return an Ethernet frame's headers; a SYN has the number 0. The window limits no sender."""
    if row.sequence == 0:
        options = struct.pack(">BBHBBBBBBBB", 2, 4, mss_bytes, 4, 2, 1, 3, 3, 14, 0, 0)
    elif blocks:
        edges = [edge for block in blocks for edge in block]
        options = struct.pack(f">BBBB{len(edges)}I", 1, 1, 5, 2 + BLOCK_BYTES * len(blocks), *edges)
    else:
        options = b""
    flags = (0x10 if row.acknowledgement else 0) | (0 if row.sequence else 0x02)
    hosts = [bytes([10, 0, 0, 1]), bytes([10, 128, 0, 1])]
    tcp_bytes = 20 + len(options)
    return b"".join(
        [
            bytes(12) + b"\x08\x00",
            struct.pack(">BBHHHBBH", 0x45, 0, 20 + tcp_bytes + row.payload, 0, 0x4000, 64, 6, 0),
            *(hosts if row.ports[1] == PORT else hosts[::-1]),
            struct.pack(
                ">HHIIBBHHH", *row.ports, row.sequence, row.acknowledgement, tcp_bytes << 2, flags, 0xFFFF, 0, 0
            ),
            options,
        ]
    )
