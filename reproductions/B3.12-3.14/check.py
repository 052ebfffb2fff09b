"""The rule of B3.12–3.14: is CUBIC fairer than New Reno, and at what cost?"""

from collections.abc import Mapping
from math import inf

import numpy as np

from ackclock.gallery import Measured, Row, Values, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView
from ackclock.reproductions.measures import mean_windows, window_quantile

NETWORKS = ("FTTH", "intra-DC")


def spread(view: RunView) -> float | None:
    """The 95th less the 5th percentile of all windows at all instants, over their mean."""
    low, high = window_quantile(0.05)(view), window_quantile(0.95)(view)
    mean = view.measured_samples["cwnd"].mean()
    return (high - low) / mean if low is not None and high is not None and isinstance(mean, float) else None


def cov_mean(view: RunView) -> float:
    """Mean over time of the coefficient of variation of the flows' windows."""
    return float(covs(view).mean())


def cov_span(view: RunView) -> float:
    """Range over time of the coefficient of variation: its 95th less its 5th percentile."""
    return float(np.quantile(covs(view), 0.95) - np.quantile(covs(view), 0.05))


def covs(view: RunView) -> np.ndarray:
    """The coefficient of variation of the flows' windows at each instant."""
    found = mean_windows(view)
    return np.asarray(found["sd"].to_numpy() / found["cwnd"].to_numpy())


ENGINES = ("meanfield", "packet")
MEASURES = {"spread": spread, "CoV": cov_mean, "CoV span": cov_span, "utilisation": "utilisation"}

#: “Smaller”, as seen in a figure: by a tenth at least; not larger.
SMALLER, NOT_LARGER = (-inf, 0.9), (-inf, 1.0)

#: “Not achieved at the expense of a lower link utilization”: not lower by more than 0.1 points; by more than 1 it is.
NOT_LOWER, A_LITTLE_LOWER = (-0.001, inf), (-0.01, inf)


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """CUBIC over New Reno, by claim and network."""
    rows = []
    for claim in ("spread", "CoV", "CoV span"):
        for network in NETWORKS:
            cubic, reno = (measured[f"{network} {name}"][claim] for name in ("CUBIC", "New Reno"))
            rows.append(Row(claim, ratio(cubic, reno), SMALLER, NOT_LARGER, network))
    for network in NETWORKS:
        cubic, reno = (measured[f"{network} {name}"]["utilisation"] for name in ("CUBIC", "New Reno"))
        rows.append(Row("utilisation", _less(cubic, reno), NOT_LOWER, A_LITTLE_LOWER, network))
    return rows


def _less(values: Values, others: Values) -> Values:
    pairs = zip(values, others, strict=True)
    return tuple(None if one is None or other is None else one - other for one, other in pairs)
