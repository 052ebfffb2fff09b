"""The rule of B2.7: delayed ACKs in TCP mode."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Values
from ackclock.metrics import RunView
from ackclock.metrics.oscillation import cwnd_peak, cwnd_period_s, cwnd_trough

ENGINES = ("theory", "packet", "ns2")

#: With an ACK for each packet both agree: within 10 %; up to 25 % they are alike.
MATCH, ALIKE = 0.10, 0.25

#: “Different”: delayed ACKs change the ratio by more than 10 %, which is what does not agree; by more than 5 %.
DIFFERENT, A_LITTLE = (MATCH, inf), (0.05, inf)


def runs(engine: str, case: str) -> bool:
    """The model and ns-2 have one case with b = 2."""
    return engine == "packet" or case != "b=2 corrected"


def slope(view: RunView) -> float | None:
    """Packets per second from trough to peak."""
    high, low, period_s = cwnd_peak(view), cwnd_trough(view), cwnd_period_s(view)
    return None if high is None or low is None or period_s is None else (high - low) / period_s


MEASURES = {"slope": slope}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Return no rows: the sources publish neither by itself."""
    return []


def compare(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> dict[str, list[Row]]:
    """Rows of the model with each simulator."""
    if "theory" not in measured:
        return {}
    others = [engine for engine in ENGINES[1:] if engine in measured]
    return {f"theory, {engine}": _with(measured["theory"], measured[engine]) for engine in others}


def _with(theory: Measured, simulated: Measured) -> list[Row]:
    """Slopes, model over simulation."""
    slopes = {case: ratio(theory[case[:3]]["slope"], simulated[case]["slope"]) for case in simulated}
    corrected = [_change(slopes[case], slopes["b=1"]) for case in slopes if case == "b=2 corrected"]
    return [
        Row("b=1", slopes["b=1"], near(1.0, MATCH), near(1.0, ALIKE)),
        Row("b=2", _change(slopes["b=2"], slopes["b=1"]), DIFFERENT, A_LITTLE),
        *(Row("corrected", change, DIFFERENT, A_LITTLE, aside=True) for change in corrected),
    ]


def _change(delayed: Values, each: Values) -> Values:
    """By which share the ratio is another with delayed ACKs."""
    return tuple(None if value is None else abs(value - 1) for value in ratio(delayed, each))
