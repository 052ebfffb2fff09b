"""The rule of R5.9–5.10: response times of downloads beside a long upload, by congestion control and up queue."""

from collections.abc import Mapping

import polars as pl

from ackclock.gallery import Measured, Row, Values, near, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView

ENGINES = ("packet", "linux")

#: The upload is the first flow.
UPLOAD = 0

#: “May double”: half as much again to two and a half times; more at all, up to four times.
DOUBLED, LONGER = (1.5, 2.5), (1.05, 4.0)

#: “Low”: by a fifth at least; lower.
LOW, LOWER = (0.0, 0.8), (0.0, 1.0)

#: “The lowest”; up to a tenth more it is close.
LOWEST, CLOSE = (0.0, 1.0), (0.0, 1.1)

#: “Little impact, if any”: a tenth; a third.
LITTLE, SOME = near(1.0, 0.1), near(1.0, 0.33)

#: “20 %” lower: within ten points; lower.
BY_20, LOWER_AT_ALL = (0.7, 0.9), (0.0, 1.0)

#: The printed number of connections, with a Poisson process's chance; a quarter more or fewer is of its kind.
SAME_COUNT, ALIKE_COUNT = 0.05, 0.25


def response_s(view: RunView) -> float | None:
    """The mean over finished downloads."""
    mean = view.flows.filter(pl.col("flow") != UPLOAD)["fct_s"].mean()
    return float(mean) if isinstance(mean, (int, float)) else None


def per_1000_s(view: RunView) -> float | None:
    """Return the number of downloads that begin per 1000 s."""
    return 1000 * (view.flows.height - 1) / view.plan.duration_s


MEASURES = {"response": response_s, "connections": per_1000_s}


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs two cases."""
    return engine != "linux" or case in ("right-sized Reno up Reno down", "bloated Reno up Reno down")


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims. The printed number of connections says what λ is."""

    def time(buffer: str, up: str, down: str) -> Values:
        return measured[f"{buffer} {up} up {down} down"]["response"]

    others = [time("right-sized", up, down) for up in ("Reno", "Vegas") for down in ("Reno", "Cubic")]
    others.append(time("right-sized", "Reno", "Vegas"))
    best = tuple(min((one for one in seed if one is not None), default=None) for seed in zip(*others, strict=True))
    count = published["connections"].value or 0.0
    vegas, reno = (ratio(time("bloated", up, "Reno"), time("right-sized", up, "Reno")) for up in ("Vegas", "Reno"))
    return [
        Row(
            "connections",
            measured["right-sized Reno up Reno down"]["connections"],
            near(count, SAME_COUNT),
            near(count, ALIKE_COUNT),
        ),
        Row("doubled", reno, DOUBLED, LONGER),
        Row("vegas-up", ratio(time("bloated", "Vegas", "Reno"), time("bloated", "Reno", "Reno")), LOW, LOWER),
        Row("vegas-both", ratio(time("right-sized", "Vegas", "Vegas"), best), LOWEST, CLOSE),
        Row("vegas-buffer", vegas, LITTLE, SOME),
        Row(
            "cubic-down", ratio(time("bloated", "Reno", "Cubic"), time("bloated", "Reno", "Reno")), BY_20, LOWER_AT_ALL
        ),
    ]
