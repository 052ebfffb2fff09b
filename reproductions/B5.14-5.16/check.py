"""The rule of B5.14–5.16: CUBIC's curve around its plateau, and how an implementation follows it."""

from collections.abc import Callable, Mapping
from itertools import islice

import numpy as np
import polars as pl

from ackclock import theory
from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView

ENGINES = ("theory", "packet", "linux")

#: Printed to 0.05 s, cut.
PRINTED_S, ROUGHLY = 0.05, 0.25

#: “BDP + BS + 1 from any w_max”: exactly; up to five packets more it is of its kind.
ONE_MORE, A_FEW_MORE = (81.0, 81.0), (80.0, 86.0)

#: “Around 0.8 s”; “shorter to 1.35 s”.
AROUND, SHORTER = 0.25, (0.0, 1.35)
LESS, NOT_MORE = (0.0, 0.9), (0.0, 1.0)

#: Capacity of path and buffer, the thesis's RTT, and the starts and length of the closed form's iteration.
CAPACITY_P, RTT_S, STARTS, LOSSES = 80, 1.0, range(40, 161), 100

#: When the link becomes faster, in seconds.
RAISED_S = 200.0


def runs(engine: str, case: str) -> bool:
    """The closed form has the curve, the simulation and the kernel the link."""
    return (engine == "theory") == (case == "curve")


def is_quick(engine: str, case: str) -> bool:
    """A quick run has no guests."""
    del case
    return engine != "linux"


def after(packets: int) -> Callable[[RunView], float | None]:
    """Time from w_max until so many packets more."""
    return lambda view: theory.time_after_plateau(packets, c=_c(view)) if view.given else _followed(view, packets)


def converged(view: RunView) -> float | None:
    """Return the limit of w_max: by the closed form (the farthest over the starts), else over the epochs."""
    if not view.given:
        return float(np.mean([w_max for at_s, w_max in _losses(view) if view.warmup_s < at_s < RAISED_S]))
    beta = view.plan.groups[0].congestion.parameters["beta"]
    last = [
        next(islice(theory.cubic_convergence(w_max, CAPACITY_P, RTT_S, c=_c(view), beta=beta), LOSSES, None))
        for w_max in STARTS
    ]
    return max(last, key=lambda w_max: abs(w_max - CAPACITY_P - 1))


def _c(view: RunView) -> float:
    return view.plan.groups[0].congestion.parameters["c"]


def _losses(view: RunView) -> list[tuple[float, float]]:
    """When the sender heard of each loss, and its window then."""
    samples = view.flow_samples.select("time_s", "cwnd")
    heard = view.events_of("recovery").select("time_s")
    before = heard.join_asof(samples.sort("time_s").with_columns(pl.col("time_s").set_sorted()), on="time_s",
                             allow_exact_matches=False)  # fmt: skip
    return list(before.iter_rows())


def _followed(view: RunView, packets: int) -> float | None:
    """After the last loss before the link became faster: from the first window of w_max to that of so many more."""
    lost_s, w_max = [loss for loss in _losses(view) if loss[0] < RAISED_S + 1.5 * RTT_S][-1]
    samples = view.flow_samples.filter(pl.col("time_s") > lost_s + RTT_S)
    reached = [samples.filter(pl.col("cwnd") >= level)["time_s"].min() for level in (w_max, w_max + packets)]
    return None if None in reached else reached[1] - reached[0]


MEASURES = {f"after-{packets}": after(packets) for packets in (1, 2, 3, 4)} | {"converged": converged}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """The closed form's rows; those of packets on the same claims are asides, since they are not about it."""
    (case, found) = next(iter(measured.items()))
    aside = case != "curve"
    rows = [_time(published[f"after-{packets}"], found[f"after-{packets}"], aside) for packets in (1, 2, 3, 4)]
    rows.append(Row("converged", found["converged"], ONE_MORE, A_FEW_MORE, aside=aside))
    if not aside:
        return rows
    curve = tuple(theory.time_after_plateau(1.0) for _ in found["after-1"])
    return [
        *rows,
        Row("plateau", found["after-1"], near(0.8, AROUND), SHORTER),
        Row("shorter", ratio(found["after-1"], curve), LESS, NOT_MORE),
    ]


def _time(claim: Published, values, aside: bool) -> Row:
    printed_s = claim.value or 0.0
    return Row(claim.claim, values, (printed_s, printed_s + PRINTED_S), near(printed_s, ROUGHLY), aside=aside)
