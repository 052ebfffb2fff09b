"""How evenly the flows shared: RFC 5166 section 2.3.1.

The shares are the flows' goodputs while they were there: a transfer's payload in the measured part over the time in
it before the transfer was over, so that a short transfer is judged by its rate and not by its size.
"""

from __future__ import annotations

import numpy as np

from ackclock.metrics.metric import Metric
from ackclock.metrics.throughput import rates_while_there_bps
from ackclock.metrics.view import Array, RunView


def jain(view: RunView) -> float | None:
    """Jain's fairness index of the flows' goodputs: 1 when all are equal, 1/n when one has everything.

    (Σx)² / (n Σx²) over the flows that were there in the measured part, x being a flow's goodput while it was there;
    null if nothing was delivered. Source: Jain, Chiu, Hawe 1984 (DEC TR-301); RFC 5166 section 2.3.1.
    """
    rates = view.once(rates_while_there_bps)
    return None if rates is None else jain_index(rates)


def cov_goodput(view: RunView) -> float | None:
    """Coefficient of variation of the flows' goodputs while they were there: standard deviation over mean.

    The standard deviation is the population's (divided by n), so that Jain's index is 1 / (1 + cov²). Source: RFC
    5166 section 2.2.2, Guillier 2008.
    """
    rates = view.once(rates_while_there_bps)
    if rates is None or rates.sum() <= 0:
        return None
    return float(np.std(rates) / np.mean(rates))


def jain_index(shares: Array) -> float | None:
    """Jain's index of non-negative shares; None if they are all zero."""
    peak = shares.max(initial=0.0)
    if peak <= 0:
        return None
    scaled = shares / peak
    return float(scaled.sum() ** 2 / (scaled.size * (scaled**2).sum()))


METRICS = (
    Metric("jain", "1", "Jain's fairness index", jain),
    Metric("cov_goodput", "1", "Variation between flows", cov_goodput),
)
