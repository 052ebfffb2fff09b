"""SACK blocks that a table of tshark lacks, reconstructed: compared with those that the packet engine wrote."""

from __future__ import annotations

import csv
import gzip

import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock.reproductions import pcap

#: A slow link that small segments fill: each window is a burst, of which the end is lost.
SCENARIO = f"""
name = "slow"
duration = "30s"
seeds = [1]
{dumbbell("200kbit", "60ms", "20p")}
[tcp]
mtu = "100B"
mss = "48B"
[[flows]]
congestion = "cubic"
[record]
pcap = true
"""

COLUMNS = ("frame.time_relative", "frame.len", "tcp.seq", "tcp.ack", "tcp.len", "tcp.srcport", "tcp.dstport")


@pytest.fixture(scope="module")
def tshark(scoreboard):
    return scoreboard("tshark")


def table(records, path):
    """Write what tshark shows of a transfer: relative numbers and lengths of IP packets, and no options."""
    first_ns = records[0].time_ns
    initial = {one.from_sender: one.sequence for one in records if one.flags & 0x02}
    with gzip.open(path, "wt", encoding="utf-8") as file:
        rows = csv.DictWriter(file, COLUMNS)
        rows.writeheader()
        for one in records:
            own, other = initial[one.from_sender], initial[not one.from_sender]
            ports = (4000, 5000) if one.from_sender else (5000, 4000)
            acknowledgement = one.acknowledgement - other if one.flags & 0x10 else 0
            values = ((one.time_ns - first_ns) / 1e9, one.length - pcap.IP, one.sequence - own, acknowledgement)
            rows.writerow(dict(zip(COLUMNS, (*values, one.payload_bytes, *ports), strict=True)))


def blocks(record):
    """The edges of the SACK blocks of an acknowledgement, relative to what it acknowledges."""
    options, at = record.kept[54 : record.header_bytes], 0
    while at < len(options):
        if options[at] == 5:
            edges = options[at + 2 : at + options[at + 1]]
            return [int.from_bytes(edges[i : i + 4]) - record.acknowledgement for i in range(0, len(edges), 4)]
        at += 1 if options[at] < 2 else options[at + 1]
    return []


def test_reconstructed_sack_blocks_are_those_of_the_receiver(tshark, tmp_path):
    ac.run(ac.loads(SCENARIO).plan(), captures=tmp_path, jobs=1)
    records = pcap.read(tmp_path / "seed-1.pcap")
    table(records, tmp_path / "slow.csv.gz")
    tshark.write(tmp_path / "slow.csv.gz", tmp_path / "again.pcap")
    again = pcap.read(tmp_path / "again.pcap")
    assert len(again) == len(records)
    pairs = [(blocks(one), blocks(other)) for one, other in zip(records, again, strict=True) if not one.from_sender]
    sacks = [(true, found) for true, found in pairs if true]
    assert len(sacks) > 100
    assert all(len(true) == len(found) for true, found in pairs)
    # Between two acknowledgements several may have arrived, of which the table does not show how many.
    assert sum(max(true) - max(found) in (-48, 0, 48) for true, found in sacks) >= 0.9 * len(sacks)
