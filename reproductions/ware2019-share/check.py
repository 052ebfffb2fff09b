"""The rule of ware2019-share: what does one BBR flow get beside CUBIC?"""

from collections.abc import Mapping

from ackclock.gallery import Measured, Row, near
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView, value

ENGINES = ("packet", "linux")

#: The model's median error beside CUBIC (abstract); up to four times that, the share is still about the published one.
SAME, ALIKE = 0.05, 0.2


def bbr_share(view: RunView) -> float | None:
    """The goodput of the first flow over all goodput."""
    rates = value(view, "goodput_flow_bps")
    return rates[0] / sum(rates) if isinstance(rates, list) and sum(rates) else None


MEASURES = {"share": bbr_share}


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs one case."""
    return engine != "linux" or case == "1 CUBIC"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """The share by the number of CUBIC flows."""
    same, alike = (near(published["share"].value, width) for width in (SAME, ALIKE))
    return [Row("share", measured[f"{n} CUBIC"]["share"], same, alike, f"{n} CUBIC") for n in (1, 4, 16)]
