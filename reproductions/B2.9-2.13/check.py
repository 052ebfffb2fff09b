"""The rule of B2.9–2.13: one flow in five set-ups, model beside simulation."""

from collections.abc import Mapping
from math import inf

from ackclock.metrics import RunView
from ackclock.metrics.oscillation import cwnd_high, cwnd_low
from ackclock.reproduce import Measured, Row, near, ratio
from ackclock.reproduce.entry import Published

ENGINES = ("theory", "packet", "linux")
SET_UPS = ("ADSL", "100 Mb/s", "200 Mb/s", "300 Mb/s", "400 Mb/s")
PRINTED, BY_ACKS = "as printed", "by ACKs"

#: “A very good match”, “close”, “similar”: within 10 %; up to 30 % it is of its kind.
MATCH, ALIKE = near(1.0, 0.10), near(1.0, 0.30)

#: “Sometimes faster”, “a little more time”: as long or up to 20 % longer; up to 40 % it is longer.
FASTER, MUCH_FASTER = (0.9, 1.2), (0.9, 1.4)
LITTLE_MORE, MORE = (1.0, 1.2), (0.9, 1.4)

#: TCP mode is at most one packet in a round trip (a = 1/3, in whole packets); cubic mode is steeper, here by far.
CUBIC, NOT_TCP = (2.0, inf), (1.05, inf)
TCP, NEARLY_TCP = (0.0, 1.0), (0.0, 1.5)


def runs(engine: str, case: str) -> bool:
    """There is one simulation for each set-up, and one run of the kernel."""
    return engine == "theory" or case.endswith(PRINTED)


def looks(engine: str, case: str) -> bool:
    """For a short look the kernel runs the slowest line."""
    return engine != "linux" or case.startswith("ADSL")


def amplitude(view: RunView) -> float | None:
    """From the mean trough to the mean peak of the window."""
    high, low = cwnd_high(view), cwnd_low(view)
    return None if high is None or low is None else high - low


MEASURES = {"period": "cwnd_period_s", "amplitude": amplitude, "growth": "aggressiveness"}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """In which mode the two flows are of which the text says so."""
    return [
        Row("cubic", measured[f"100 Mb/s {PRINTED}"]["growth"], CUBIC, NOT_TCP),
        Row("tcp", measured[f"200 Mb/s {PRINTED}"]["growth"], TCP, NEARLY_TCP),
    ]


def beside(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> list[Row]:
    """Amplitudes and periods, model over simulation; the model by ACKs as asides."""
    rows = [row for set_up in SET_UPS for model in (PRINTED, BY_ACKS) for row in _rows(measured, set_up, model)]
    return sorted(rows, key=lambda row: ([*published].index(row.claim), row.aside))


def _rows(measured: Mapping[str, Measured], set_up: str, model: str) -> list[Row]:
    theory, packet = measured["theory"][f"{set_up} {model}"], measured["packet"][f"{set_up} {PRINTED}"]
    found = {name: ratio(theory[name], packet[name]) for name in ("period", "amplitude")}
    aside, at = model == BY_ACKS, set_up if model == PRINTED else f"{set_up}, {model}"
    claims = {"ADSL": ("faster", FASTER, MUCH_FASTER), "100 Mb/s": ("period", MATCH, ALIKE)}
    claims |= {"200 Mb/s": ("period", MATCH, ALIKE)}
    claim, agrees, differs = claims.get(set_up, ("slower", LITTLE_MORE, MORE))
    if aside:
        agrees, differs = MATCH, ALIKE
    return [
        Row(claim, found["period"], agrees, differs, at, aside),
        Row("amplitude", found["amplitude"], MATCH, ALIKE, at, aside),
    ]
