"""The rule of G.altman: BIC with parallel streams, beside the measurement and beside Altman's formula."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, Values, near
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView, value
from ackclock.theory import altman


def total_share(view: RunView) -> float | None:
    """Goodput of all flows as a share of the bottleneck's rate."""
    total_bps = value(view, "goodput_bps")
    return None if not isinstance(total_bps, float) else total_bps / view.plan.links[view.plan.bottleneck].rate_bps


ENGINES = ("packet", "theory")
MEASURES = {"total": total_share, "jain": "jain"}
STREAMS = (1, 2, 5, 10)

#: The payload share of an Ethernet frame: 1448 of 1538 bytes.
CARRIED = 1448 / 1538

#: The share of the window that BIC keeps at a loss: in Linux, and on the slides (1 − 1/8).
KEPT, KEPT_ON_SLIDES = 0.8, 0.875

#: A total of a testbed is the same within 3 %, less than what the second stream gains; up to 15 % it is of its kind.
SAME, ALIKE = 0.03, 0.15

#: A gain is the same within two points; any gain is of its kind.
SAME_GAIN = 0.02
GAINS = (0.0, inf)

#: All published indexes are above 0.99; above 0.95 the flows are still alike.
FAIR, ALMOST_FAIR = (0.99, 1.0), (0.95, 1.0)


def over(values: Values, expected: float) -> Values:
    """Each value as a multiple of what is expected."""
    return tuple(None if value is None else value / expected for value in values)


def gain(more: Values, one: Values) -> Values:
    """Return the gain of more streams over one, seed by seed."""
    return tuple(a / b - 1 if a is not None and b else None for a, b in zip(more, one, strict=True))


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Totals, gains, indexes and the formula, by the number of streams; of the formula itself totals and gains."""
    rows = []
    for streams in STREAMS:
        found = measured[f"{streams} stream{'s' if streams > 1 else ''}"]
        total, jain = found["total"], found["jain"]
        expected = published[f"total-{streams}"].value or 0.0
        rows.append(Row(f"total-{streams}", total, near(expected, SAME), near(expected, ALIKE)))
        if jain[0] is not None:
            rows += [
                Row(f"jain-{streams}", jain, FAIR, ALMOST_FAIR),
                _relative_to_formula("altman", total, streams, KEPT),
                _relative_to_formula("altman-paper", total, streams, KEPT_ON_SLIDES, aside=True),
            ]
        if streams > 1:
            published_gain = published[f"gain-{streams}"].value or 0.0
            same = (published_gain - SAME_GAIN, published_gain + SAME_GAIN)
            rows.append(Row(f"gain-{streams}", gain(total, measured["1 stream"]["total"]), same, GAINS))
    return sorted(rows, key=lambda row: [*published].index(row.claim))


def _relative_to_formula(claim: str, total: Values, streams: int, kept: float, *, aside: bool = False) -> Row:
    found = over(total, altman(streams, CARRIED, kept))
    return Row(claim, found, near(1.0, SAME), near(1.0, ALIKE), f"{streams} stream{'s' if streams > 1 else ''}", aside)
