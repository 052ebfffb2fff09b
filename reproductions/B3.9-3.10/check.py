"""The rule of B3.9–3.10: the mean field beside simulators with 10 flows, where CUBIC is in cubic mode."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, Values, ratio
from ackclock.gallery.entry import Published
from ackclock.reproductions.measures import window_fall

ENGINES = ("meanfield", "packet", "ns2")
MODEL, SIMULATORS = "meanfield", ("packet", "ns2")
MEASURES = {
    "period": "cwnd_period_s",
    "window": "cwnd_mean",
    "fall": window_fall,
    "hit": "synchronisation",
    "utilisation": "utilisation",
}

#: The model as the thesis runs it, and the simulator's case.
THESIS, FULL = "scaled down", "full scale"

#: “Tends to over-estimate the average window”: by 1 % at least; not below the simulator's.
MORE, NOT_LESS = (1.01, inf), (0.99, inf)

#: “Frequency of oscillations that is higher with our model”: periods shorter by a tenth at least; not longer.
SHORTER, NOT_LONGER = (-inf, 0.9), (-inf, 1.0)

#: “Almost all connections experience loss simultaneously”: 90 % of the flows and more; half of them at least.
ALMOST_ALL, MOST = (0.9, 1.0), (0.5, 1.0)

#: The total window then falls by the factor 1 − β, to 0.8: 0.17 to 0.23 given up; 0.1 to 0.3 is of its kind.
BY_BETA, ABOUT_BETA = (0.17, 0.23), (0.1, 0.3)

#: “Only a fraction of the sources experience losses”: up to 70 %; not 90 % and more, which are almost all.
A_FRACTION, NOT_ALL = (0.0, 0.7), (0.0, 0.9)

#: “The utilization of the link remain close to the maximum”: 95 %; 90 % would be near.
FULL_LINK, NEARLY_FULL = (0.95, 1.0), (0.9, 1.0)


def runs(engine: str, case: str) -> bool:
    """The simulators need no scaling."""
    return engine == MODEL or case == FULL


def is_quick(engine: str, case: str) -> bool:
    """A quick run does without ns-2."""
    del case
    return engine != "ns2"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Return the rows of the simulator by itself, and of the model by itself."""
    if THESIS not in measured:
        found = measured[FULL]
        return [
            Row("together", found["hit"], ALMOST_ALL, MOST),
            Row("fall", found["fall"], BY_BETA, ABOUT_BETA),
            Row("utilisation", found["utilisation"], FULL_LINK, NEARLY_FULL),
        ]
    return [Row("fraction", measured[case]["hit"], A_FRACTION, NOT_ALL, case, case != THESIS) for case in measured]


def compare(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> dict[str, list[Row]]:
    """Model over each simulator; at full scale and with ten particles as asides."""
    if MODEL not in measured:
        return {}
    there = [engine for engine in SIMULATORS if engine in measured]
    return {f"{MODEL}, {engine}": _rows(measured[MODEL], measured[engine][FULL]) for engine in there}


def _rows(model: Measured, simulated: Mapping[str, Values]) -> list[Row]:
    claims = (("window", MORE, NOT_LESS), ("period", SHORTER, NOT_LONGER))
    return [
        Row(claim, ratio(model[case][claim], simulated[claim]), agrees, differs, case, case != THESIS)
        for claim, agrees, differs in claims
        for case in (THESIS, *(case for case in model if case != THESIS))
    ]
