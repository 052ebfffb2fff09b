"""The rule of B3.5–3.8: the mean field beside a simulator with 10 flows on FTTH lines and in a data centre."""

from collections.abc import Mapping

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.reproductions.measures import queue_swing, window_quantile, window_swing

ENGINES = ("meanfield", "packet")
MEASURES = {
    "period": "cwnd_period_s",
    "window": "cwnd_mean",
    "window swing": window_swing,
    "queue": "queue_mean_p",
    "queue swing": queue_swing,
    "p10": window_quantile(0.1),
    "p50": window_quantile(0.5),
    "p90": window_quantile(0.9),
}

#: Linux looks at CUBIC's curve each 1/32 s at least; what it does without is an aside.
ASIDE = "intra-DC, no ticks"

#: “A very good temporal match … in the frequency of oscillations”: periods within 20 %; up to a half they are alike.
SAME_PERIOD, ALIKE_PERIOD = near(1.0, 0.2), near(1.0, 0.5)

#: Curves of mean windows that lie on each other: within 5 %; up to 15 % they are alike.
SAME_WINDOW, ALIKE_WINDOW = near(1.0, 0.05), near(1.0, 0.15)

#: “A very good … match both in terms of the variation of amplitudes”: within 30 %; up to a factor of 2 they are alike.
SAME_SWING, ALIKE_SWING = near(1.0, 0.3), (0.5, 2.0)

#: Queues: within 15 %; up to 30 % they are alike.
SAME_QUEUE, ALIKE_QUEUE = near(1.0, 0.15), near(1.0, 0.3)

#: “Confirmed by the distributions of window sizes”: quantiles within 10 %; up to 25 % they are alike.
SAME_QUANTILE, ALIKE_QUANTILE = near(1.0, 0.1), near(1.0, 0.25)

#: Claim, measure, and its bands; all as the model's value over the simulator's.
CLAIMS = (
    ("period", "period", SAME_PERIOD, ALIKE_PERIOD),
    ("window", "window", SAME_WINDOW, ALIKE_WINDOW),
    ("amplitudes", "window swing", SAME_SWING, ALIKE_SWING),
    ("amplitudes-queue", "queue swing", SAME_SWING, ALIKE_SWING),
    ("queue", "queue", SAME_QUEUE, ALIKE_QUEUE),
    ("distribution", "p10", SAME_QUANTILE, ALIKE_QUANTILE),
    ("distribution", "p50", SAME_QUANTILE, ALIKE_QUANTILE),
    ("distribution", "p90", SAME_QUANTILE, ALIKE_QUANTILE),
)


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """The thesis sets the two beside each other and says nothing of one alone."""
    return []


def compare(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> list[Row]:
    """Model over simulator, by claim and network; without CUBIC's ticks as asides."""
    model, packet = measured["meanfield"], measured["packet"]
    return [
        Row(claim, ratio(model[case][what], packet[case][what]), same, alike, _at(case, claim, what), case == ASIDE)
        for claim, what, same, alike in CLAIMS
        for case in packet
    ]


def _at(case: str, claim: str, what: str) -> str:
    return f"{case}, {what[1:]} %" if claim == "distribution" else case
