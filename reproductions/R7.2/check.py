"""The rule of R7.2: what a trace tells of lost SYNs, and whether it tells the truth."""

from collections.abc import Callable, Mapping
from math import inf

import polars as pl

from ackclock.capture import trace_statistics
from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView

ENGINES = ("packet",)

#: “Several times”: twice and more; more.
SEVERAL, MORE = (2.0, inf), (1.0, inf)

#: “A large part”: from a fifth on, as in both directions of table 7.3; from a twentieth on.
LARGE, SOME = (0.2, 0.8), (0.05, 1.0)

#: “Doubled”, from 1.4 to 2.4 times in table 7.3; longer.
DOUBLED, LONGER = (1.4, 2.6), (1.0, inf)

#: Tolerances of the trace analysis against the truth: within 2 %; within 10 %.
TRUE, NEAR = 0.02, 0.1

#: “Little affected”: within 5 %; within a quarter.
LITTLE, SOMEWHAT = 0.05, 0.25

#: Connections without data that make an address that of a flood, here: of some thousand connections, not millions.
FLOOD = 100


#: Why something is sent again, in the run's own words.
RETRANSMITTED = ("opening_again", "fast_retransmit", "tail_probe", "timeout", "after_timeout")


def traced(what: str, **more: int) -> Callable[[RunView], float | None]:
    """Measure with `metrics.trace` at the senders of the data, which here open the connections too."""

    def measure(view: RunView) -> float | None:
        rows = trace_statistics.trace(view.data, **more).rows_by_key(["sender", "what"], named=True, unique=True)
        found: float | None = rows["client", what]["value"]
        return found

    return measure


def retransmitted_share(view: RunView) -> float | None:
    """Share of the senders' packets that are data or SYNs sent again. A trace has no count of repeated FINs."""
    rows = view.data.scan("transmissions").filter((pl.col("run") == view.run) & (pl.col("end") == "sender"))
    sent = rows.select(pl.col("kind").cast(pl.String), pl.col("cause").cast(pl.String)).collect()
    repeated = sent.filter(pl.col("kind").is_in(["data", "data_fin", "syn"]) & pl.col("cause").is_in(RETRANSMITTED))
    return repeated.height / sent.height if sent.height else None


def syn_retransmitted_share(view: RunView) -> float | None:
    """Share of the connections that sent their SYN again."""
    again = view.flows["syn_retransmissions"]
    return float((again > 0).mean()) if again.len() else None


MEASURES = {"again": retransmitted_share, "syn again": syn_retransmitted_share}
READING = {"segments": True}
CAPTURED = {
    "packets": traced("retransmission"),
    "unfiltered": traced("retransmission", flood=2**31),
    "filtered": traced("retransmission", flood=FLOOD),
    "share": traced("syn_share"),
    "syns": traced("syn_packets"),
    "connections": traced("syn_connections"),
    "with": traced("retransmission_time_s_with_syn_loss"),
    "without": traced("retransmission_time_s_without_syn_loss"),
}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims, for each load."""
    return [row for load in ("downloads", "upload") for row in _of(measured[load], load)]


def _of(found: Mapping[str, tuple[float | None, ...]], load: str) -> list[Row]:
    return [
        Row("syn-more", ratio(found["syns"], found["packets"]), SEVERAL, MORE, load),
        Row("syn-share", found["share"], LARGE, SOME, load),
        Row("doubled", ratio(found["with"], found["without"]), DOUBLED, LONGER, load),
        Row("truth-data", ratio(found["packets"], found["again"]), near(1.0, TRUE), near(1.0, NEAR), load),
        Row("truth-syn", ratio(found["connections"], found["syn again"]), near(1.0, TRUE), near(1.0, NEAR), load),
        Row("flood", ratio(found["filtered"], found["unfiltered"]), near(1.0, LITTLE), near(1.0, SOMEWHAT), load),
    ]
