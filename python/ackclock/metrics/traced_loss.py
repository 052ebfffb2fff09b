"""Losses in the part of a capture that misses nothing.

Belhareth 2014, section 4.4.4.2, “recovered the trace part before tcpdump starts to drop packets” to take the loss rate
of it. Stalls need not be left out: nothing is sent in them.
"""

from __future__ import annotations

import polars as pl

from ackclock.input import arguments
from ackclock.input.arguments import checked
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.trace import check_captured

#: Fates of segments that did not reach their receivers.
LOST = ("lost", "lost_before")

SCHEMA = {
    "run": pl.UInt32,
    "flow": pl.UInt32,
    "until_s": pl.Float64,
    "segments": pl.Int64,
    "lost": pl.Int64,
    "share": pl.Float64,
}


@checked(data=arguments.RECORDED)
def losses_before_capture_loss(data: Recorded) -> pl.DataFrame:
    """Return data segments sent and lost, by flow, until the capture misses the first segment of any.

    `until_s` is when that is (null: it misses none), `share` lost out of `segments`. Without rows if the capture was
    read without its segments. Raises `InputError` for a result that is no capture's.
    """
    check_captured(data)
    segments = data.scan("segments").filter(pl.col("payload_bytes") > 0)
    fate = pl.col("fate").cast(pl.String)
    missed = segments.filter(fate == "capture_lost").group_by("run").agg(until_s=pl.col("time_s").min())
    before = segments.join(missed, on="run", how="left").filter(
        pl.col("until_s").is_null() | (pl.col("time_s") < pl.col("until_s"))
    )
    count = pl.col("segments").cast(pl.Int64)
    result = before.group_by("run", "flow").agg(
        pl.col("until_s").first(),
        count.sum().alias("segments"),
        count.filter(fate.is_in(LOST)).sum().alias("lost"),
    )
    result = result.with_columns(share=pl.col("lost") / pl.col("segments")).sort("run", "flow")
    return result.select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items()).collect()
