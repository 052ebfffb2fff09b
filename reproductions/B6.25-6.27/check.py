"""The rule of B6.25–6.27: LinCubic and AccuCubic behind three AQMs."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published
from ackclock.reproductions.measures import window_fall

ENGINES = ("packet", "linux")
MEASURES = {
    "fall": window_fall,
    "delay": "queue_delay_mean_s",
    "empty": "queue_empty_share",
    "used": "utilisation",
}
CONTROLS = {"lincubic": "LinCubic", "accucubic": "AccuCubic"}
AQMS = {"codel": "CoDel", "pie": "PIE", "ared": "ARED"}

#: At least half of the flows in step give up a tenth of the total; .06 is more than chance. As in B5.1.
IN_STEP, TOGETHER = (0.10, inf), (0.06, inf)

#: “Reduced”: by half at least; by a tenth.
REDUCED, LESS = (0.0, 0.5), (0.0, 0.9)

#: “Often”: a tenth of the time at least; a hundredth.
OFTEN, SOMETIMES = (0.1, 1.0), (0.01, 1.0)

#: “Under-utilisation”: at most 97 %; at most 99.5 %.
UNDER, NOT_FULL = (0.0, 0.97), (0.0, 0.995)


def is_quick(engine: str, case: str) -> bool:
    """A quick run has no guests."""
    del case
    return engine == "packet"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Each claim for each control behind each AQM."""
    rows = []
    for control, name in CONTROLS.items():
        tail = measured[f"{control} droptail"]
        for aqm, queue in AQMS.items():
            found, at = measured[f"{control} {aqm}"], f"{name}, {queue}"
            rows += [
                Row("shape", found["fall"], IN_STEP, TOGETHER, at),
                Row("delay", ratio(found["delay"], tail["delay"]), REDUCED, LESS, at),
                Row("empty", found["empty"], OFTEN, SOMETIMES, at),
                Row("under", found["used"], UNDER, NOT_FULL, at),
            ]
    return sorted(rows, key=lambda row: [*published].index(row.claim))
