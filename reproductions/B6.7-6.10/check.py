"""The rule of B6.7–6.10: delay and goodput of CoDel and PIE by their interval."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from ackclock.gallery import Measured, Row, Values, near, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView
from ackclock.reproductions.measures import queue_delay_quantile, served_bps

ENGINES = ("packet", "linux")
INTERVALS = ("5 ms", "30 ms", "100 ms")

#: Shares of ordered pairs, as for B6.5–6.6: in nine of ten pairs; in half it is a trend.
ORDERED, MOSTLY = (0.9, 1.0), (0.5, 1.0)

#: “Close to 9.6 Mb/s”: within 3 %, since the thesis does not say whether headers count; within a tenth.
CLOSE, NEAR = 0.03, 0.1

#: “Lower than 120 ms”; lower than the 150 ms of the experiments that the thesis compares with.
BELOW, NOT_FAR = (0.0, 0.12), (0.0, 0.15)

#: “Increases slightly”: by a thousandth to a tenth; the same within a hundredth, or more.
SLIGHTLY, THE_SAME = (1.001, 1.1), (0.99, 1.25)


def rtt_s(share: float) -> Callable[[RunView], float | None]:
    """The measure of path and queue that this share of the packets does not exceed."""
    waited_s = queue_delay_quantile(share)

    def measure(view: RunView) -> float | None:
        queue_s = waited_s(view)
        return None if queue_s is None else queue_s + float(view.plan.flows[0].base_rtt_s)

    return measure


MEASURES = {
    "median": queue_delay_quantile(0.5),
    "mean": "queue_delay_mean_s",
    "rtt": rtt_s(0.95),
    "median rtt": rtt_s(0.5),
    "goodput": served_bps,
    "payload": "goodput_bps",
}


def is_quick(engine: str, case: str) -> bool:
    """A quick run has no guests."""
    del case
    return engine == "packet"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows by claim and interval."""
    value = published["codel-goodput"].value or 0.0
    gain = ratio(measured["pie 100 ms"]["goodput"], measured["pie 5 ms"]["goodput"])
    return [
        Row("codel-delay", _in_order(measured, "codel"), ORDERED, MOSTLY),
        *(
            Row("codel-goodput", measured[f"codel {at}"]["goodput"], near(value, CLOSE), near(value, NEAR), at)
            for at in INTERVALS
        ),
        *(
            Row(
                "codel-goodput",
                measured[f"codel {at}"]["payload"],
                near(value, CLOSE),
                near(value, NEAR),
                f"{at}, payload",
                aside=True,
            )
            for at in INTERVALS
        ),
        Row("pie-delay", _in_order(measured, "pie"), ORDERED, MOSTLY),
        *(Row("pie-below", measured[f"pie {at}"]["rtt"], BELOW, NOT_FAR, at) for at in INTERVALS),
        *(Row("pie-median", measured[f"pie {at}"]["median rtt"], BELOW, NOT_FAR, at, aside=True) for at in INTERVALS),
        Row("pie-goodput", gain, SLIGHTLY, THE_SAME),
    ]


def _in_order(measured: Measured, aqm: str) -> Values:
    """The share of ordered pairs of medians; of means where an engine has no times of single packets (the kernel)."""
    cases = [measured[f"{aqm} {at}"] for at in INTERVALS]
    which = "mean" if any(None in case["median"] for case in cases) else "median"
    pairs = [list(combinations(seed, 2)) for seed in zip(*(case[which] for case in cases), strict=True)]
    return tuple(_share_ordered(each) for each in pairs)


def _share_ordered(pairs: Sequence[tuple[float | None, float | None]]) -> float | None:
    known = [(small, large) for small, large in pairs if small is not None and large is not None]
    return sum(small < large for small, large in known) / len(known) if known else None
