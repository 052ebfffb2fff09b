"""The rule of G.resp: the average window over the loss probability, beside the published response functions."""

from collections.abc import Mapping
from math import log

from ackclock import theory
from ackclock.gallery import Measured, Row, Values, near, ratio
from ackclock.gallery.entry import Published

ENGINES = ("theory", "packet")
MEASURES = {"window": "cwnd_mean"}

#: On the curve, which goes over decades: within a fifth; within a factor of two it is of its kind.
ON_IT, NEAR_IT = (1 / 1.2, 1.2), (0.5, 2.0)

#: A slope of two or three digits: within a twentieth; within a fifth it is of its kind.
SLOPE, ITS_KIND = 0.05, 0.2

VARIANTS = ("reno", "bic", "highspeed", "htcp", "scalable")
LOSSES = {"1e-3": 1e-3, "1e-4": 1e-4, "1e-5": 1e-5}
RTT_S = 0.1


def curve(variant: str, p: float) -> float:
    """Guillier's, and RFC 9438's for CUBIC, which she has not."""
    return theory.cubic_window(p, RTT_S) if variant == "cubic" else theory.response_window(variant, p)


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Each window over its curve, then the slopes."""
    rows = [
        Row(variant, _over(_window(measured, variant, at), curve(variant, p)), ON_IT, NEAR_IT, f"p = {at}", aside)
        for variant, aside in (*((variant, False) for variant in VARIANTS), ("cubic", True))
        for at, p in LOSSES.items()
    ]
    return rows + [_slope(measured, variant, published[f"d-{variant}"].value or 0.0) for variant in VARIANTS]


def _slope(measured: Measured, variant: str, expected: float) -> Row:
    low, high = (_window(measured, variant, at) for at in ("1e-3", "1e-5"))
    slopes = tuple(None if each is None else log(each) / log(100) for each in ratio(high, low))
    return Row(f"d-{variant}", slopes, near(expected, SLOPE), near(expected, ITS_KIND))


def compare(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> list[Row]:
    """The packet engine over the theory engine; asides, as each engine has its own rows above."""
    formula, packet = (measured[engine] for engine in ENGINES)
    return [
        Row("beside", ratio(packet[case]["window"], formula[case]["window"]), ON_IT, NEAR_IT, case, aside=True)
        for case in formula
    ]


def _window(measured: Measured, variant: str, at: str) -> Values:
    return measured[f"{variant} {at}"]["window"]


def _over(values: Values, expected: float) -> Values:
    return tuple(None if value is None else value / expected for value in values)
