"""Captures of several vantage points: which files have the same packets.

Files of one vantage point, as tcpdump rotates them, continue each other and are merged. Two captures of the same
connections are not: each packet would count twice. They are told apart by the packets themselves (`match`: what no hop
changes of a packet), so that neither names, nor times of clocks that differ, nor a missing handshake matter.

Used by `ackclock.capture` and the commands `capture` and `doctor`, before captures are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ackclock import _core
from ackclock.errors import InputError
from ackclock.system.files import readable

if TYPE_CHECKING:
    import polars as pl

#: Packets of each file of which those of TCP and QUIC are compared.
MAX_PACKETS = 1_000_000

#: Captures of the same connections have this share of the packets of the smaller one in common.
MIN_SHARE = 0.1


class SeveralVantagePointsError(InputError):
    """Files of several vantage points, where one is expected. `groups`: the files of each."""

    def __init__(self, groups: Sequence[Sequence[Path]]) -> None:
        names = ", ".join(readable(group[0]) for group in groups)
        super().__init__(
            f"files: found captures of {len(groups)} vantage points, which have the same packets ({names}); "
            "expected those of one (`ackclock capture --join` matches two)"
        )
        self.groups = groups


def check(paths: Sequence[Path], expression: str = "") -> None:
    """Raise `SeveralVantagePointsError` if some of the files have the same packets as others."""
    points = groups(paths, expression)
    if len(points) > 1:
        raise SeveralVantagePointsError(points)


def groups(paths: Sequence[Path], expression: str = "") -> list[list[Path]]:
    """Return the files by vantage point: those of a group have no packets in common."""
    listed: dict[Path, tuple[pl.DataFrame, pl.DataFrame]] = {}
    result: list[list[Path]] = []
    for path in paths:
        listed[path] = _listed(path, expression)
        for group in result:
            if not any(_have_same_packets(listed[path], listed[other]) for other in group):
                group.append(path)
                break
        else:
            result.append([path])
    return result


def _listed(path: Path, expression: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the data packets of a file by their keys, all packets if it has none, and the ends of its connections."""
    import polars as pl

    listing = _core.Listing(path, expression, datagrams=True)
    listing.advance(MAX_PACKETS)
    rows = listing.drain()
    every = pl.DataFrame(dict(rows["listed"]))
    data = every.filter(pl.col("payload_bytes") > 1)  # keep-alives are alike
    packets = data if data.height else every
    pairs = pl.DataFrame(dict(rows["pairs"]), schema={"first": pl.String, "second": pl.String})
    return packets.select("pair", "key").unique("key"), pairs.with_row_index("pair")


def _have_same_packets(one: tuple[pl.DataFrame, pl.DataFrame], other: tuple[pl.DataFrame, pl.DataFrame]) -> bool:
    """Return True if two files have connections in common, and packets of these."""
    (packets, pairs), (others, other_pairs) = one, other
    ends = ["first", "second"]
    packets = packets.join(pairs.join(other_pairs, on=ends, how="semi"), on="pair", how="semi")
    others = others.join(other_pairs.join(pairs, on=ends, how="semi"), on="pair", how="semi")
    in_both = packets.join(others, on="key", how="semi").height
    return in_both > 0 and in_both >= MIN_SHARE * min(packets.height, others.height)
