"""Times of which some are only known to be longer: the Kaplan–Meier estimate (Kaplan and Meier 1958).

A transfer that is under way when the run ends has taken at least as long as it was watched. To leave it out makes the
mean too small, for it is the long ones that do not end: Braud 2016 section 7.4.1 calls those that do the lucky ones.
The estimate uses each transfer for as long as it was watched. It supposes that being cut off says nothing about how
much longer it would have taken, which the end of a run does not.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ackclock.metrics.view import Array


def kaplan_meier(times_s: Array, ended: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
    """The times (ascending) at which something ended, and the estimated share that lasts longer than each.

    `times_s` is how long each was watched, `ended` whether it ended then. S(t) = Π (1 − d_i / n_i) over t_i ≤ t, with
    d_i that ended at t_i out of n_i still watched just before.
    """
    at_s, ends = np.unique(times_s[ended], return_counts=True)
    watched = times_s.size - np.searchsorted(np.sort(times_s), at_s, side="left")
    return at_s, np.asarray(np.cumprod(1 - ends / watched), dtype=np.float64)


def restricted_mean(times_s: Array, ended: npt.NDArray[np.bool_]) -> float | None:
    """Area under the estimate up to the longest time watched: the mean of min(T, that time); None without values."""
    if not times_s.size:
        return None
    at_s, lasting = kaplan_meier(times_s, ended)
    edges_s = np.concatenate([[0.0], at_s, [times_s.max()]])
    return float(np.diff(edges_s) @ np.append(1.0, lasting))


def median(times_s: Array, ended: npt.NDArray[np.bool_]) -> float | None:
    """The first time that no more than half outlast; None if more than half outlast all times watched."""
    at_s, lasting = kaplan_meier(times_s, ended)
    found = np.flatnonzero(lasting <= 0.5 + 1e-12)
    return float(at_s[found[0]]) if found.size else None
