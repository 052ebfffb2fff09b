"""The rule of R7.1: what lost SYNs cost, by the thesis's model and in the packet engine."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf, log2

import polars as pl

from ackclock import theory
from ackclock.gallery import Measured, Row, Values, near, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView, value
from ackclock.metrics.completion import transfers
from ackclock.theory.completion_time import avoidance_rate

ENGINES = ("theory", "packet")

#: Section 7.1.6: RTT, p_l, p_Sl, and S; the printed 0.4 s of SYN timeouts are those of an RTO of 3 s.
RTT_S, P, P_SYN, SEGMENTS, RTO_S = 0.2, 0.02, 0.12, 36, 3.0

#: A printed result of a printed formula: what rounding to two digits allows; up to a half it is of its size.
ROUNDED, OF_ITS_SIZE = 0.02, 0.5

#: “Sufficient to double the time”.
DOUBLE, LONGER = (2.0, inf), (1.2, inf)

#: “More than 1000 segments”, “more than 2000”, read from a logarithmic figure: within a fifth, or half or twice.
READ, OF_ITS_ORDER = 0.2, (0.5, 2.0)

#: “Gives a good overview of the influence of a lost SYN”: within 15 %; up to a half it is one.
GOOD, OVERVIEW = 0.15, 0.5

#: The thesis prints a mean window W of 10 segments in the example. Its slow start has log2 W + 1 round trips there, its
#: congestion avoidance 36 − 2W segments.
WINDOW = 10

#: “10 %” of transfers of these sizes.
SHARES = {"share-1": "1000 RTO 1 s", "share-3": "2000 RTO 3 s"}


def kept(view: RunView) -> float | None:
    """The mean time of transfers whose first SYN was answered, with the FIN's round trip: the dataset leaves it out."""
    return _with_fin(value(view, "fct_syn_kept_s"))


def lost(view: RunView) -> float | None:
    """The same of those that lost at least one."""
    return _with_fin(value(view, "fct_syn_lost_s"))


def single_loss(view: RunView) -> float | None:
    """The same of those that lost one SYN."""
    if view.given:
        found = kept(view)
        return None if found is None else found + view.plan.groups[0].tcp.initial_rto_s
    some = view.cached(transfers).filter("finished", pl.col("syn_retransmissions") == 1)["time_s"]
    return _with_fin(float(some.mean())) if some.len() else None


def _with_fin(time_s) -> float | None:
    return None if time_s is None else time_s + RTT_S


def recovery_s(view: RunView) -> float | None:
    """R_t, where a closed form gave the metrics."""
    return view.plan.options["theory"]["syn_loss"]["recovery_s"] if view.given else None


def window(view: RunView) -> float | None:
    """The printed window, in the reading that has it."""
    return float(WINDOW) if view.given and view.plan.name.endswith("window of 10") else None


MEASURES = {"kept": kept, "lost": lost, "once": single_loss, "repair": recovery_s, "window": window}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """The closed form's numbers once, as the theory engine's rows; then what each engine has."""
    page = measured[f"{SEGMENTS} RTO 3 s"]
    repair_s, printed = page["repair"][0], page["window"][0] is not None
    doubled = ratio(page["once"], page["kept"])
    shares = {claim: _share(measured, case) for claim, case in SHARES.items()}
    if repair_s is not None and printed:
        doubled = (1 + RTO_S / _kept_s(SEGMENTS, repair_s),)
        shares = {"share-1": (1.0 / _kept_s(1000, repair_s),), "share-3": (3.0 / _kept_s(2000, repair_s),)}
    rows = [
        Row("doubled", doubled, DOUBLE, LONGER, f"{SEGMENTS} segments, RTO 3 s"),
        *(_read(published[claim], values) for claim, values in shares.items()),
    ]
    if repair_s is None:
        return rows
    return [*_example(published, repair_s, printed), rows[0], *_sizes(published, repair_s, printed), *rows[1:]]


def _phases(segments: float, repair_s: float, printed: bool) -> theory.ResponseTime[float]:
    """The equations with the printed values, or with the printed window."""
    found = theory.response_time(segments, RTT_S, P, p_syn=P_SYN, rto_s=RTO_S, recovery_s=repair_s, backoff=False)
    if not printed:
        return found
    avoidance_s = (segments - 2 * WINDOW) * RTT_S / WINDOW
    return replace(found, slow_start_s=(log2(WINDOW) + 1) * RTT_S, avoidance_s=avoidance_s)


def _kept_s(segments: float, repair_s: float) -> float:
    """With the printed window, without a lost SYN."""
    found = _phases(segments, repair_s, printed=True)
    return found.total_s - found.retried_s


def _example(published: Mapping[str, Published], repair_s: float, printed: bool) -> list[Row]:
    """Its phases, and what they come to."""
    example = _phases(SEGMENTS, repair_s, printed)
    kept_s = example.total_s - example.retried_s
    found = {
        "slow-start": example.slow_start_s,
        "avoidance": example.avoidance_s,
        "recovery": example.recovery_s,
        "fin": example.fin_s,
        "syn": example.syn_s,
        "total": example.total_s,
        "syn-share": example.syn_share,
        "kept": kept_s,
        "lost": kept_s + RTO_S,
    }
    return [_printed(published[claim], value) for claim, value in found.items()]


def _printed(claim: Published, value: float) -> Row:
    expected = claim.value or 0.0
    return Row(claim.claim, (float(value),), near(expected, ROUNDED), near(expected, OF_ITS_SIZE))


def _sizes(published: Mapping[str, Published], repair_s: float, printed: bool) -> list[Row]:
    """Return the rows where a tenth of the SYNs is lost. The first is of section 7.1.1, which has equation 7.6."""
    sizes = {"avoidance-only": RTO_S / 0.1 * avoidance_rate(P, RTT_S)}
    for claim, rto_s in (("size-1", 1.0), ("size-3", 3.0)):
        sizes[claim] = theory.size_where_syn_counts(0.1, RTT_S, P, rto_s=rto_s, recovery_s=repair_s)
        if printed:  # a straight line
            at_1, at_2 = _kept_s(1, repair_s), _kept_s(2, repair_s)
            sizes[claim] = 1 + (rto_s / 0.1 - at_1) / (at_2 - at_1)
    return [_read(published[claim], (size,)) for claim, size in sizes.items()]


def _share(measured: Measured, case: str) -> Values:
    return tuple(None if each is None else each - 1 for each in ratio(measured[case]["once"], measured[case]["kept"]))


def _read(claim: Published, values: Values) -> Row:
    expected = claim.value or 0.0
    low, high = OF_ITS_ORDER
    return Row(claim.claim, values, near(expected, READ), (low * expected, high * expected))


def compare(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> list[Row]:
    """The packet engine over the model, size by size: without a lost SYN, and what lost ones cost.

    Beside the reading whose repairs take a round trip, as the packet engine's do.
    """
    if not all(engine in measured for engine in ENGINES):
        return []
    formula, packet = (measured[engine] for engine in ENGINES)
    if formula[f"{SEGMENTS} RTO 3 s"]["repair"][0] != RTT_S:
        return []
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
