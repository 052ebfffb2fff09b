"""Measures that entries share and that are no metrics of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from ackclock import curves
from ackclock.metrics import RunView, epoch

#: How long after an epoch's last drop the total window may still be on its way down, in round-trip times: one until
#: the senders hear of it, one to bring the window down in proportion to what is delivered, one in reserve.
SETTLING_RTTS = 3


def synchronised_flows(view: RunView) -> float | None:
    """Mean number of flows that lost a packet in a congestion epoch. Source: Belhareth 2014, figures 5.5 and 5.6."""
    mean = view.once(epoch.epochs)["flows_hit"].mean()
    return float(mean) if isinstance(mean, (int, float)) else None


def window_fall(view: RunView) -> float | None:
    """Mean share of the total window that is given up in a congestion epoch.

    1 − (lowest total from the last drop until `SETTLING_RTTS` after it or the next epoch) / (highest total from the
    first drop until one RTT after the last). Source: Belhareth 2014, section 5.4.1.
    """
    found = view.once(epoch.epochs)
    times_s, total = view.grid.times_s, curves.windows(view).total()
    starts_s, ends_s = found["start_s"].to_numpy(), found["end_s"].to_numpy()
    next_s = np.append(starts_s[1:], np.inf)
    rtts_s = epoch.rtt_at(view, ends_s)
    falls = []
    for start_s, end_s, after_s, rtt_s in zip(starts_s, ends_s, next_s, rtts_s, strict=True):
        peak = total[_between(times_s, start_s, min(end_s + rtt_s, after_s))]
        trough = total[_between(times_s, end_s, min(end_s + SETTLING_RTTS * rtt_s, after_s))]
        if peak.size and trough.size:
            falls.append(1 - float(trough.min()) / float(peak.max()))
    return float(np.mean(falls)) if falls else None


def _between(times_s: np.ndarray, low_s: float, high_s: float) -> slice:
    return slice(*np.searchsorted(times_s, [low_s, high_s]))


def completion_of(*, least: int = 1, most: int) -> Callable[[RunView], float | None]:
    """A measure: the mean completion time of finished transfers of `least` to `most` full segments.

    Source: Braud 2016, figures 7-4 to 7-8 (the median size, and the four fifths that are short).
    """

    def completion(view: RunView) -> float | None:
        mss = view.plan["groups"][0]["tcp"]["mss_bytes"]
        wanted = view.flows.filter(pl.col("size_bytes").is_between(least * mss, most * mss))
        mean = wanted["completion_s"].mean()
        return float(mean) if isinstance(mean, (int, float)) else None

    return completion


def retransmission_time(view: RunView) -> float | None:
    """How long a lost packet waits to be sent again (s): the mean over connections of each one's mean.

    From the drop of a segment to its next retransmission; for a SYN from its last transmission to the next. Source:
    Braud 2016, figures 7-2 to 7-8, “temps de retransmission”.
    """
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
    mean = waits.group_by("flow").agg(pl.col("wait_s").mean())["wait_s"].mean()
    return float(mean) if isinstance(mean, (int, float)) else None


def line_rtt(view: RunView) -> float | None:
    """The mean RTT of a packet on an asymmetric line (s): without queues, in both queues, a full packet's transmission.

    Of the shortest base RTT; a packet's mean wait in each queue is the link's. Source: Braud 2016, equation
    4.3.
    """
    waits_s, rates_bps = view.links["sojourn_mean_s"].to_numpy(), view.links["rate_bps"].to_numpy()
    return float(view.flows["base_rtt_s"].min() + waits_s.sum() + 8 * view.plan["packet_bytes"] / rates_bps.max())
