"""The rule of B2.9–2.13: one flow in five set-ups, model beside simulation."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView, value
from ackclock.metrics.oscillation import cwnd_peak, cwnd_period_s, cwnd_trough

ENGINES = ("theory", "packet", "linux", "ns2")
SET_UPS = ("ADSL", "100 Mb/s", "200 Mb/s", "300 Mb/s", "400 Mb/s")
PRINTED, BY_ACKS = "as printed", "by ACKs"

#: “A very good match”, “close”, “similar”: within 10 %; up to 30 % it is of its kind.
MATCH, ALIKE = near(1.0, 0.10), near(1.0, 0.30)

#: “Sometimes faster”, “a little more time”: as long or up to 20 % longer; up to 40 % it is longer.
FASTER, MUCH_FASTER = (0.9, 1.2), (0.9, 1.4)
LITTLE_MORE, MORE = (1.0, 1.2), (0.9, 1.4)

#: In cubic mode the window grows by more than a packet in some round trip; here by far.
CUBIC, NOT_TCP = (2.0, inf), (1.05, inf)

#: In TCP mode it grows by a = 1/3 of a packet in a round trip, in the mean: less than a half; a whole one at most.
TCP, NEARLY_TCP = (0.0, 0.5), (0.0, 1.0)


def runs(engine: str, case: str) -> bool:
    """Return True for one simulation of each set-up, one run of the kernel, and one of ns-2."""
    return engine == "theory" or case.endswith(PRINTED)


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel and ns-2 run one line."""
    return engine not in ("linux", "ns2") or case.startswith("100 Mb/s")


def amplitude(view: RunView) -> float | None:
    """From the mean trough to the mean peak of the window."""
    high, low = cwnd_peak(view), cwnd_trough(view)
    return None if high is None or low is None else high - low


def mean_growth(view: RunView) -> float | None:
    """By how many packets the window grows in a round trip, in the mean from trough to peak."""
    grown, period_s, rtt_s = amplitude(view), cwnd_period_s(view), value(view, "rtt_mean_s")
    return grown * rtt_s / period_s if grown and period_s and isinstance(rtt_s, float) else None


MEASURES = {"period": "cwnd_period_s", "amplitude": amplitude, "growth": "aggressiveness", "mean growth": mean_growth}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """In which mode the two flows are of which the text says so."""
    return [
        Row("cubic", measured[f"100 Mb/s {PRINTED}"]["growth"], CUBIC, NOT_TCP),
        Row("tcp", measured[f"200 Mb/s {PRINTED}"]["mean growth"], TCP, NEARLY_TCP),
    ]


def compare(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> dict[str, list[Row]]:
    """Amplitudes and periods, model over simulation, over the kernel and over ns-2; the model by ACKs as asides."""
    if "theory" not in measured:
        return {}
    others = [engine for engine in ENGINES[1:] if engine in measured]
    return {f"theory, {engine}": _of(measured["theory"], measured[engine], published) for engine in others}


def _of(theory: Measured, others: Measured, published: Mapping[str, Published]) -> list[Row]:
    rows = [row for set_up in SET_UPS for model in (PRINTED, BY_ACKS) for row in _rows(theory, others, set_up, model)]
    return sorted(rows, key=lambda row: ([*published].index(row.claim), row.aside))


def _rows(theory: Measured, others: Measured, set_up: str, model: str) -> list[Row]:
    """None for a set-up that the other engine did not run."""
    if f"{set_up} {PRINTED}" not in others:
        return []
    one, other = theory[f"{set_up} {model}"], others[f"{set_up} {PRINTED}"]
    found = {measure: ratio(one[measure], other[measure]) for measure in ("period", "amplitude")}
    aside = model == BY_ACKS
    at = f"{set_up}, {model}" if aside else set_up
    claims = {"ADSL": ("faster", FASTER, MUCH_FASTER), "100 Mb/s": ("period", MATCH, ALIKE)}
    claims |= {"200 Mb/s": ("period", MATCH, ALIKE)}
    claim, agrees, differs = claims.get(set_up, ("slower", LITTLE_MORE, MORE))
    if aside:
        agrees, differs = MATCH, ALIKE
    return [
        Row(claim, found["period"], agrees, differs, at, aside),
        Row("amplitude", found["amplitude"], MATCH, ALIKE, at, aside),
    ]
