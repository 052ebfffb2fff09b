"""The rule of B6.22–6.24: 100 New Reno flows behind three AQMs."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published

ENGINES = ("packet", "linux")
MEASURES = {
    "delay": "queue_delay_mean_s",
    "goodput": "goodput_bps",
    "flows": "flows_per_epoch",
    "losses": "loss_rate",
}
AQMS = {"ared": "ARED", "codel": "CoDel", "pie": "PIE"}

#: “Decrease”: by half at least; by a tenth.
FALLS, LESS = (0.0, 0.5), (0.0, 0.9)

#: “Undergoes degradation”: by a hundredth at least; not more at all.
DEGRADED, NOT_MORE = (0.0, 0.99), (0.0, 1.0)

#: “Higher”: by a tenth at least; within a tenth they are the same.
HIGHER, THE_SAME = (1.1, inf), (1 / 1.1, inf)


def is_quick(engine: str, case: str) -> bool:
    """A quick run has no guests."""
    del case
    return engine == "packet"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Each claim for each AQM."""
    tail = measured["droptail"]
    bands = {
        "delay": (FALLS, LESS),
        "goodput": (DEGRADED, NOT_MORE),
        "flows": (HIGHER, THE_SAME),
        "losses": (HIGHER, THE_SAME),
    }
    return [
        Row(claim, ratio(measured[aqm][claim], tail[claim]), *bands[claim], name)
        for claim in published
        for aqm, name in AQMS.items()
    ]
