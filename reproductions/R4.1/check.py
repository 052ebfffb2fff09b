"""The rule of R4.1: the pendulum of two antiparallel flows, and tilts that no loss has caused."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from ackclock.gallery import Measured, Row
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView
from ackclock.metrics.view import Array
from ackclock.reproductions import pendulum

ENGINES = ("packet", "theory", "ns2")

#: “Visible at 111, 135 and 151 s”: three events in a stretch of unknown length tell a rate to a factor of 1.5 at best.
OFTEN, OF_ITS_KIND = (20 / 1.5, 20 * 1.5), (20 / 3, 20 * 3)

#: “Never the reverse”: all but one in twenty; more often than not is of its kind.
ALL, MOST = (0.95, 1.0), (0.5, 1.0)

#: “As soon as equation 4.4 holds”: within a tenth, by which the ACKs shorten the up link; within a third of its kind.
EQUAL, ALIKE = (0.9, 1.1), (0.75, 4 / 3)

#: “100 % in both directions”.
BUSY, NEARLY_BUSY = (0.98, 1.02), (0.9, 1.02)

#: “Only one for a time that matters”.
ONE, MOSTLY_ONE = (0.8, 1.0), (0.6, 1.0)


def _free(view: RunView) -> pl.DataFrame:
    return view.cached(pendulum.tilts).filter(pl.col("loss").not_())


def every_s(view: RunView) -> float | None:
    """The measured time by the number of tilts without loss."""
    count = _free(view).height
    return view.measured_s / count if count else None


def to_up(view: RunView) -> float | None:
    """The share of them that leave the down queue for the up queue."""
    free = _free(view)
    return float((free["to"] == pendulum.UP).to_numpy().mean()) if free.height else None


def balance(view: RunView) -> float | None:
    """(w*_up / C_up) / (w*_down / C_down) at their beginning; w* = what is in flight − C τ, of full packets."""
    waits_s = np.column_stack([_wait_s(view, flow) for flow in (0, 1)])
    at = np.searchsorted(view.grid.times_s, _free(view)["start_s"].to_numpy())
    return float(np.mean(waits_s[at, 1] / waits_s[at, 0])) if at.size else None


def _wait_s(view: RunView, flow: int) -> Array:
    """w* / C of a flow, whose data go over the link of its own number: the download over 0, the upload over 1."""
    link = view.plan.links[flow]
    packet_bytes = view.plan.packet_bytes
    column = [*view.grid.flows].index(flow)
    in_flight = view.grid.matrix("in_flight")[:, column]
    base_rtt_s = float(view.plan.flows[flow].base_rtt_s)
    return in_flight * float(packet_bytes * 8 / link.rate_bps) - base_rtt_s


def both_busy(view: RunView) -> float | None:
    """The mean use of each link in them, and of the two the lesser."""
    shares = [_busy(view.queue_samples.filter(pl.col("link") == link).sort("time_s"), _free(view)) for link in (0, 1)]
    return float(np.min(shares)) if _free(view).height else None


def _busy(samples: pl.DataFrame, tilts: pl.DataFrame) -> float:
    """The mean use of a link from the beginnings to the ends of the tilts."""
    times_s, used = samples["time_s"].to_numpy(), samples["utilisation"].to_numpy()
    first, last = (np.searchsorted(times_s, tilts[name].to_numpy(), "right") for name in ("start_s", "end_s"))
    return float(np.mean(np.concatenate([used[:0], *(used[b:e] for b, e in zip(first, last, strict=True))])))


def one_at_a_time(view: RunView) -> float | None:
    """The share of the samples in which one queue has most of the delay, of those with a backlog."""
    _, delays_s = pendulum.queueing_delays_s(view)
    total_s = delays_s.sum(axis=1)
    waiting = total_s > 0
    return float((delays_s.max(axis=1) >= pendulum.HOLDS * total_s)[waiting].mean()) if waiting.any() else None


MEASURES = {
    "every": every_s,
    "to-up": to_up,
    "balance": balance,
    "both-busy": both_busy,
    "one": one_at_a_time,
}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    found = measured["all"]
    return [
        Row("without-loss", found["every"], OFTEN, OF_ITS_KIND),
        Row("to-up", found["to-up"], ALL, MOST),
        Row("balance", found["balance"], EQUAL, ALIKE),
        Row("both-busy", found["both-busy"], BUSY, NEARLY_BUSY),
        Row("one-at-a-time", found["one"], ONE, MOSTLY_ONE),
    ]
