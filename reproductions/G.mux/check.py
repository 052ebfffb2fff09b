"""The rule of G.mux: does goodput vary less where more sources share more of a link?"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView

ENGINES = ("packet",)

#: “Less”: by a tenth at least; not more than a tenth above they are the same.
LESS, NOT_MORE = (0.0, 0.9), (0.0, 1.1)


def rates_bps(view: RunView) -> npt.NDArray[np.float64]:
    """Goodput of each flow in each second of the measured part."""
    return view.grid.rates_bps(1.0)[view.grid.times_s > view.warmup_s]


def flow(view: RunView) -> float:
    """Mean over the flows of the standard deviation over time of their goodput, as a share of its mean."""
    rates = rates_bps(view)
    return float(np.mean(rates.std(axis=0) / rates.mean(axis=0)))


def total(view: RunView) -> float:
    """The same of the total."""
    rates = rates_bps(view).sum(axis=1)
    return float(rates.std() / rates.mean())


def of_total(view: RunView) -> float | None:
    """1 where it is the total's that counts."""
    return 1.0 if view.plan.name.endswith("the total") else None


MEASURES = {"flow": flow, "total": total, "together": "synchronisation", "of total": of_total}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """The variation that counts by the reading, and as asides the other one and the mechanism."""
    few, many = measured["2 sources"], measured["20 sources"]
    counts = "flow" if few["of total"][0] is None else "total"
    return [Row(claim, ratio(many[claim], few[claim]), LESS, NOT_MORE, aside=claim != counts) for claim in published]
