"""The rule of hock2017-bbr: delay, fairness and losses of several BBR flows."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView, value

ENGINES = ("packet", "linux")

#: The claims are orders: the bands have no width of their own.
MORE, ANY = (1.0, inf), (0.0, inf)
HALF = (0.5, 1.0)


def first_half(view: RunView) -> float | None:
    """The goodput of the first half of the flows over all goodput."""
    rates = value(view, "goodput_flow_bps")
    return sum(rates[: len(rates) // 2]) / sum(rates) if isinstance(rates, list) and sum(rates) else None


MEASURES = {"delay": "queue_delay_mean_s", "losses": "loss_rate", "share": first_half}


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs one case."""
    return engine != "linux" or case == "2 BBR, 2 CUBIC 0.8 BDP"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    mixed, cubic = measured["2 BBR, 2 CUBIC 0.8 BDP"], measured["4 CUBIC 0.8 BDP"]
    return [
        Row("delay", ratio(measured["6 BBR 8 BDP"]["delay"], measured["1 BBR 8 BDP"]["delay"]), MORE, ANY),
        Row("unfair", mixed["share"], HALF, ANY),
        Row("losses", ratio(mixed["losses"], cubic["losses"]), MORE, ANY),
    ]
