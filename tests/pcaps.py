"""Reads packet captures, byte by byte (pcap-savefile(5)), without any code that writes one."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

#: Ethernet, and IPv4 without options.
HEADERS_BYTES = 14 + 20


@dataclass(frozen=True)
class Frame:
    """One record of a capture of TCP or UDP; the fields of the latter that are TCP's mean nothing."""

    time_s: float
    source: tuple[str, int]
    destination: tuple[str, int]
    identification: int
    time_to_live: int
    sequence: int
    flags: int
    payload_bytes: int
    window: int

    @property
    def key(self) -> tuple[object, ...]:
        """Return the part of the packet that is equal at every vantage point."""
        return self.source, self.destination, self.identification, self.sequence, self.flags, self.payload_bytes


def frames(path: Path) -> list[Frame]:
    """The records of a file."""
    content = path.read_bytes()
    magic, *version, _, _, snap, link_type = struct.unpack_from("<IHHIIII", content)
    assert (magic, *version, snap, link_type) == (0xA1B23C4D, 2, 4, 128, 1)
    found, place = [], 24
    while place < len(content):
        seconds, nanoseconds, kept, length = struct.unpack_from("<IIII", content, place)
        frame = content[place + 16 : place + 16 + kept]
        assert len(frame) == min(length, snap)
        source, destination = (".".join(map(str, frame[at : at + 4])) for at in (26, 30))
        identification, time_to_live = struct.unpack_from(">H2xB", frame, 18)
        ports = struct.unpack_from(">HH", frame, 34)
        sequence, offset, flags = struct.unpack_from(">I4xBB", frame, 38)
        payload_bytes = length - HEADERS_BYTES - 4 * (offset >> 4)
        ends = ((source, ports[0]), (destination, ports[1]))
        window = int.from_bytes(frame[48:50], "big")
        numbers = (identification, time_to_live, sequence, flags, payload_bytes, window)
        found.append(Frame(seconds + nanoseconds / 1e9, *ends, *numbers))
        place += 16 + kept
    return found
