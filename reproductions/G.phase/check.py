"""The rule of G.phase: how fast each control answers when many sources join and leave at once."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from ackclock.gallery import Measured, Row
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView

#: When the others join and leave, when the last phase ends (s), and how much of a light phase is measured.
JOIN_S, LEAVE_S, STABLE_S, LIGHT_S = 60.0, 120.0, 180.0, 20.0

#: The payload share of Ethernet interfaces.
PAYLOAD = 1448 / 1538

#: “Stable”: nearly all that the sources can offer; nine tenths of it.
STABLE, NEARLY = (0.98, 1.02), (0.9, 1.1)

#: A figure for each variant: found at all within half of the phase; within the phase.
FIGURE, LATE = (0.0, 30.0), (0.0, 60.0)


def staying_bps(view: RunView) -> npt.NDArray[np.float64]:
    """Total goodput of the sources that stay, over one second, at each sample."""
    return view.grid.rates_bps(1.0)[:, view.starts_s < JOIN_S].sum(axis=1)


def offered_bps(view: RunView) -> float:
    """Return the payload rate of the sources' interfaces."""
    access_bps = min(float(link.rate_bps) for link in view.plan.links)
    return int((view.starts_s < JOIN_S).sum()) * access_bps * PAYLOAD


def light(until_s: float) -> Callable[[RunView], float]:
    """A measure: their goodput in the `LIGHT_S` before an instant, of what their interfaces carry."""

    def share(view: RunView) -> float:
        chosen = (view.grid.times_s > until_s - LIGHT_S) & (view.grid.times_s <= until_s)
        return float(staying_bps(view)[chosen].mean()) / offered_bps(view)

    return share


def half_way(since_s: float, *, back: bool) -> Callable[[RunView], float | None]:
    """A measure: how long after an instant their goodput is half-way between all they offer and an equal share."""

    def time_s(view: RunView) -> float | None:
        staying = view.starts_s < JOIN_S
        equal_bps = view.plan.links[view.plan.bottleneck].rate_bps * PAYLOAD * float(staying.mean())
        half_bps = (offered_bps(view) + equal_bps) / 2
        rates, after = staying_bps(view), view.grid.times_s > since_s
        there = after & ((rates >= half_bps) if back else (rates <= half_bps))
        return float(view.grid.times_s[there][0]) - since_s if there.any() else None

    return time_s


ENGINES = ("packet",)
MEASURES = {
    "light": light(JOIN_S),
    "release": half_way(JOIN_S, back=False),
    "regain": half_way(LEAVE_S, back=True),
    "stable": light(STABLE_S),
}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Each claim for each control."""
    bands = {"light": (STABLE, NEARLY), "release": (FIGURE, LATE), "regain": (FIGURE, LATE), "stable": (STABLE, NEARLY)}
    return [Row(claim, found[claim], *bands[claim], at) for claim in published for at, found in measured.items()]
