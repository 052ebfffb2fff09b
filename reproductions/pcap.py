"""Captures as the packet engine writes them (pcap-savefile(5), nanoseconds, Ethernet, IPv4), record by record.

It shares no code with what reads captures, which is judged by what is made with it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

HEADER = struct.Struct("<IHHiIII")
RECORD = struct.Struct("<IIII")
MAGIC_NS, ETHERNET = 0xA1B23C4D, 1

#: Offsets of IP and of its payload in a frame; protocol numbers.
IP, CARRIED = 14, 34
TCP, UDP = 6, 17

#: The port of all receivers.
RECEIVER_PORT = 5001


@dataclass(frozen=True, slots=True)
class Record:
    """A packet of a capture: its time, its length on the wire, and the bytes that were kept of it."""

    time_ns: int
    length: int
    kept: bytes

    @property
    def flow(self) -> int:
        """The number of its flow, from the sender's address."""
        host = self.kept[27:30] if self.from_sender else self.kept[31:34]
        return ((host[0] & 0x7F) << 16 | host[1] << 8 | host[2]) - 1

    @property
    def from_sender(self) -> bool:
        """Return True if it goes to the receiver: senders have the lower addresses."""
        return self.kept[27] < 0x80

    @property
    def identification(self) -> int:
        """Return the identification of its IP packet."""
        return int.from_bytes(self.kept[18:20])

    @property
    def is_tcp(self) -> bool:
        """Return True if it is a segment of TCP."""
        return self.kept[23] == TCP

    @property
    def sequence(self) -> int | None:
        """Its sequence number; a datagram has none."""
        return int.from_bytes(self.kept[38:42]) if self.is_tcp else None

    @property
    def acknowledgement(self) -> int:
        """Return the acknowledgement number of a segment."""
        return int.from_bytes(self.kept[42:46])

    @property
    def source_port(self) -> int:
        """Return the port that it comes from."""
        return int.from_bytes(self.kept[CARRIED : CARRIED + 2])

    @property
    def flags(self) -> int:
        """Return the flags of a segment."""
        return self.kept[47]

    @property
    def header_bytes(self) -> int:
        """Bytes before its payload."""
        return CARRIED + (4 * (self.kept[46] >> 4) if self.is_tcp else 8)

    @property
    def payload_bytes(self) -> int:
        """By its IP header: of a super-segment all of it."""
        return IP + int.from_bytes(self.kept[16:18]) - self.header_bytes


def read(path: Path) -> list[Record]:
    """The records of a file. Raises `ValueError` for what the packet engine would not write."""
    content = path.read_bytes()
    magic, _, _, _, _, _, link = HEADER.unpack_from(content)
    if (magic, link) != (MAGIC_NS, ETHERNET):
        raise ValueError(
            f"{path}: found magic {magic:#x} and link type {link}; expected a capture of the packet engine"
        )
    found, place = [], HEADER.size
    while place < len(content):
        seconds, ns, kept, length = RECORD.unpack_from(content, place)
        place += RECORD.size
        found.append(Record(seconds * 1_000_000_000 + ns, length, content[place : place + kept]))
        place += kept
    return found


def write(path: Path, records: Iterable[Record], snap_bytes: int = 262_144) -> None:
    """Writes a file of these records."""
    with path.open("wb") as file:
        file.write(HEADER.pack(MAGIC_NS, 2, 4, 0, 0, snap_bytes, ETHERNET))
        for record in records:
            seconds, ns = divmod(record.time_ns, 1_000_000_000)
            file.write(RECORD.pack(seconds, ns, len(record.kept), record.length) + record.kept)
