"""The rule of B4.dd: what a disk seems to do, with the system's cache and without, and by the size of the blocks."""

from collections.abc import Callable, Mapping
from math import inf

import polars as pl

from ackclock.dataset import Dataset
from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Values

#: “Memory access speed and not disk speed”: twice the disk's and more; more.
MEMORY, MORE = (2.0, inf), (1.0, inf)

#: “A slight variation”, of a few MB/s in 80 to 100: up to a quarter; up to thrice it still is of one kind.
SLIGHT, SOME = (1.0, 1.25), (1.0, 3.0)

#: Blocks of this size stand for a disk: the size that a capture is written in, 64 KiB.
BLOCK_BYTES = 65536


def speed(operation: str, *, cached: bool, block_bytes: int = BLOCK_BYTES) -> Callable[[Dataset], Values]:
    """Bytes a second in each repeat."""

    def measure(data: Dataset) -> Values:
        rows = data.frame("disk").filter(
            (pl.col("operation") == operation) & (pl.col("cached") == cached) & (pl.col("block_bytes") == block_bytes)
        )
        return tuple(rows.sort("repeat").select(pl.col("bytes") / pl.col("duration_s")).to_series().to_list())

    return measure


def spread(operation: str) -> Callable[[Dataset], Values]:
    """Measure the ratio of the best block size's speed to the worst's, in each repeat, without the cache."""

    def measure(data: Dataset) -> Values:
        rows = data.frame("disk").filter((pl.col("operation") == operation) & ~pl.col("cached"))
        speeds = rows.with_columns(speed=pl.col("bytes") / pl.col("duration_s")).group_by("repeat")
        found = speeds.agg(pl.col("speed").max() / pl.col("speed").min()).sort("repeat")
        return tuple(found["speed"].to_list())

    return measure


MEASURES = {
    **{f"{what} cached": speed(what, cached=True) for what in ("write", "read")},
    **{f"{what} disk": speed(what, cached=False) for what in ("write", "read")},
    **{f"{what} spread": spread(what) for what in ("write", "read")},
}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    (found,) = measured.values()
    return [row for what in ("write", "read") for row in _of(found, what)]


def _of(found: Mapping[str, Values], what: str) -> list[Row]:
    return [
        Row("cache", ratio(found[f"{what} cached"], found[f"{what} disk"]), MEMORY, MORE, at=what),
        Row("blocks", found[f"{what} spread"], SLIGHT, SOME, at=what, limits=(1.0, inf)),
        Row("raw", (None,), MORE, MORE, at=what, aside=True),
    ]
