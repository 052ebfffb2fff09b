"""The rule of R7.1: what lost SYNs cost, by the thesis's model and in the packet engine."""

from collections.abc import Mapping
from math import inf, log2

import polars as pl

from ackclock import theory
from ackclock.campaigns.reproduce import Measured, Row, Values, near, ratio
from ackclock.campaigns.reproduce.entry import Published
from ackclock.metrics import RunView, value
from ackclock.metrics.completion import transfers
from ackclock.theory.syn_loss import avoidance_rate

ENGINES = ("theory", "packet")

#: Section 7.1.6: RTT, p_l, p_Sl, R_t, and S; the printed 0.4 s of SYN timeouts are those of an RTO of 3 s.
RTT_S, P, P_SYN, RECOVERY_S, SEGMENTS, RTO_S = 0.2, 0.02, 0.12, 1.0, 36, 3.0
EXAMPLE = theory.response_time(SEGMENTS, RTT_S, P, p_syn=P_SYN, rto_s=RTO_S, recovery_s=RECOVERY_S, backoff=False)
KEPT_S = EXAMPLE.total_s - EXAMPLE.retried_s

#: A printed result of a printed formula: what rounding to two digits allows; up to a half it is of its size.
ROUNDED, OF_ITS_SIZE = 0.02, 0.5

#: “Sufficient to double the time”.
DOUBLE, LONGER = (2.0, inf), (1.2, inf)

#: “More than 1000 segments”, “more than 2000”, read from a logarithmic figure: within a fifth, or half or twice.
READ, OF_ITS_ORDER = 0.2, (0.5, 2.0)

#: “Gives a good overview of the influence of a lost SYN”: within 15 %; up to a half it is one.
GOOD, OVERVIEW = 0.15, 0.5

#: The thesis prints a mean window of 10 segments in the example.
PRINTED_WINDOW = 10


def kept(view: RunView) -> float | None:
    """The mean time of transfers whose first SYN was answered, with the FIN's round trip: the dataset leaves it out."""
    return _with_fin(value(view, "completion_syn_kept_s"))


def lost(view: RunView) -> float | None:
    """The same of those that lost at least one."""
    return _with_fin(value(view, "completion_syn_lost_s"))


def once(view: RunView) -> float | None:
    """The same of those that lost one SYN."""
    if view.given:
        found = kept(view)
        return None if found is None else found + view.plan.groups[0].tcp.initial_rto_s
    some = view.once(transfers).filter("finished", pl.col("syn_retransmissions") == 1)["time_s"]
    return _with_fin(float(some.mean())) if some.len() else None


def _with_fin(time_s) -> float | None:
    return None if time_s is None else time_s + RTT_S


def model(view: RunView) -> float | None:
    """1 where a closed form gave the metrics."""
    return 1.0 if view.given else None


MEASURES = {"kept": kept, "lost": lost, "once": once, "model": model}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """The closed form's numbers once, as the theory engine's rows; then what each engine has."""
    page = measured[f"{SEGMENTS} RTO 3 s"]
    rows = [
        Row("doubled", ratio(page["once"], page["kept"]), DOUBLE, LONGER, f"{SEGMENTS} segments, RTO 3 s"),
        *(_share(measured, published, *each) for each in (("share-1", "1000 RTO 1 s"), ("share-3", "2000 RTO 3 s"))),
    ]
    if page["model"][0] is None:
        return rows
    return [*_example(published), *_as_printed(published), rows[0], *_sizes(published), *rows[1:]]


def _example(published: Mapping[str, Published]) -> list[Row]:
    """The equations with the printed values."""
    found = {
        "slow-start": EXAMPLE.slow_start_s,
        "avoidance": EXAMPLE.avoidance_s,
        "recovery": EXAMPLE.recovery_s,
        "fin": EXAMPLE.fin_s,
        "syn": EXAMPLE.syn_s,
        "total": EXAMPLE.total_s,
        "syn-share": EXAMPLE.syn_share,
        "kept": KEPT_S,
        "lost": KEPT_S + RTO_S,
    }
    return [_printed(published[claim], value) for claim, value in found.items()]


def _as_printed(published: Mapping[str, Published]) -> list[Row]:
    """The phases for the printed mean window of 10 segments: 2^n − 1 is 19 then, 2^n is 20."""
    rounds = log2(PRINTED_WINDOW) + 1
    at = "window 10 as printed"
    rate = PRINTED_WINDOW / RTT_S
    avoidance = (SEGMENTS - 2**rounds) / rate
    return [
        _printed(published["slow-start"], rounds * RTT_S, at, aside=True),
        _printed(published["avoidance"], avoidance, f"{at}, 20 segments before", aside=True),
    ]


def _printed(claim: Published, value: float, at: str = "", *, aside: bool = False) -> Row:
    expected = claim.value or 0.0
    return Row(claim.claim, (float(value),), near(expected, ROUNDED), near(expected, OF_ITS_SIZE), at, aside)


def _sizes(published: Mapping[str, Published]) -> list[Row]:
    sizes = {
        "avoidance-only": RTO_S / 0.1 * avoidance_rate(P, RTT_S),
        "size-1": theory.size_where_syn_counts(0.1, RTT_S, P, rto_s=1.0, recovery_s=RECOVERY_S),
        "size-3": theory.size_where_syn_counts(0.1, RTT_S, P, rto_s=3.0, recovery_s=RECOVERY_S),
    }
    return [_read(published[claim], (size,)) for claim, size in sizes.items()]


def _share(measured: Measured, published: Mapping[str, Published], claim: str, case: str) -> Row:
    added = tuple(None if each is None else each - 1 for each in ratio(measured[case]["once"], measured[case]["kept"]))
    return _read(published[claim], added)


def _read(claim: Published, values: Values) -> Row:
    expected = claim.value or 0.0
    low, high = OF_ITS_ORDER
    return Row(claim.claim, values, near(expected, READ), (low * expected, high * expected))


def beside(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> list[Row]:
    """The packet engine over the model, size by size: without a lost SYN, and what lost ones cost."""
    if not all(engine in measured for engine in ENGINES):
        return []
    formula, packet = (measured[engine] for engine in ENGINES)
    rows = []
    for case in formula:
        cost = [_less(found[case]["lost"], found[case]["kept"]) for found in (packet, formula)]
        rows += [
            Row(
                "beside-kept",
                ratio(packet[case]["kept"], formula[case]["kept"]),
                near(1, GOOD),
                near(1, OVERVIEW),
                case,
            ),
            Row("beside-cost", ratio(*cost), near(1, GOOD), near(1, OVERVIEW), case),
        ]
    return sorted(rows, key=lambda row: [*published].index(row.claim))


def _less(more: Values, less: Values) -> Values:
    return tuple(None if a is None or b is None else a - b for a, b in zip(more, less, strict=True))
