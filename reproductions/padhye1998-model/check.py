"""The rule of padhye1998-model: which model is nearer to a flow under random losses?"""

from collections.abc import Mapping
from math import inf

from ackclock import theory
from ackclock.gallery import Measured, Row
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Values

ENGINES = ("packet", "linux")
MEASURES = {"goodput": "goodput_bps"}
LOSSES = {"1 %": 0.01, "2 %": 0.02, "4 %": 0.04, "8 %": 0.08}

#: Round trip, timeout and payload of a segment; the window grows by what an ACK acknowledges, so b = 1.
RTT_S, RTO_S, MSS_BYTES, B = 0.1, 0.4, 1448, 1.0

#: The claim is an order: the bands have no width of their own.
ANY = (0.0, inf)


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs one case."""
    return engine != "linux" or case == "1 %"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Each model over what was measured."""
    full = {at: float(theory.pftk(p, RTT_S, MSS_BYTES, rto_s=RTO_S, b=B)) for at, p in LOSSES.items()}
    simple = {at: float(theory.mathis(p, RTT_S, MSS_BYTES, b=B)) for at, p in LOSSES.items()}
    return [
        Row(claim, _over(model[at], measured[at]["goodput"]), ANY, ANY, at)
        for claim, model in (("full", full), ("simple", simple))
        for at in LOSSES
    ]


def _over(model_bps: float, values: Values) -> Values:
    return tuple(None if not value else model_bps / value for value in values)
