"""The truth of a capture: every transmission with the number of the packet that shows it.

    python benchmarks/scoreboard/truth.py RESULT CAPTURE

prints how many transmissions of each cause and fate a capture of a result shows, or does not. The capture may be one
that `alter.py` made of the result's.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import polars as pl

import ackclock as ac
from ackclock.reproductions import pcap
from ackclock.reproductions.pcap import Record

#: Identity of a transmission: flow, whether the sender sent it, identification, sequence. It is ambiguous only after
#: 65,536 packets of one end, with a retransmission of the very same segment.
Name: TypeAlias = tuple[int, bool, int, int | None]

#: Fates of what reaches its end.
ARRIVED = ("delivered", "duplicate")


def read(result: Path, capture: Path) -> pl.DataFrame:
    """The rows of `transmissions` with three columns more; those that the capture does not show have no `packet`.

    `packet` is the number in the file, from 1 on, as other tools count; `copy` how often its data, or its SYN or
    SYN/ACK, were sent before; `spurious` whether that was needless: an earlier copy has arrived, or does.
    """
    rows = ac.Dataset.read(result).transmissions
    return shown(rows, pcap.read(capture))


def shown(rows: pl.DataFrame, records: Sequence[Record]) -> pl.DataFrame:
    """Return the rows that records show. Raises `ValueError` for a packet that no host has sent."""
    names = rows.select("flow", pl.col("end") == "sender", "identification", "sequence").rows()
    payloads = rows["payload_bytes"].to_list()
    places = {name: row for row, name in enumerate(names)}
    packets: list[int | None] = [None] * rows.height
    for number, record in enumerate(records, start=1):
        for row in _rows_of(record, places, payloads):
            packets[row] = number
    return rows.with_columns(pl.Series("packet", packets, dtype=pl.UInt32), *_copies())


def _rows_of(record: Record, places: dict[Name, int], payloads: Sequence[int]) -> list[int]:
    """Return the row of a packet, or those of all segments of a super-segment."""
    found: list[int] = []
    covered, sequence = 0, record.sequence
    while not found or covered < record.payload_bytes:
        at = None if sequence is None else (sequence + covered) % 2**32
        name = (record.flow, record.from_sender, (record.identification + len(found)) % 2**16, at)
        if name not in places:
            raise ValueError(f"found a packet {name} that nobody has sent; expected a capture of this result")
        found.append(places[name])
        covered += payloads[found[-1]]
    return found


def _copies() -> list[pl.Expr]:
    """Number the copies of each row's data, or of its handshake segment, and mark the needless ones."""
    kinds = pl.col("kind").cast(pl.String)
    segments = ["data", "data_fin", "fin"]
    same = ["run", "flow", pl.when(kinds.is_in(segments)).then(pl.lit("data")).otherwise(kinds), "segment"]
    repeated = kinds.is_in([*segments, "syn", "syn_ack", "client_syn", "server_syn_ack", "request", "fin_ack"])
    copy = pl.when(repeated).then(pl.int_range(pl.len(), dtype=pl.UInt32).over(same)).otherwise(0)
    came = pl.col("fate").is_in(ARRIVED).cast(pl.UInt32)
    before = came.cum_sum().over(same) - came
    return [copy.alias("copy"), (repeated & (before > 0)).alias("spurious")]


def main() -> None:
    """Prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    parser.add_argument("capture", type=Path)
    given = parser.parse_args()
    rows = read(given.result, given.capture).with_columns(shown=pl.col("packet").is_not_null())
    counts = rows.group_by("end", "cause", "fate", "spurious", "shown").len().sort("end", "cause", "fate", "spurious")
    with pl.Config(tbl_rows=-1, tbl_hide_dataframe_shape=True):
        print(counts)


if __name__ == "__main__":
    main()
