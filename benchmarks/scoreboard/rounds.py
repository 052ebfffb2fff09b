"""The truth of a round trip: what held its sender back, and whose the bottleneck's queue was."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any

import polars as pl

import ackclock as ac
from ackclock import _core

#: The senders' addresses begin here: flow n has this one and n more.
FIRST_ADDRESS = int(IPv4Address("10.0.0.1"))

#: The limit that most segments of a round trip have waited for counts as true.
CAUSES_OF_WAITING = {
    "application": ["application"],
    "receiver": ["receiver"],
    "slow_start": ["slow_start"],
    "window": ["cwnd", "recovery", "pacing"],
}

#: Names in the ground truth → names in the analysis.
SAME_LIMIT = {"window": ["cwnd", "bottleneck", "shared_bottleneck"]}

#: A link is full in a round trip if it works for this share of it, and free if for less than that one;
FULL, FREE = 0.95, 0.8

#: the queue of a full one is the flow's own if this share of what it delivers meanwhile is the flow's, else shared.
OWN = 0.9

#: Owner of the queue, or "none" → its name in the analysis.
QUEUES = {"own": "bottleneck", "shared": "shared_bottleneck", "none": "cwnd"}


def flows(columns: Mapping[str, object]) -> pl.DataFrame:
    """The run's number of each direction that carries its data: `told` by the analysis, `flow` in the run."""
    rows = pl.DataFrame({name: columns[name] for name in ("flow", "client", "server", "mss")})
    of_client = pl.col("flow") % 2 == 0
    sender = pl.when(of_client).then("client").otherwise("server")
    number = sender.map_elements(lambda text: int(IPv4Address(text)) - FIRST_ADDRESS, pl.Int64)
    return rows.select("mss", told="flow", flow=number).filter(pl.col("flow").is_between(0, 2**23))


def sampled_rounds(samples: Mapping[str, Any], known: pl.DataFrame, begin_s: float) -> pl.DataFrame:
    """Samples, one of each round trip: `time_s` and `srtt_s` of the run, and what is `said` to have limited."""
    names = ("time_s", "flow", "srtt_s", "limit")
    rows = pl.DataFrame({name: samples[name] for name in names}).rename({"flow": "told"}).join(known, on="told")
    words = dict(enumerate(_core.CAPTURE_LIMITS))
    said = pl.col("limit").replace_strict(words, return_dtype=pl.String)
    rows = rows.filter(pl.col("srtt_s").is_not_nan()).with_columns(pl.col("time_s") + begin_s, said=said)
    passed = (pl.col("time_s").diff() / pl.col("srtt_s")).fill_null(1.0).cum_sum().over("flow").floor()
    rows = rows.sort("time_s", maintain_order=True).filter(passed.diff().fill_null(1.0).over("flow") > 0)
    return rows.select("time_s", "flow", "srtt_s", "said").with_row_index()


def at_sender(rows: pl.DataFrame, passed: pl.DataFrame) -> pl.DataFrame:
    """`rows` of `sampled_rounds` with the sender's time in place of the capture's.

    A packet passes a capture some time after it was sent, and what the analysis says then is of the sender as it was
    when it sent that. `passed` has `flow`, `seen_s` and `sent_s` of each copy that passed.
    """
    known = passed.drop_nulls().select("flow", "sent_s", time_s="seen_s").sort("time_s")
    both = rows.sort("time_s").join_asof(known, on="time_s", by="flow", check_sortedness=False)
    return both.drop_nulls("sent_s").with_columns(time_s="sent_s").drop("sent_s").sort("index")


def limits(rows: pl.DataFrame, transmissions: pl.DataFrame) -> pl.DataFrame:
    """`rows` of `sampled_rounds` with the limit of most segments as `true`, and whether most of the window was `paced`.

    Those in whose round trip nobody has waited are left out, and so are those in which two waits come equally often.
    """
    waited = pl.col("limit").cast(pl.String)
    counts = {name: waited.is_in(why).cast(pl.Int64) for name, why in CAUSES_OF_WAITING.items()}
    counts["paces"] = (waited == "pacing").cast(pl.Int64)
    sums = [count.cum_sum().over("flow").alias(name) for name, count in counts.items()]
    true = transmissions.sort("time_s").select("time_s", pl.col("flow").cast(pl.Int64), *sums)
    most = pl.max_horizontal(*CAUSES_OF_WAITING)
    names = [pl.when(pl.col(name) == most).then(pl.lit(name)) for name in CAUSES_OF_WAITING]
    ties = pl.sum_horizontal(pl.col(name) == most for name in CAUSES_OF_WAITING)
    found = _during(rows, true, list(counts), by="flow").filter((most > 0) & (ties == 1))
    return found.with_columns(true=pl.coalesce(names), paced=2 * pl.col("paces") > pl.col("window")).drop(*counts)


def queues(rows: pl.DataFrame, data: ac.Dataset, link: str) -> pl.DataFrame:
    """`rows` of `sampled_rounds` whose flow met the full link or the free one, with whose its `queue` was."""
    number = data.links.filter(pl.col("name") == link)["link"].item()
    worked = data.queue_samples.filter(pl.col("link") == number).sort("time_s")
    busy_s = (pl.col("utilisation") * pl.col("time_s").diff()).cum_sum()
    worked = worked.select("time_s", busy_s=busy_s.fill_null(0.0))
    came = (pl.col("end") == "sender") & pl.col("arrival_s").is_not_null() & (pl.col("payload_bytes") > 0)
    arrived = data.transmissions.filter(came).sort("arrival_s")
    so_far = pl.col("payload_bytes").cast(pl.Float64).cum_sum()
    sums = arrived.select(pl.col("flow").cast(pl.Int64), time_s="arrival_s", all=so_far, own=so_far.over("flow"))
    found = _during(rows, worked, ["busy_s"])
    found = _during(found, sums.drop("flow", "own"), ["all"])
    found = _during(found, sums.drop("all"), ["own"], by="flow").filter(pl.col("all") > 0)
    busy = pl.col("busy_s") / pl.col("srtt_s")
    own = pl.when(pl.col("own") >= OWN * pl.col("all")).then(pl.lit("own")).otherwise(pl.lit("shared"))
    queue = pl.when(busy >= FULL).then(own).when(busy < FREE).then(pl.lit("none"))
    return found.with_columns(queue=queue).drop("busy_s", "all", "own").drop_nulls("queue")


def _during(rows: pl.DataFrame, sums: pl.DataFrame, names: list[str], by: str | None = None) -> pl.DataFrame:
    """Return the growth of sums in the preceding round trip, which ends half of one before a sample is taken."""
    rows = rows.with_row_index("place") if "place" not in rows.columns else rows
    until, since = (
        rows.select("place", "flow", time_s=pl.col("time_s") - ago * pl.col("srtt_s"))
        .sort("time_s")
        .join_asof(sums, on="time_s", by=by, check_sortedness=False)
        .sort("place")
        .select(pl.col(name).fill_null(0) for name in names)
        for ago in (0.5, 1.5)
    )
    return rows.sort("place").with_columns(until[name] - since[name] for name in names).drop("place")
