"""The rule of B6.16–6.21: do three AQMs break the synchronisation of 100 CUBIC flows?"""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.reproductions.measures import mean_window_bdp, peak_bdp

ENGINES = ("packet", "linux")
MEASURES = {
    "flows": "flows_per_epoch",
    "peak": peak_bdp,
    "window": mean_window_bdp,
    "delay": "queue_delay_mean_s",
    "goodput": "goodput_bps",
}
AQMS = {"ared": "ARED", "codel": "CoDel", "pie": "PIE"}

#: Printed numbers of flows, from a testbed: within a tenth; within a quarter. Of an AQM: within .15, within a half.
FLOWS, ALIKE_FLOWS = 0.1, 0.25
AQM_FLOWS, ALIKE_AQM_FLOWS = 0.15, 0.5

#: “Reaches BDP + BS”: within a twentieth; within .15.
REACHES, NEARLY = 0.05, 0.15

#: “Near 1 BDP”: within a tenth; within .3.
NEAR_1, ABOUT_1 = 0.1, 0.3

#: “Reduced”: by half at least; by a tenth.
REDUCED, LESS = (0.0, 0.5), (0.0, 0.9)

#: “Losing little goodput”: a twentieth at most; .15.
LITTLE, SOME = (0.95, inf), (0.85, inf)

#: “Decreases”: by a tenth at least; within a tenth they are the same. As in B5.23–5.24.
FEWER, NOT_MORE = (0.0, 0.9), (0.0, 1.1)

#: “The most effective”; within a tenth of the best it is close.
FEWEST, CLOSE = (0.0, 1.0), (0.0, 1.1)


def is_quick(engine: str, case: str) -> bool:
    """A quick run has no guests."""
    del case
    return engine == "packet"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims. What drop tail has says whether epochs are counted as in the thesis."""
    tail = measured["droptail"]
    controls = {"droptail": "CUBIC", "lincubic": "LinCubic", "accucubic": "AccuCubic"}
    best = tuple(
        None if None in seed else min(seed)
        for seed in zip(measured["codel"]["flows"], measured["pie"]["flows"], strict=True)
    )
    ared = measured["ared"]["flows"]
    rows = [
        Row("dt-flows", tail["flows"], near(81, FLOWS), near(81, ALIKE_FLOWS)),
        Row("ared-flows", ared, near(41, AQM_FLOWS), near(41, ALIKE_AQM_FLOWS)),
        Row("ared-best", ratio(ared, best), FEWEST, CLOSE),
    ]
    rows += [
        Row("dt-peak", measured[case]["peak"], near(2, REACHES), near(2, NEARLY), name)
        for case, name in controls.items()
    ]
    for aqm, name in AQMS.items():
        found = measured[aqm]
        rows += [
            Row("aqm-window", found["window"], near(1, NEAR_1), near(1, ABOUT_1), name),
            Row("delay", ratio(found["delay"], tail["delay"]), REDUCED, LESS, name),
            Row("goodput", ratio(found["goodput"], tail["goodput"]), LITTLE, SOME, name),
        ]
    for case in ("lincubic", "accucubic"):
        rows.append(Row("fewer", ratio(measured[case]["flows"], tail["flows"]), FEWER, NOT_MORE, controls[case]))
    return sorted(rows, key=lambda row: [*published].index(row.claim))
