"""The rule of R7.10: short downloads on a fast line through fifteen queue disciplines."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Values
from ackclock.reproductions.transfers import completion_of

ENGINES = ("packet", "linux")

#: From how many segments on a connection is long.
LONG = 100

MEASURES = {"2": completion_of(least=2, most=2), "long": completion_of(least=LONG, most=10**9)}

AQMS = ("red", "ared", "codel", "pie")
FIFOS = ("pfifo", "bfifo")

#: “Clearly ahead”, “better”: the worst of the better ones is better; up to 15 % worse it is nearly so.
BETTER, NEARLY = (0.0, 1.0), (0.0, 1.15)

#: “Clearly better”: by a tenth at least; better at all.
CLEARLY, AT_ALL = (0.0, 0.9), (0.0, 1.0)

#: “30 % less”: within ten points; less at all.
BY_30 = (0.6, 0.8)

#: “The second worst”: worse than all others but packet FIFO; up to 15 % better it is nearly so.
WORSE, HARDLY_BETTER = (1.0, inf), (0.85, inf)


#: The least, or the greatest, of some numbers.
Choice = Callable[[list[float]], float]


def runs(engine: str, case: str) -> bool:
    """The kernel has no REDFavor."""
    return engine != "linux" or case != "redfavor"


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs two queues."""
    return engine != "linux" or case in ("pfifo", "bfifo")


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""

    def over(some: Iterable[str], others: Iterable[str], measure: str = "2", below: Choice = min) -> Values:
        """The largest of some over the smallest, or the largest, of others."""
        above = _each(max, [measured[queue][measure] for queue in some])
        return ratio(above, _each(below, [measured[queue][measure] for queue in others]))

    others = (*AQMS, "redfavor", "synprio", "synfinprio")
    return [
        Row("leaders", over(("fq_codel", "spa", "sfq"), (*FIFOS, *AQMS)), BETTER, NEARLY),
        Row("bytes", over(("bfifo",), ("pfifo",)), BY_30, AT_ALL),
        Row("bytes-second", over(("bfifo",), others, below=max), WORSE, HARDLY_BETTER),
        Row("delay", over(("pie", "codel"), FIFOS), CLEARLY, AT_ALL),
        Row("redfavor", over(("redfavor",), AQMS), BETTER, NEARLY),
        Row("redfavor-long", over(("redfavor",), ("sfq", "fq_codel"), "long"), BETTER, NEARLY),
    ]


def _each(choice: Choice, cases: Sequence[Values]) -> Values:
    """Seed by seed, the choice among the cases that have a value."""
    known = [[value for value in seed if value is not None] for seed in zip(*cases, strict=True)]
    return tuple(choice(values) if values else None for values in known)
