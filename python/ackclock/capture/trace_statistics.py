"""Trace-study statistics of R. Braud (*Modelling TCP over asymmetric links*, thesis, 2016, section 7.2).

Directions are apart: what clients send (with the SYNs) and what servers send (with the SYN/ACKs). All is of connections
whose SYN or SYN/ACK is in the trace. A SYN retransmission has the 5-tuple and the initial sequence number of the one
before. The thesis' rules on whom to leave out:

- *45 s*: connections whose mean retransmission time is longer than 3 + 6 + 12 + 24 s;
- *floods*: addresses with 1000 connections or more that carried no data, and 1000 times as many as carried some, with
  all their connections.

Ours: 95 % intervals are of ratios over connections (packets of one connection are not independent), and Student's for
means. The first SYN/ACK is taken to have come with the first SYN: a result gives when it was sent again, not when
first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import polars as pl

from ackclock.errors import InputError
from ackclock.input import arguments
from ackclock.input.arguments import checked, optional
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.summary import NORMAL_QUANTILE, summarise
from ackclock.metrics.view import runs

#: Time after which the last of four SYNs is given up: 3 + 6 + 12 + 24 s.
LONGEST_S = 45.0

#: A flood: so many connections without data, and so many times those with.
FLOOD = 1000

#: Direction of data → what opens a connection that way, as an event and as a count.
OPENINGS = {
    "client": ("syn_retransmission", "syn_retransmissions"),
    "server": ("synack_retransmission", "synack_retransmissions"),
}

#: Key of a row of `_connections`.
ROW = ["run", "connection", "sender"]

SCHEMA = {"sender": pl.String, "what": pl.String, "value": pl.Float64, "ci95_low": pl.Float64, "ci95_high": pl.Float64}
SCHEMA |= {"n": pl.Int64}


@checked(
    data=arguments.RECORDED,
    flood=arguments.integer(1, 2**31),
    link_bps=optional(arguments.number(1.0, expected="a rate in bit/s")),
)
def trace(data: Recorded, flood: int = FLOOD, *, link_bps: float | None = None) -> pl.DataFrame:
    """Return the retransmissions of a captured result as in Braud 2016, for each direction, with 95 % intervals.

    A row for each `sender` (client or server) and each of: `retransmission`, the share of packets that are data, SYNs
    or SYN/ACKs sent again;
    `syn_share`, the share of those that were SYN or SYN/ACK; `syn_packets` and `syn_connections`, the share of SYNs (or
    SYN/ACKs) that were sent again, and of connections that sent one again; `retransmission_time_s`, from one
    transmission of the same bytes to the next, the mean over the connections that had any, with their SYNs
    (`…_with_syn_loss`, `…_without_syn_loss`: of those that lost a SYN and those that did not). `n` connections each;
    null where nothing is known: times need a capture that was read with its segments.

    `rate_bps` is that of all IP packets of the direction over the time captured, also of connections without a SYN,
    and `utilisation` that over `link_bps`, if it is given: the rate of the link.

    `flood`: what makes an address that of a flood. Raises `InputError` for a result that is no capture's.
    """
    check_captured(data)
    rows = _connections(data)
    rows = rows.filter(~pl.col("connection").is_in(floods(rows, flood).implode()))
    rows = rows.filter((pl.col("time_s") <= LONGEST_S).fill_null(value=True))
    rates = _rates(data)
    result = [
        row
        for sender in OPENINGS
        for row in (
            *_of(sender, rows.filter(pl.col("sender") == sender)),
            (sender, "rate_bps", rates.get(sender), None, None, len(rates)),
            (sender, "utilisation", _over(rates.get(sender), link_bps), None, None, len(rates)),
        )
    ]
    return pl.DataFrame(result, schema=SCHEMA, orient="row")


def _rates(data: Recorded) -> dict[str, float]:
    """Return each direction's mean rate of IP packets over the time captured, in bit/s; none of no time."""
    totals = dict.fromkeys(OPENINGS, 0.0)
    for view in runs(data):
        counts = data.scan("flows").select("run", "flow", "sent_bytes")
        rows = data.scan("captured").select("run", "flow", "connection", "sender", "received_bytes")
        result = rows.filter(pl.col("run") == view.run).join(counts, on=["run", "flow"]).collect()
        for sender, other in zip(OPENINGS, reversed(OPENINGS), strict=True):
            own, back = (result.filter(pl.col("sender").cast(pl.String) == end) for end in (sender, other))
            alone = back.join(own, on="connection", how="anti")  # carries no data this way, and has no row
            totals[sender] += float(own["sent_bytes"].sum()) + float(alone["received_bytes"].sum())
    whole_s = sum(view.run_end_s for view in runs(data))
    return {sender: 8 * total / whole_s for sender, total in totals.items()} if whole_s > 0 else {}


def _over(rate_bps: float | None, link_bps: float | None) -> float | None:
    return None if rate_bps is None or link_bps is None else rate_bps / link_bps


def check_captured(data: Recorded) -> None:
    """Raise `InputError` unless the result is a capture's."""
    if "capture" not in data.manifest:
        raise InputError("found a run's result; expected a captured one, which ackclock capture wrote")


def floods(rows: pl.DataFrame, minimum: int = FLOOD) -> pl.Series:
    """Return the numbers of the connections of addresses that only flood."""
    ends = rows.select("connection", "client", "server", "empty").unique("connection")
    both = pl.concat([ends.select("connection", "empty", address=_address(end)) for end in ("client", "server")])
    counts = both.group_by("address").agg(pl.col("empty").sum(), with_data=(~pl.col("empty")).sum())
    valid = counts.filter(pl.col("empty") >= minimum, pl.col("empty") >= minimum * pl.col("with_data"))
    return both.filter(pl.col("address").is_in(valid["address"].implode()))["connection"].unique()


