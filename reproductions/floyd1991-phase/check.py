"""The rule of floyd1991-phase: how far does a millisecond of round trip move two senders' shares?"""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, Values
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView, value

ENGINES = ("packet", "ns2")
RTTS = ("230 ms", "233 ms", "236 ms", "239 ms", "242 ms")

#: The claims are orders: the bands have no width of their own.
ANY = (0.0, inf)


def second_share(view: RunView) -> float | None:
    """The goodput of the second sender over that of both."""
    rates = value(view, "goodput_flow_bps")
    return rates[1] / sum(rates) if isinstance(rates, list) and sum(rates) else None


MEASURES = {"share": second_share}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """The range of the share over the round trips, seed by seed."""
    return [
        Row(claim, _range([measured[f"{rtt} {queue}"]["share"] for rtt in RTTS]), ANY, ANY)
        for claim, queue in (("range", "drop tail"), ("random", "RED"))
    ]


def _range(shares: list[Values]) -> Values:
    seeds = [[each for each in values if each is not None] for values in zip(*shares, strict=True)]
    return tuple(max(found) - min(found) if len(found) == len(RTTS) else None for found in seeds)
