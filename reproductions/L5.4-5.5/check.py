"""The rule of L5.4–5.5: throughput and packet loss in fat trees, single path, ECMP with TCP, ECMP with ABCC."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.reproductions.measures import transfer_loss

SCHEMES = ("single path", "ECMP, TCP", "ECMP, ABCC")

#: “Lowest” throughput: by a twentieth at least; within a twentieth they are the same.
MORE, THE_SAME = (1.05, inf), (1 / 1.05, inf)

#: “Best”: table 5.1 counts 4045 received packets beside 4012, less than 1 % more; so more at all.
BEST = (1.0, inf)

#: Loss rates of another load are the same within a half, and of their kind within a factor of ten.
SAME_LOSS = 0.5
OF_ITS_KIND = 10.0

#: “Weakest” and fewer losses: by a tenth at least; not more than a tenth above they are the same.
FEWER, NOT_MORE = (-inf, 0.9), (-inf, 1.1)


ENGINES = ("packet", "ns2")
MEASURES = {"goodput": "goodput_bps", "loss": transfer_loss}


def runs(engine: str, case: str) -> bool:
    """In the larger tree 768,000 transfers begin in a second: too many for ns-2, which makes two agents for each."""
    return engine != "ns2" or case.startswith("small")


def is_quick(engine: str, case: str) -> bool:
    """For a short look ns-2 runs one case."""
    return engine != "ns2" or case == "small single path"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Throughputs in both trees; losses in the small one, as table 5.1 has them."""
    rows = []
    for at in ("small", "medium"):
        single, tcp, abcc = (measured[f"{at} {scheme}"] for scheme in SCHEMES)
        rows += [
            Row("ecmp", ratio(tcp["goodput"], single["goodput"]), MORE, THE_SAME, at),
            Row("abcc", ratio(abcc["goodput"], tcp["goodput"]), BEST, THE_SAME, at),
        ]
    single, tcp, abcc = (measured[f"small {scheme}"]["loss"] for scheme in SCHEMES)
    for scheme, found in zip(SCHEMES, (single, tcp, abcc), strict=True):
        expected = published[f"loss {scheme}"].value or 0.0
        alike = (expected / OF_ITS_KIND, expected * OF_ITS_KIND)
        rows.append(Row(f"loss {scheme}", found, near(expected, SAME_LOSS), alike))
    rows.append(Row("fewer-ecmp", ratio(tcp, single), FEWER, NOT_MORE))
    rows.append(Row("fewer-abcc", ratio(abcc, tcp), FEWER, NOT_MORE))
    return sorted(rows, key=lambda row: [*published].index(row.claim))
