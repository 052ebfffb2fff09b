"""The rule of L5.9–5.10: end-to-end delay in Inventec's data centre, single path, ECMP with TCP, ECMP with ABCC."""

from collections.abc import Mapping
from math import inf

import numpy as np
import polars as pl

from ackclock.gallery import Measured, Row, Values, near, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView, delay
from ackclock.reproductions.measures import transfer_loss

ENGINES = ("packet",)


#: Losses of another load: within a half; within a factor of three they are of its kind. They decide about load and α.
SAME_LOSS, ALIKE_LOSS = 0.5, 3.0

#: “Larger”: by a tenth at least; within a tenth they are the same.
LARGER, THE_SAME = (1.1, inf), (1 / 1.1, inf)

#: “More stable”: by a tenth at least; within a tenth they are the same.
STABLER, NOT_LESS = (0.0, 0.9), (0.0, 1.1)

#: “Almost the same”: within a tenth; within a third it is of its kind.
SAME, ALIKE = 0.1, 1 / 3


def variation(view: RunView) -> float | None:
    """Standard deviation over time of the mean delay of an interval's packets, as a share of its mean."""
    weighed = pl.col("packets") * pl.col("delay_mean_s")
    means = delay.one_way_series(view).group_by("time_s").agg(weighed.sum() / pl.col("packets").sum())
    delays_s = means.sort("time_s")["packets"].to_numpy()  # a sum's last digit is its order's
    return float(np.std(delays_s) / np.mean(delays_s)) if delays_s.size else None


MEASURES = {"delay": "one_way_delay_mean_s", "loss": transfer_loss, "variation": variation}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    losses = (("loss", "single path"), ("loss-abcc", "ECMP, ABCC"))
    single, tcp, abcc = (measured[case] for case in ("single path", "ECMP, TCP", "ECMP, ABCC"))
    return [
        *(_loss(published[claim], measured[case]["loss"]) for claim, case in losses),
        Row("single", ratio(single["delay"], tcp["delay"]), LARGER, THE_SAME),
        Row("same", ratio(abcc["delay"], tcp["delay"]), near(1.0, SAME), near(1.0, ALIKE)),
        Row("stable", ratio(abcc["variation"], tcp["variation"]), STABLER, NOT_LESS),
    ]


def _loss(claim: Published, found: Values) -> Row:
    value = claim.value or 0.0
    return Row(claim.claim, found, near(value, SAME_LOSS), (value / ALIKE_LOSS, value * ALIKE_LOSS))
