"""The rule of R7.cap: response times of short downloads, told from captures, beside the run and what is published."""

from collections.abc import Callable, Mapping, Sequence

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Values
from ackclock.reproductions.transfers import captured_completion_of, completion_of

ENGINES = ("packet",)
MEASURES = {
    "run 2": completion_of(least=2, most=2),
    "run 1-6": completion_of(most=6),
    "run all": "fct_km_mean_s",
}
CAPTURED = {
    "2": captured_completion_of(least=2, most=2),
    "1-6": captured_completion_of(most=6),
    "all": "fct_km_mean_s",
}

LEADERS, OTHERS = ("fq_codel", "sfq", "redfavor", "spa"), ("pfifo", "bfifo", "codel", "pie")
QUEUES = (*OTHERS, *LEADERS)

#: Tolerances of the capture analysis against the truth: within 2 %; within 10 %.
TRUE, NEARLY_TRUE = 0.02, 0.1

#: “Better”, “clearly ahead”: the worst of the better ones is better; up to 15 % worse it is nearly so. As in R7.4–7.9.
BETTER, NEARLY = (0.0, 1.0), (0.0, 1.15)

#: “100 to 300 % better”; “divided by two”; “the best”. As there.
TWO_TO_FOUR, BY_HALF = (2.0, 4.0), (1.5, 6.0)
A_HALF, LESS = (0.4, 0.6), (0.25, 0.8)
THE_BEST, CLOSE = (0.0, 1.02), (0.0, 1.15)


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    true, nearly = near(1.0, TRUE), near(1.0, NEARLY_TRUE)
    truth = [
        Row(f"truth-{size}", ratio(measured[queue][size], measured[queue][f"run {size}"]), true, nearly, queue)
        for size in ("2", "1-6", "all")
        for queue in QUEUES
    ]

    def of(measure: str, *queues: str) -> list[Values]:
        return [measured[queue][measure] for queue in queues]

    pfifo = measured["pfifo"]["2"]
    fair = _each(lambda values: sum(values) / len(values), of("2", "spa", "sfq", "fq_codel"))
    return [
        *truth,
        Row("better", ratio(_each(max, of("2", *QUEUES[1:])), pfifo), BETTER, NEARLY),
        Row("leaders", ratio(_each(max, of("2", *LEADERS)), _each(min, of("2", *OTHERS))), BETTER, NEARLY),
        Row("gain", ratio(pfifo, fair), TWO_TO_FOUR, BY_HALF),
        Row("redfavor", ratio(measured["redfavor"]["2"], pfifo), A_HALF, LESS),
        Row("sfq", ratio(measured["sfq"]["1-6"], _each(min, of("1-6", *QUEUES))), THE_BEST, CLOSE),
    ]


def _each(function: Callable[[list[float]], float], cases: Sequence[Values]) -> Values:
    """Seed by seed, a function of the cases that have a value."""
    known = [[value for value in seed if value is not None] for seed in zip(*cases, strict=True)]
    return tuple(function(values) if values else None for values in known)
