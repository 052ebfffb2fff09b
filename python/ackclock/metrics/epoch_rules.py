"""Rules that assign each loss to a congestion epoch, by name.

- `gap`: a loss belongs to the epoch of the one before it if it follows that within one RTT.
- `first`: it belongs to the epoch if it follows its *first* loss within one RTT (RFC 5348 section 5.2, of a flow).
- `per RTT`: the time is cut into RTTs, from the first loss on; an epoch is one with losses.

The RTT is that of the moment, for `per RTT` its mean over the losses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from ackclock.metrics.rows import Array

#: The epoch of each loss, by ascending times and the RTTs then.
Rule = Callable[[Array, Array], npt.NDArray[np.int64]]


def _by_gap(times_s: Array, rtts_s: Array) -> npt.NDArray[np.int64]:
    return np.asarray(np.cumsum(np.diff(times_s, prepend=-np.inf) >= rtts_s) - 1, dtype=np.int64)


def _by_first(times_s: Array, rtts_s: Array) -> npt.NDArray[np.int64]:
    numbers, number, until_s = np.zeros(times_s.size, dtype=np.int64), -1, -np.inf
    for place, (time_s, rtt_s) in enumerate(zip(times_s, rtts_s, strict=True)):
        if time_s >= until_s:
            number, until_s = number + 1, time_s + rtt_s
        numbers[place] = number
    return numbers


def _per_rtt(times_s: Array, rtts_s: Array) -> npt.NDArray[np.int64]:
    if not times_s.size:
        return np.empty(0, dtype=np.int64)
    slots = np.floor((times_s - times_s[0]) / max(float(rtts_s.mean()), 1e-9))
    return np.asarray(np.unique(slots, return_inverse=True)[1], dtype=np.int64)


#: Every rule by its name.
RULES: Mapping[str, Rule] = {"gap": _by_gap, "first": _by_first, "per RTT": _per_rtt}
