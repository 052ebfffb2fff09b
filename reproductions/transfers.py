"""Measures of short transfers on an asymmetric line, which several entries of Braud 2016 share."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from ackclock.metrics import RunView


def completion_of(*, least: int = 1, most: int) -> Callable[[RunView], float | None]:
    """A measure: the mean completion time of finished transfers of `least` to `most` full segments.

    Source: Braud 2016, figures 7-4 to 7-8 (the median size, and the four fifths that are short).
    """

    def completion(view: RunView) -> float | None:
        tcp = view.plan.groups[0].tcp
        mss = tcp.mss_bytes if tcp else None
        if mss is None:
            return None
        wanted = view.flows.filter(pl.col("size_bytes").is_between(least * mss, most * mss))
        mean = wanted["fct_s"].mean()
        return float(mean) if isinstance(mean, (int, float)) else None

    return completion


def retransmission_time(view: RunView) -> float | None:
    """Return the delay of a lost packet's retransmission (s): the mean over connections of each one's mean.

    From the drop of a segment to its next retransmission; for a SYN from its last transmission to the next. None where
    it is not known which segments they were, as in a real kernel. Source: Braud 2016, figures 7-2 to 7-8, “temps de
    retransmission”.
    """
    if not view.events_of("retransmission")["value"].drop_nulls().len() and view.events_of("drop").height:
        return None
    flow_and_time = pl.col("flow"), pl.col("time_s")
    drops = view.events_of("drop").select(*flow_and_time, "value", lost_s="time_s")
    again = view.events_of("retransmission").select(*flow_and_time, "value")
    data = again.join_asof(drops, on="time_s", by=["flow", "value"], check_sortedness=False).select(
        "flow", wait_s=pl.col("time_s") - pl.col("lost_s")
    )
    syns = (
        view.events_of("syn_retransmission")
        .select(*flow_and_time)
        .join(view.flows.select("flow", "start_s"), on="flow", maintain_order="left")
    )
    before_s = pl.col("time_s").shift().over("flow").fill_null(pl.col("start_s"))
    waits = pl.concat([data, syns.select("flow", wait_s=pl.col("time_s") - before_s)]).drop_nulls()
    means = waits.group_by("flow").agg(pl.col("wait_s").mean()).sort("flow")  # a sum's last digit is its order's
    mean = means["wait_s"].mean()
    return float(mean) if isinstance(mean, (int, float)) else None


def line_rtt(view: RunView) -> float | None:
    """The mean RTT of a packet on an asymmetric line (s): without queues, in both queues, a full packet's transmission.

    Of the shortest base RTT; a packet's mean wait in each queue is the link's. Source: Braud 2016, equation
    4.3.
    """
    waits_s, rates_bps = view.links["sojourn_mean_s"].to_numpy(), view.links["rate_bps"].to_numpy()
    if view.plan.packet_bytes is None:
        return None
    return float(view.flows["base_rtt_s"].min() + waits_s.sum() + 8 * view.plan.packet_bytes / rates_bps.max())


#: Payload of a full segment with timestamps, in bytes: of an Ethernet frame of 1500 bytes.
FULL_BYTES = 1448


def captured_completion_of(*, least: int = 1, most: int) -> Callable[[RunView], float | None]:
    """Measure completion times as `completion_of`, from a capture, which has no plan."""

    def completion(view: RunView) -> float | None:
        wanted = view.flows.filter(pl.col("size_bytes").is_between(least * FULL_BYTES, most * FULL_BYTES))
        mean = wanted["fct_s"].mean()
        return float(mean) if isinstance(mean, (int, float)) else None

    return completion
