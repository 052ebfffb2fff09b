"""The rule of L5.6: throughput and packet loss in Inventec's data centre."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.reproductions.measures import transfer_loss

SCHEMES = ("single path", "ECMP, TCP", "ECMP, ABCC")

#: “Lowest” and “best” throughput: by a twentieth at least; within a twentieth they are the same.
MORE, THE_SAME = (1.05, inf), (1 / 1.05, inf)

#: Loss rates of another load are the same within a half, and of their kind within a factor of ten.
SAME_LOSS = 0.5
OF_ITS_KIND = 10.0

#: “Weakest” and fewer losses: by a tenth at least; not more than a tenth above they are the same.
FEWER, NOT_MORE = (-inf, 0.9), (-inf, 1.1)

ENGINES = ("packet",)
MEASURES = {"goodput": "goodput_bps", "loss": transfer_loss}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Throughputs, then the losses of table 5.2."""
    single, tcp, abcc = (measured[scheme] for scheme in SCHEMES)
    rows = [
        Row("ecmp", ratio(tcp["goodput"], single["goodput"]), MORE, THE_SAME),
        Row("abcc", ratio(abcc["goodput"], tcp["goodput"]), MORE, THE_SAME),
    ]
    for scheme in SCHEMES:
        expected = published[f"loss {scheme}"].value or 0.0
        alike = (expected / OF_ITS_KIND, expected * OF_ITS_KIND)
        rows.append(Row(f"loss {scheme}", measured[scheme]["loss"], near(expected, SAME_LOSS), alike))
    rows.append(Row("fewer-ecmp", ratio(tcp["loss"], single["loss"]), FEWER, NOT_MORE))
    rows.append(Row("fewer-abcc", ratio(abcc["loss"], tcp["loss"]), FEWER, NOT_MORE))
    return rows
