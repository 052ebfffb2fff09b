"""Transfers that tshark wrote as CSV, as captures: of 48-byte segments, to a receiver that listens at port 5000.

The fields have no options. Lengths tell which acknowledgements had SACK blocks, and what was sent again later which
segments they cannot have had. What had arrived by then is taken from the round-trip times before and after.
"""

from __future__ import annotations

import csv
import gzip
import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ackclock.reproductions import pcap

#: Payload of a full segment, and the receiver's port.
MSS, PORT = 48, 5000

#: Bytes of an acknowledgement with timestamps alone; what the option SACK takes, and each of its blocks (RFC 2018).
PLAIN_BYTES, SACK_BYTES, BLOCK_BYTES = 52, 4, 8

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
    pcap.write(capture, _records(rows, Arrivals(rows)))


def _row(fields: dict[str, str]) -> Row:
    return Row(
        time_ns=round(1e9 * float(fields["frame.time_relative"])),
        ports=(int(fields["tcp.srcport"]), int(fields["tcp.dstport"])),
        length=int(fields["frame.len"]),
        sequence=int(fields["tcp.seq"]),
        acknowledgement=int(fields["tcp.ack"] or 0),
        payload=int(fields["tcp.len"] or 0),
    )


class Arrivals:
    """When the sender could hear of each segment: a round trip after the last copy before its acknowledgement."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._spans: list[tuple[int, Span]] = []
        sent: dict[int, tuple[int, int]] = {}
        samples: list[tuple[int, int]] = []
        again: set[int] = set()
        una = recover = high = 1
        for row in rows:
            if row.is_data:
                again |= {row.sequence} & sent.keys()
                sent[row.sequence] = row.time_ns, row.payload
                high = max(high, row.sequence + row.payload)
            elif row.is_ack and row.acknowledgement > una:
                acked = sorted(start for start in sent if start < row.acknowledgement)
                told = acked[-1:] if una >= recover else [start for start in acked[:1] if start in again]
                samples += [(sent[start][0], row.time_ns - sent[start][0]) for start in told]
                for start in acked:
                    time_ns, payload = sent.pop(start)
                    self._spans.append((time_ns, (start, start + payload)))
                una = row.acknowledgement
            if row.blocks and una >= recover:
                recover = high
        self._spans.sort()
        self._starts = sorted(start for _, (start, _) in self._spans)
        samples.sort()
        times_ns = [time_ns for time_ns, _ in self._spans]
        known = ([time_ns for time_ns, _ in samples], [rtt_ns for _, rtt_ns in samples])
        heard_ns = np.asarray(times_ns) + np.interp(times_ns, *known) if samples else np.asarray(times_ns)
        self._heard_ns = np.maximum.accumulate(heard_ns) if len(heard_ns) else heard_ns

    def by(self, time_ns: int) -> int:
        """Return the number of arrivals by a time."""
        return bisect_left(self._heard_ns, time_ns + SLACK_NS)

    def below(self, acknowledgement: int) -> int:
        """Return the number of arrivals that an acknowledgement covers."""
        return bisect_left(self._starts, acknowledgement)

    def above(self, acknowledgement: int, count: int) -> list[Span]:
        """Return the first `count` arrivals above an acknowledgement, joined."""
        spans = sorted(span for _, span in self._spans[:count] if span[0] > acknowledgement)
        edges = [index for index, (one, two) in enumerate(pairwise(spans), start=1) if one[1] < two[0]]
        return [
            (spans[first][0], spans[last - 1][1]) for first, last in pairwise([0, *edges, len(spans)]) if first < last
        ]


def _records(rows: Sequence[Row], arrivals: Arrivals) -> Iterator[pcap.Record]:
    counts = _counts([row for row in rows if row.is_ack], arrivals)
    for row in rows:
        count = next(counts) if row.is_ack else 0
        blocks = arrivals.above(row.acknowledgement, count)[::-1][: row.blocks]
        header = _header(row, blocks)
        yield pcap.Record(row.time_ns, len(header) + row.payload, header)


def _counts(answers: Sequence[Row], arrivals: Arrivals) -> Iterator[int]:
    """Yield the number of segments that had arrived when each was sent. Those of a burst report equally many."""
    count = 0
    for burst in _bursts(answers):
        if not burst[0].blocks:
            count = max(count, arrivals.below(burst[0].acknowledgement))
            yield count
            continue
        new = max(arrivals.by(burst[-1].time_ns) - count, len(burst))
        yield from (count + -(-new * place // len(burst)) for place in range(1, len(burst) + 1))
        count += new


def _bursts(answers: Sequence[Row]) -> Iterator[list[Row]]:
    """Answers with blocks that come together; the others one by one."""
    burst: list[Row] = []
    for row in answers:
        if burst and (not row.blocks or not burst[-1].blocks or row.time_ns - burst[-1].time_ns > SLACK_NS):
            yield burst
            burst = []
        burst.append(row)
    if burst:
        yield burst


def _header(row: Row, blocks: Sequence[Span]) -> bytes:
    """Return an Ethernet frame's headers; a SYN has the number 0. The window limits no sender."""
    if row.sequence == 0:
        options = struct.pack(">BBHBBBBBBBB", 2, 4, MSS, 4, 2, 1, 3, 3, 14, 0, 0)
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
