"""The rule of B3.11: the mean field of New Reno beside a simulator with 10 flows."""

from collections.abc import Mapping

import numpy as np

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView

#: Goodput is seen over so long, in which a link of this rate sends thousands of packets.
SMOOTH_S = 0.1


def goodput_low(view: RunView) -> float | None:
    """The lowest part of the utilisation's series: its 5th percentile, over tenths of a second."""
    return float(np.quantile(utilisations(view), 0.05))


def utilisations(view: RunView) -> np.ndarray:
    """Utilisation of the link over each tenth of a second of the measured part."""
    samples = view.queue_samples["utilisation"].to_numpy()
    per = max(1, round(SMOOTH_S / float(view.plan.record.interval_s)))
    return np.asarray(samples[: samples.size // per * per].reshape(-1, per).mean(axis=1))


ENGINES = ("meanfield", "packet")
MEASURES = {"period": "cwnd_period_s", "utilisation": "utilisation", "low": goodput_low, "window": "cwnd_mean"}

#: The case that counts, and the simulator's.
CASE = "the model"

#: “The frequency … match”: within 20 %; up to a half they are alike.
SAME_PERIOD, ALIKE_PERIOD = near(1.0, 0.2), near(1.0, 0.5)

#: “The amplitude of the utilization time series match”: its lows within 10 %; up to 25 % they are alike.
SAME_LOW, ALIKE_LOW = near(1.0, 0.1), near(1.0, 0.25)

#: Means that lie on each other: within 5 %; up to 15 % they are alike.
SAME, ALIKE = near(1.0, 0.05), near(1.0, 0.15)


def runs(engine: str, case: str) -> bool:
    """The cases are the model's."""
    return engine == "meanfield" or case == CASE


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """The thesis sets the two beside each other and says nothing of one alone."""
    return []


def compare(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> list[Row]:
    """Model over simulator; with ten particles as asides."""
    model, packet = measured["meanfield"], measured["packet"][CASE]
    claims = (
        ("period", SAME_PERIOD, ALIKE_PERIOD),
        ("low", SAME_LOW, ALIKE_LOW),
        ("utilisation", SAME, ALIKE),
        ("window", SAME, ALIKE),
    )
    return [
        Row(claim, ratio(model[case][claim], packet[claim]), same, alike, "" if case == CASE else case, case != CASE)
        for claim, same, alike in claims
        for case in model
    ]
