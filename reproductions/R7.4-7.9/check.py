"""The rule of R7.4–7.9: short downloads on a slow line through fifteen queue disciplines."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Values
from ackclock.reproductions.transfers import completion_of, line_rtt, retransmission_time

ENGINES = ("packet", "linux")
MEASURES = {
    "1": completion_of(most=1),
    "2": completion_of(least=2, most=2),
    "1-6": completion_of(most=6),
    "rtt": line_rtt,
    "syn": "syn_retransmission_probability",
    "wait": retransmission_time,
}

QUEUES = ("pfifo", "bfifo", "red", "ared", "redfavor", "codel", "codel-20ms", "fq_codel", "fq_codel-20ms", "sfq", "pie",
          "synprio", "synfinprio", "spa", "spa-20ms")  # fmt: skip
#: The loads: those of the thesis, and two other readings of the last one.
LOADS = ("#1", "#1+upload", "#2", "#2-of-3.0", "#2-floor-of-1s")

AQMS = ("red", "ared", "codel", "pie")
SINGLE = ("pfifo", "bfifo", *AQMS)
LEADERS = ("fq_codel", "sfq", "redfavor", "spa")

#: “Better”, “clearly ahead”, “fewer”: the worst of the better ones is better; up to 15 % worse it is nearly so.
BETTER, NEARLY = (0.0, 1.0), (0.0, 1.15)

#: “The best”, “close behind”.
THE_BEST, CLOSE, NEAR_IT = (0.0, 1.02), (0.0, 1.15), (0.0, 1.5)

#: “Divided by two”, read from bars.
A_HALF, LESS = (0.4, 0.6), (0.25, 0.8)

#: “About 80 ms”.
ABOUT_80_MS, ROUND_80_MS = (0.07, 0.09), (0.055, 0.11)

#: “4 to 6 %”, and what is of its kind.
FROM_4_TO_6, FROM_2_TO_9 = (0.035, 0.065), (0.02, 0.09)

#: “20 % less”, “40 % less”, “30 % less”, “50 % less”: within ten points; less at all.
TEN_POINTS, LESS_AT_ALL = 0.1, (0.0, 1.0)

#: “Without losses of SYN”: one in five hundred; one in a hundred.
NONE, HARDLY_ANY = (0.0, 0.002), (0.0, 0.01)

#: “Of the order of a second”.
A_SECOND, TENTHS = (0.5, 2.0), (0.2, 5.0)

#: “Unusually long”: twice the others'; longer.
UNUSUAL, LONGER = (2.0, inf), (1.1, inf)

#: “100 to 300 % better”, “doubled”, “three times”.
TWO_TO_FOUR, BY_HALF = (2.0, 4.0), (1.5, 6.0)
DOUBLED, MORE = (1.6, 2.4), (1.2, 4.0)
THRICE, MUCH_MORE = (2.4, 3.6), (1.3, 6.0)

#: “Insensitive”, “comparable”.
THE_SAME, ALIKE = (0.85, 1.15), (0.6, 1.6)

#: “100 to 180 ms”.
FROM_100_TO_180, FROM_80_TO_220 = (0.1, 0.18), (0.08, 0.22)

#: “15 % less”.
BY_15, LESS_BY_SOME = (0.8, 0.9), (0.6, 1.0)

#: “Up to 8 %”.
UP_TO_8, ABOUT_8 = (0.06, 0.1), (0.03, 0.15)


def runs(engine: str, case: str) -> bool:
    """The kernel runs the first load, and has no REDFavor."""
    return engine != "linux" or (case.startswith("#1 ") and not case.endswith("redfavor"))


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs two queues."""
    return engine != "linux" or case in ("#1 pfifo", "#1 spa")


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    alone, upload, tiny, fewer, patient = (_by_queue(measured, load) for load in LOADS)
    rows = [*_figures_without_bfifo(alone), *_bytes(alone), *_upload(alone, upload), *_tiny(tiny)]
    for load, at in ((fewer, "mean of 3.0"), (patient, "floor of 1 s")):
        rows += [replace(row, at=at, aside=True) for row in _tiny(load)]
    return sorted(rows, key=lambda row: [*published].index(row.claim))


class _Load:
    """Measurements under one load, by queue."""

    def __init__(self, by_queue: Measured) -> None:
        self._by_queue = by_queue

    def __call__(self, measure: str, *queues: str) -> list[Values]:
        return [self._by_queue[queue][measure] for queue in queues]

    def one(self, measure: str, queue: str) -> Values:
        return self._by_queue[queue][measure]

    def over(self, measure: str, above: str, below: str) -> Values:
        """One queue's over another's."""
        return ratio(self.one(measure, above), self.one(measure, below))

    def worst_over_best(self, measure: str, some: Sequence[str], others: Iterable[str]) -> Values:
        """The largest of some over the smallest of others."""
        return ratio(_each(max, self(measure, *some)), _each(min, self(measure, *others)))


def _by_queue(measured: Measured, load: str) -> _Load:
    return _Load({queue: measured[f"{load} {queue}"] for queue in QUEUES})