def _address(end: str) -> pl.Expr:
    return pl.col(end).str.replace(r":\d+$", "")


def _connections(data: Recorded) -> pl.DataFrame:
    """Return a row for each direction of each connection opened in the trace: its packets and retransmissions."""
    captured = data.scan("captured").filter("opened").collect()
    counts = data.scan("flows").select(
        "run", "flow", "sent_packets", "retransmissions", "syn_retransmissions", "start_s"
    )
    rows = captured.join(counts.collect(), on=["run", "flow"]).with_columns(pl.col("sender").cast(pl.String))
    connection = rows.group_by("run", "connection").agg(
        empty=(pl.col("payload_bytes").fill_null(0).sum() == 0) & pl.col("lost").is_not_null().all(),
        start=pl.col("start_s").min(),
        **{name: pl.col(name).max() for _, name in OPENINGS.values()},
        client=pl.col("client").first(),
        server=pl.col("server").first(),
    )
    both = pl.concat([connection.with_columns(sender=pl.lit(sender)) for sender in OPENINGS])
    own = rows.select("run", "connection", "sender", "flow", "retransmissions", own="sent_packets")
    other = pl.when(pl.col("sender") == "client").then(pl.lit("server")).otherwise(pl.lit("client"))
    heard = rows.select("run", "connection", "received_packets", sender=other)
    both = both.join(own, on=ROW, how="left")
    both = both.join(heard, on=ROW, how="left")
    again = pl.when(pl.col("sender") == "client").then("syn_retransmissions").otherwise("synack_retransmissions")
    both = both.with_columns(
        packets=pl.coalesce("own", "received_packets").fill_null(0),
        again=pl.when(pl.col("flow").is_null()).then(0).otherwise("retransmissions"),  # no row: no data
        opening=again,
    )
    return both.join(_times(data, both), on=ROW, how="left").sort(ROW)  # a sum's last digit is its order's


def _times(data: Recorded, both: pl.DataFrame) -> pl.DataFrame:
    """Return the mean time from one transmission of the same bytes to the next, of directions with retransmissions."""
    openings = [kind for kind, _ in OPENINGS.values()]
    events = data.scan("events").filter(pl.col("kind").cast(pl.String).is_in(openings)).collect()
    senders = pl.col("kind").cast(pl.String).replace_strict({kind: end for end, (kind, _) in OPENINGS.items()})
    events = events.select("run", "time_s", connection=pl.col("flow") // 2, sender=senders)
    first = both.select(*ROW, time_s="start").filter(pl.col("time_s").is_not_null())
    copies = pl.concat([first, events.select(first.columns)]).with_columns(offset=pl.lit(-1, pl.Int64))
    segments = (
        data.scan("segments")
        .filter("seen")
        .select("run", "flow", "time_s", offset=pl.col("offset_bytes").cast(pl.Int64))
    )
    sent = segments.collect().join(both.select("run", "flow", "connection", "sender"), on=["run", "flow"])
    copies = pl.concat([copies, sent.select(copies.columns)]).sort("run", "connection", "sender", "offset", "time_s")
    gaps = copies.with_columns(gap=pl.col("time_s").diff().over("run", "connection", "sender", "offset")).drop_nulls(
        "gap"
    )
    return gaps.group_by("run", "connection", "sender").agg(time_s=pl.col("gap").mean())


def _of(sender: str, rows: pl.DataFrame) -> Iterable[tuple[object, ...]]:
    packets, opening = rows["packets"], rows["opening"]
    again = rows["again"] + opening
    yield sender, "retransmission", *_ratio(again, packets)
    yield sender, "syn_share", *_ratio(opening, again)
    yield sender, "syn_packets", *_ratio(opening, opening + 1)
    yield sender, "syn_connections", *_ratio((opening > 0).cast(pl.Int64), pl.repeat(1, rows.height, eager=True))
    lost = pl.col("opening") > 0
    for what, chosen in (("", rows), ("_with_syn_loss", rows.filter(lost)), ("_without_syn_loss", rows.filter(~lost))):
        times_s = chosen["time_s"].drop_nulls()
        result = summarise(times_s.to_list(), minimum=0.0)
        yield sender, f"retransmission_time_s{what}", result.mean, result.ci95_low, result.ci95_high, times_s.len()


def _ratio(part: pl.Series, whole: pl.Series) -> tuple[float | None, float | None, float | None, int]:
    """Return a ratio of sums over connections, with its 95 % interval (the ratio estimate of cluster samples).

    Connections of which the part or the whole is unknown are left out.
    """
    is_known = part.is_not_null() & whole.is_not_null()
    part, whole = part.filter(is_known), whole.filter(is_known)
    total, count = float(whole.sum()), int((whole > 0).sum())
    if not total:
        return None, None, None, 0
    value = float(part.sum()) / total
    if count < 2:
        return value, None, None, count
    errors = (part - value * whole).cast(pl.Float64)
    half = NORMAL_QUANTILE * math.sqrt(float((errors**2).sum()) * count / (count - 1)) / total
    return value, max(0.0, value - half), min(1.0, value + half), count


#: Fates of segments that did not reach their receivers.
LOST = ("lost", "lost_upstream")

LOSS_SCHEMA = {
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
    missed = segments.filter(fate == "not_captured").group_by("run").agg(until_s=pl.col("time_s").min())
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
    return result.select(pl.col(name).cast(dtype) for name, dtype in LOSS_SCHEMA.items()).collect()
