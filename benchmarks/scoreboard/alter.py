"""Makes other captures of a capture: with a shorter snaplen, as offloads show it, with packets that the capture lost.

    python benchmarks/scoreboard/alter.py CAPTURE OUT [--snaplen BYTES] [--offload BYTES] [--gap NS] [--lose SHARE]
                                          [--seed N]

The steps are taken in the order in which a host takes them: segments become super-segments, the capture loses some,
what is left is cut. The truth is that of the capture before: `truth.py` finds the rows of super-segments too.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from ackclock.reproductions import pcap
from ackclock.reproductions.pcap import Record

#: SYN, FIN and RST: never part of a super-segment.
SINGLE = 0x07

#: The largest IP packet that its length field can say.
LARGEST_BYTES = 65_535


def main() -> None:
    """Reads a capture and writes another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--snaplen", type=int, metavar="BYTES")
    parser.add_argument("--offload", type=int, metavar="BYTES", help="most bytes of a super-segment's IP packet")
    parser.add_argument("--gap", type=int, default=0, metavar="NS", help="most time between segments that are joined")
    parser.add_argument("--lose", type=float, default=0.0, metavar="SHARE")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    given = parser.parse_args()
    records: Iterable[Record] = pcap.read(given.capture)
    if given.offload:
        records = offloaded(records, given.offload, given.gap)
    if given.lose:
        records = lossy(records, given.lose, given.seed)
    if given.snaplen:
        records = cut(records, given.snaplen)
    pcap.write(given.out, records, given.snaplen or 262_144)


def cut(records: Iterable[Record], snap_bytes: int) -> Iterator[Record]:
    """With so many bytes of each packet at most."""
    for record in records:
        yield replace(record, kept=record.kept[:snap_bytes])


def lossy(records: Iterable[Record], share: float, seed: int) -> Iterator[Record]:
    """Without this share of the packets, each by chance."""
    draw = random.Random(seed)
    return (record for record in records if draw.random() >= share)


def offloaded(records: Iterable[Record], most_bytes: int, gap_ns: int) -> Iterator[Record]:
    """With super-segments of up to so many bytes (IP packet) in place of segments that follow each other.

    As segmentation offload shows a sender's packets (`gap_ns` 0: what leaves at once) and receive offload a receiver's:
    of one flow and direction, in sequence, with identifications that count on, equal flags, acknowledgement and length
    of options. The first one's header stays; the checksum of TCP is not right then, as that of offloads is not.
    """
    waiting: Record | None = None
    segments, latest_ns = 1, 0
    for record in records:
        follows = waiting is not None and _follows(waiting, record, segments) and record.time_ns - latest_ns <= gap_ns
        if (
            waiting is not None
            and follows
            and _ip_bytes(waiting) + record.payload_bytes <= min(most_bytes, LARGEST_BYTES)
        ):
            waiting, segments = _with(waiting, record.payload_bytes), segments + 1
        else:
            if waiting is not None:
                yield waiting
            waiting, segments = record, 1
        latest_ns = record.time_ns
    if waiting is not None:
        yield waiting


def _ip_bytes(record: Record) -> int:
    return int.from_bytes(record.kept[16:18])


def _follows(first: Record, record: Record, segments: int) -> bool:
    """Return True if a packet continues the super-segment that `first` and its followers have become."""
    if not (first.is_tcp and record.is_tcp and first.payload_bytes and record.payload_bytes):
        return False
    return (
        first.kept[26:38] == record.kept[26:38]
        and (first.flags | record.flags) & SINGLE == 0
        and first.flags == record.flags
        and first.acknowledgement == record.acknowledgement
        and first.header_bytes == record.header_bytes
        and ((first.sequence or 0) + first.payload_bytes) % 2**32 == record.sequence
        and (first.identification + segments) % 2**16 == record.identification
    )


def _with(record: Record, more_bytes: int) -> Record:
    """A packet with more payload."""
    ip = bytearray(record.kept[pcap.IP : pcap.CARRIED])
    ip[2:4] = (_ip_bytes(record) + more_bytes).to_bytes(2)
    ip[10:12] = b"\0\0"
    total = sum(int.from_bytes(ip[at : at + 2]) for at in range(0, len(ip), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    ip[10:12] = (0xFFFF - total).to_bytes(2)
    kept = record.kept[: pcap.IP] + bytes(ip) + record.kept[pcap.CARRIED :]
    return replace(record, kept=kept, length=record.length + more_bytes)


if __name__ == "__main__":
    main()