def _figures_without_bfifo(load: _Load) -> list[Row]:
    """Figures 7-4 and 7-5, but for the byte FIFO."""
    others = [queue for queue in QUEUES if queue not in LEADERS and not queue.endswith("20ms")]
    prio_syn = _each(_mean, load("syn", "synprio", "synfinprio"))
    fair = _each(_mean, load("2", "spa", "sfq", "fq_codel"))
    but_sfq = [queue for queue in QUEUES if queue != "sfq"]
    return [
        Row("1-better", load.worst_over_best("2", QUEUES[1:], ("pfifo",)), BETTER, NEARLY),
        Row("1-leaders", load.worst_over_best("2", LEADERS, others), BETTER, NEARLY),
        Row("1-fq_codel", load.worst_over_best("2", ("fq_codel-20ms",), QUEUES), THE_BEST, CLOSE),
        Row("1-spa", load.worst_over_best("2", ("spa",), QUEUES), CLOSE, NEAR_IT),
        Row("1-sfq", load.worst_over_best("1-6", ("sfq",), QUEUES), THE_BEST, CLOSE),
        *(Row("1-half-rtt", load.over("rtt", queue, "pfifo"), A_HALF, LESS, queue) for queue in ("codel", "pie")),
        *(Row("1-80ms", load.one("rtt", queue), ABOUT_80_MS, ROUND_80_MS, queue) for queue in ("fq_codel", "spa")),
        *(Row("1-syn", load.one("syn", queue), FROM_4_TO_6, FROM_2_TO_9, queue) for queue in ("pie", "red", "codel")),
        Row("1-sfq-rtt", load.one("rtt", "sfq"), A_SECOND, TENTHS),
        Row("1-sfq-time", ratio(load.one("wait", "sfq"), _each(_mean, load("wait", *but_sfq))), UNUSUAL, LONGER),
        Row("1-spa-time", load.worst_over_best("wait", ("spa",), QUEUES), THE_BEST, CLOSE),
        Row("1-gain", ratio(load.one("2", "pfifo"), fair), TWO_TO_FOUR, BY_HALF),
        Row("1-redfavor", load.over("2", "redfavor", "pfifo"), A_HALF, LESS),
        Row("1-protected", ratio(prio_syn, load.one("syn", "pfifo")), BETTER, NEARLY),
    ]


def _bytes(load: _Load) -> list[Row]:
    """Return the section's rows on the byte FIFO."""
    return [
        Row("1-bytes-time", load.over("wait", "bfifo", "pfifo"), _points(0.8), LESS_AT_ALL),
        Row("1-bytes-syn", load.one("syn", "bfifo"), NONE, HARDLY_ANY),
        Row("1-bytes-rtt", load.over("rtt", "bfifo", "pfifo"), BETTER, NEARLY),
        Row("1-bytes-best", load.worst_over_best("2", ("bfifo",), AQMS), BETTER, NEARLY),
        Row("1-bytes-short", load.over("1", "bfifo", "pfifo"), _points(0.6), LESS_AT_ALL),
    ]


def _upload(alone: _Load, load: _Load) -> list[Row]:
    """Figures 7-6 and 7-7."""
    syn, syn_alone = (_each(_mean, each("syn", *QUEUES)) for each in (load, alone))
    single = [queue for queue in QUEUES if queue.split("-")[0] not in ("spa", "fq_codel", "sfq")]
    return [
        Row("u-syn", ratio(syn, syn_alone), DOUBLED, MORE),
        Row("u-short", load.worst_over_best("2", ("fq_codel", "spa"), single), BETTER, NEARLY),
        Row("u-long", load.worst_over_best("1-6", ("sfq", "spa"), single), BETTER, NEARLY),
        Row("u-spa", ratio(load.one("2", "spa"), _each(_mean, load("2", *AQMS))), A_HALF, LESS),
    ]


def _tiny(load: _Load) -> list[Row]:
    """Figures 7-8 and 7-9."""
    fair = _each(_mean, load("1", "sfq", "fq_codel-20ms"))
    others = [queue for queue in SINGLE if queue != "bfifo"]
    return [
        Row("2-rtt", _each(_mean, load("rtt", *SINGLE)), FROM_100_TO_180, FROM_80_TO_220),
        Row("2-fq_codel", load.over("1", "fq_codel", "fq_codel-20ms"), THRICE, MUCH_MORE),
        Row("2-spa", load.over("1", "spa", "spa-20ms"), THE_SAME, ALIKE),
        Row("2-codel", load.over("1", "codel-20ms", "codel"), BY_15, LESS_BY_SOME),
        Row("2-pie", load.one("syn", "pie"), UP_TO_8, ABOUT_8),
        Row("2-bytes", load.worst_over_best("1", ("bfifo",), others), BETTER, NEARLY),
        Row("2-synfin", ratio(load.one("1", "synfinprio"), fair), THE_SAME, ALIKE),
        Row("2-leaders", load.worst_over_best("1", ("sfq", "fq_codel-20ms", "spa"), others), BETTER, NEARLY),
        Row("2-fifo-codel", load.over("1", "pfifo", "codel"), _points(0.7), LESS_AT_ALL),
        Row("2-fifo-pie", load.over("1", "pfifo", "pie"), _points(0.5), LESS_AT_ALL),
        Row("2-fifo-fq", load.over("1", "pfifo", "fq_codel"), BETTER, NEARLY),
    ]


def _points(share: float) -> tuple[float, float]:
    return share - TEN_POINTS, share + TEN_POINTS


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _each(function: Callable[[list[float]], float], cases: Sequence[Values]) -> Values:
    """Seed by seed, a function of the cases that have a value."""
    known = [[value for value in seed if value is not None] for seed in zip(*cases, strict=True)]
    return tuple(function(values) if values else None for values in known)
