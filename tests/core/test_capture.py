"""Captures through `_core`: what it takes, what it gives, and that it is what a simulated run was."""

import struct

import numpy as np
import pytest

from ackclock import _core
from ackclock.dataset.tables import EVENT_KINDS

MSS = 1000


def frame(at_ms, client, sequence, acknowledgement, *, flags=0x10, payload=0, options=b""):
    """A record of a pcap file with the headers of an Ethernet frame."""
    source, destination = (b"\x0a\0\0\1", b"\x0a\0\0\2") if client else (b"\x0a\0\0\2", b"\x0a\0\0\1")
    ports = (40_000, 80) if client else (80, 40_000)
    names = (5 + len(options) // 4) << 4
    tcp = struct.pack(">HHIIBBHHH", *ports, sequence, acknowledgement, names, flags, 60_000, 0, 0) + options
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp) + payload, 0, 0, 64, 6, 0) + source + destination
    bytes_ = bytes(12) + b"\x08\0" + ip + tcp
    return struct.pack("<IIII", at_ms // 1000, at_ms % 1000 * 1000, len(bytes_), len(bytes_) + payload) + bytes_


HEADER = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1)
OPENING = b"\x02\x04\x03\xe8\x04\x02\x01\x01"  # MSS 1000, SACK


@pytest.fixture
def transfer(tmp_path):
    """Four segments at their sender, 100 ms from their receiver; the second is lost and sent again."""
    data = [frame(100, True, 1 + MSS * number, 1, payload=MSS) for number in range(5)]
    sack = [b"\x01\x01\x05\x0a" + struct.pack(">II", 1 + 2 * MSS, 1 + MSS * end) for end in (3, 4, 5)]
    holes = [frame(203 + number, False, 1, 1 + MSS, options=block) for number, block in enumerate(sack)]
    path = tmp_path / "transfer.pcap"
    path.write_bytes(
        HEADER
        + frame(0, True, 0, 0, flags=0x02, options=OPENING)
        + frame(100, False, 0, 1, flags=0x12, options=OPENING)
        + frame(100, True, 1, 1)
        + b"".join(data + holes)
        + frame(206, True, 1 + MSS, 1, payload=MSS)
        + frame(306, False, 1, 1 + 5 * MSS)
    )
    return path


def analysed(*paths, **options):
    capture = _core.Capture(list(paths), **options)
    while capture.advance(3):
        pass
    return capture, capture.drain()


def names(values, names):
    return [names[value] for value in values]


def test_a_lost_segment_has_its_retransmission(transfer):
    capture, tables = analysed(transfer, segments=True)
    flows = {name: values[0] for name, values in tables["flows"].items()}
    assert (flows["client"], flows["client_port"], flows["server"], flows["server_port"]) == (
        "10.0.0.1",
        40_000,
        "10.0.0.2",
        80,
    )
    assert _core.CAPTURE_VANTAGES[flows["vantage"]] == "sender"
    assert (flows["delivered"], flows["lost"], flows["retransmissions_fast"]) == (5, 1, 1)
    assert flows["delivered_bytes"] == 5 * MSS
    assert flows["handshake_s"] == pytest.approx(0.1)
    assert (capture.connections, capture.segments, capture.origin_ns) == (1, 13, 0)
    assert capture.duration_s == pytest.approx(0.306)
    fates = names(tables["segments"]["fate"], _core.CAPTURE_FATES)
    assert sorted(fates) == ["delivered"] * 5 + ["lost"]
    assert {"established", "recovery", "retransmission", "loss"} == set(names(tables["events"]["kind"], EVENT_KINDS))


def test_tables_have_the_columns_that_are_named(transfer):
    _, tables = analysed(transfer, segments=True)
    assert {table: list(columns) for table, columns in tables.items()} == {
        table: list(columns) for table, columns in _core.CAPTURE_TABLES.items()
    }
    assert len({len(values) for values in tables["flows"].values()}) == 1


def test_only_requested_columns_are_filled(transfer):
    _, tables = analysed(transfer, interval_s=0, events=False)
    assert [len(tables[table]["flow"]) for table in ("flow_samples", "events", "segments")] == [0, 0, 0]


def test_unreadable_files_report_the_reason(transfer, tmp_path):
    text = tmp_path / "text"
    text.write_text("no capture at all")
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(transfer.read_bytes()[:-10])
    capture, _ = analysed(text, cut, tmp_path / "missing")
    found, broken, missing = capture.files()
    assert found["refused"] and "expected a capture" in found["note"]
    assert not broken["refused"] and "breaks off" in broken["note"] and broken["segments"] == 12
    assert missing["refused"] and "cannot be read" in missing["note"]
    assert np.isnan(capture.duration_s) or capture.duration_s > 0
