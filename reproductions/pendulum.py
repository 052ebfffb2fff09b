"""The pendulum of two antiparallel flows: the backlog moves from one queue of an asymmetric line to the other.

Data of one direction and ACKs of the other share each queue. But for short times only one of both queues is occupied;
when the backlog leaves it for the other, the pendulum *tilts*: after a loss, or without one, when the window of the
other side has outgrown it (equation 4.4: w*_up / C_up = w*_down / C_down).

A queue *holds* the backlog while at least three quarters of the queueing delay of both are its own, for an RTT at
least. A tilt lies between two holds of different queues; what is shorter, such as the bounce after a loss, is part of
the tilt. A tilt is *with loss* if a sender cut its window (fast recovery or timeout) while the backlog moved or in the
two RTTs before: in the first the sender is silent, in the second its queue drains.

Source: Braud 2016, sections 4.1 and 4.2, which have no thresholds; these are ours.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import polars as pl

from ackclock.metrics import epoch
from ackclock.metrics.view import Array, RunView

#: The links of an asymmetric line, as a plan names them.
DOWN, UP = "down", "up"

#: The share of the whole queueing delay from which on a queue holds the backlog.
HOLDS = 0.75

#: Maximum time from the cut of a window to the tilt that it causes, in round-trip times.
CAUSE_RTTS = 2

#: The events at which a sender cuts its window.
CUTS = ("recovery", "timeout")


def tilts(view: RunView) -> pl.DataFrame:
    """Return one row a tilt of the measured part.

    `start_s` (the first queue held the backlog for the last time), `end_s` (the second did for the first), `to` (the
    second: "down" or "up"), `loss`. Empty on other topologies. Source: Braud 2016, section 4.2.
    """
    result = list(_tilts(_holds(view))) if view.cached(_sides) else []
    start_s, end_s = (np.array([tilt[column] for tilt in result], dtype=float) for column in (0, 1))
    cuts_s = np.sort(view.events(*CUTS)["time_s"])
    since_s = start_s - CAUSE_RTTS * epoch.rtt_at(view, start_s)
    loss = np.searchsorted(cuts_s, end_s, side="right") > np.searchsorted(cuts_s, since_s)
    to = pl.Series([tilt[2] for tilt in result], dtype=pl.String)
    return pl.DataFrame({"start_s": start_s, "end_s": end_s, "to": to, "loss": loss})


def queueing_delays_s(view: RunView) -> tuple[Array, Array]:
    """Return sample times (T) and both queues' backlog / rate (T × 2: down, up). Raises `ValueError` otherwise."""
    columns, samples = [], view.measured("queue_samples")
    for number, rate_bps in view.cached(_sides):
        chosen = samples["link"] == number
        times_s = samples["time_s"][chosen]
        columns.append(8 * samples["backlog_bytes"][chosen] / rate_bps)
    return times_s, np.column_stack(columns)


def _sides(view: RunView) -> list[tuple[int, float]]:
    """Return number and rate of the two links, down first; none on other topologies, or without a packet size."""
    links = view.rows("links").as_block
    names = list(links.items("name"))
    if sorted(names) != [DOWN, UP] or not view.plan.packet_bytes:
        return []
    return [(int(links["link"][place]), float(links["rate_bps"][place])) for place in map(names.index, (DOWN, UP))]


def _holds(view: RunView) -> list[tuple[float, float, str]]:
    """Return first and last sample at which a queue holds the backlog, and which, for holds of an RTT and more."""
    times_s, delays_s = queueing_delays_s(view)
    total_s = delays_s.sum(axis=1)
    held = (delays_s >= HOLDS * total_s[:, None]) & (total_s >= _min_backlog_s(view))[:, None]
    sides = np.where(held[:, 0], 0, 1)[held.any(axis=1)]
    at_s = times_s[held.any(axis=1)]
    first = np.flatnonzero(np.diff(sides, prepend=-1))
    last = np.flatnonzero(np.diff(sides, append=-1))
    start_s, end_s = at_s[first], at_s[last]
    lasting = end_s - start_s >= epoch.rtt_at(view, start_s)
    names = [(DOWN, UP)[side] for side in sides[first]]
    return [hold for hold, lasts in zip(zip(start_s, end_s, names, strict=True), lasting, strict=True) if lasts]


def _min_backlog_s(view: RunView) -> float:
    """Return the queueing delay of a full packet on the slower link: less is no backlog."""
    assert view.plan.packet_bytes is not None  # there are no sides without
    return 8 * float(view.plan.packet_bytes) / min(rate_bps for _, rate_bps in view.cached(_sides))


def _tilts(holds: list[tuple[float, float, str]]) -> Iterator[tuple[float, float, str]]:
    """Yield the end of a hold, the start of the next one by the other queue, and which that is."""
    for (_, end_s, before), (start_s, _, after) in itertools.pairwise(holds):
        if before != after:
            yield end_s, start_s, after


def tilts_without_loss(view: RunView) -> float | None:
    """Number of moves of an asymmetric line's backlog from one queue to the other without a loss.

    A queue holds the backlog while at least three quarters of both queues' delay are its own, for at least an RTT. A
    tilt lies between holds of different queues; it is without loss if no sender cut its window then or in the two RTTs
    before. Null on other topologies. Source: Braud 2016, section 4.2.
    """
    return _count(view, pl.col("loss").not_())


def tilts_with_loss(view: RunView) -> float | None:
    """Number of such moves after a sender has cut its window. Source: Braud 2016, section 4.2."""
    return _count(view, pl.col("loss"))


def _count(view: RunView, condition: pl.Expr) -> float | None:
    return float(view.cached(tilts).filter(condition).height) if view.cached(_sides) else None
