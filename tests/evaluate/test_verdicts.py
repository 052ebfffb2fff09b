"""Harm, its excess, intervals and verdicts, against closed forms and SciPy."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ackclock.evaluate import verdicts
from ackclock.evaluate.verdicts import MARGIN, NO_WORSE, RISK, UNDECIDED, WORSE, Finding, Interval

GOODPUT, DELAY, LOSS = "goodput_bps[victim]", "rtt_mean_s", "loss_rate"

values = st.floats(1e-3, 1e9)


@pytest.mark.parametrize(
    ("metric", "before", "after", "expected"),
    [
        (GOODPUT, 8e6, 2e6, 0.75),  # (x - y) / x
        (GOODPUT, 8e6, 0.0, 1.0),
        (GOODPUT, 0.0, 0.0, 0.0),
        (DELAY, 0.04, 0.16, 0.75),  # (y - x) / y
        (LOSS, 0.05, 0.2, 0.75),
        (LOSS, 0.0, 0.001, 0.1),  # of at least one packet in a hundred
        ("sends_per_rtt", 0.0, 0.02, 0.2),
        ("timeouts", 0.0, 1.0, 1.0),
        ("breaker_load", 0.01, 0.06, 0.05),  # of at least the limit of circuit breakers
    ],
)
def test_harm_is_the_share_that_is_taken(metric, before, after, expected):
    assert verdicts.harm(before, after, metric) == pytest.approx(expected)


@given(values, values, st.sampled_from([GOODPUT, DELAY, LOSS]))
def test_harm_is_antisymmetric_and_bounded(before, after, metric):
    found = verdicts.harm(before, after, metric)
    assert -1 <= found <= 1
    assert verdicts.harm(after, before, metric) == pytest.approx(-found)


def test_the_interval_is_students():
    some = [0.21, 0.18, 0.26, 0.2, 0.24]
    found = verdicts.interval(some, 0.003)
    expected = stats.t.interval(1 - 2 * 0.003, 4, loc=sum(some) / 5, scale=stats.sem(some))
    assert (found.low, found.high) == pytest.approx(expected)
    assert found.n == 5


def test_values_without_chance_have_no_width_and_a_single_one_no_interval():
    assert verdicts.interval([0.3] * 4, 0.01) == Interval(0.3, 0.3, 0.3, 4)
    assert verdicts.interval([0.3], 0.01) == Interval(0.3, None, None, 1)
    assert verdicts.interval([0.3], 0.01, exact=True) == Interval(0.3, 0.3, 0.3, 1)


def at(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, low, high, 8)


@pytest.mark.parametrize(
    ("excess", "expected"),
    [
        ({"cubic": at(0.2, 0.3), "reno": at(0.15, 0.3)}, WORSE),
        ({"cubic": at(0.2, 0.3), "reno": at(0.05, 0.3)}, UNDECIDED),
        ({"cubic": at(0.2, 0.3), "reno": at(-0.1, 0.05)}, NO_WORSE),  # as harmful as Reno is: precedent
        ({"cubic": at(-0.5, 0.5)}, UNDECIDED),
        ({"cubic": Interval(0.5, None, None, 1)}, UNDECIDED),
        ({}, UNDECIDED),
    ],
)
def test_one_reference_is_precedent_and_all_must_be_exceeded(excess, expected):
    assert verdicts.verdict(excess) == expected


def test_excess_is_paired_and_relative_to_the_isolated_victim():
    alone = {1: 10.0, 2: 20.0, 3: 10.0}
    candidate = {1: 2.0, 2: 4.0, 3: None}
    found = verdicts.excesses(GOODPUT, candidate, {"cubic": {1: 5.0, 2: 12.0, 3: 5.0}}, alone)
    assert found["cubic"] == pytest.approx({1: 0.8 - 0.5, 2: 0.8 - 0.4})
    found = verdicts.excesses(GOODPUT, candidate, {"cubic": {1: 5.0, 2: 12.0, 3: 5.0}}, None)
    assert found["cubic"] == pytest.approx({1: 0.6, 2: 1 - 4 / 12})


def test_the_error_rate_of_both_verdicts_is_kept_at_the_margin():
    """Normal excess whose mean is the margin: either verdict is an error, at most twice the part of one look."""
    draw, looks, trials = random.Random(1), (4, 8), 4000
    wrong = 0
    for _ in range(trials):
        sample = [MARGIN + draw.gauss(0, 0.05) for _ in range(looks[-1])]
        risk = RISK / len(looks)
        wrong += any(verdicts.verdict({"cubic": verdicts.interval(sample[:n], risk)}) != UNDECIDED for n in looks)
    allowed = 2 * RISK
    assert wrong / trials < allowed + 4 * math.sqrt(allowed / trials)
    assert wrong > 0


@pytest.mark.parametrize("spread", [0.01, 0.05, 0.2])
def test_no_more_harmful_would_have_been_more_harmful_with_as_much_harm_above_the_margin(spread):
    """Power: the interval that is below the margin would show the same distance above it, so it is narrow enough."""
    draw, decided = random.Random(2), 0
    for _ in range(200):
        sample = [draw.gauss(0, spread) for _ in range(8)]
        found = verdicts.interval(sample, RISK / 2)
        if verdicts.verdict({"cubic": found}) == NO_WORSE:
            decided += 1
            mirrored = [2 * MARGIN - value for value in sample]
            assert verdicts.verdict({"cubic": verdicts.interval(mirrored, RISK / 2)}) == WORSE
            assert found.high is not None
            assert found.high <= MARGIN
    assert (decided == 200) == (spread < 0.05), "a wide spread leaves some undecided"


def finding(verdict: str, excess: dict[int, float], metric: str = GOODPUT) -> Finding:
    return Finding("packet", "case", "5.2.1", {"limit": "1bdp"}, "harm", metric, verdict, {}, {}, {"cubic": excess})


def test_changes_are_significant_differences_and_reversed_verdicts():
    before = [finding(NO_WORSE, {1: 0.0, 2: 0.01, 3: 0.02})]
    assert verdicts.changes(before, before) == []
    shifted = [finding(NO_WORSE, {1: 0.05, 2: 0.06, 3: 0.07})]  # by the same in each pair
    (change,) = verdicts.changes(before, shifted)
    assert change.is_significant
    assert change.difference is not None
    assert change.difference.mean == pytest.approx(0.05)
    (change,) = verdicts.changes(before, [finding(WORSE, {7: 0.4})])  # no pair
    assert not change.is_significant
    assert verdicts.changes(before, [finding(UNDECIDED, {7: 0.4})]) == []
    assert verdicts.changes(before, [finding(WORSE, {1: 0.9}, DELAY)]) == []


def test_a_finding_is_itself_after_json():
    found = Finding(
        "packet", "case", "5.2", {"limit": "1bdp"}, "harm", GOODPUT, WORSE,
        {"candidate": 1.0, "alone": None}, {"cubic": at(0.2, 0.3)}, {"cubic": {1: 0.25}},
    )  # fmt: skip
    assert Finding.from_dict(found.as_dict()) == found


def test_engines_agree_where_both_decide_the_same():
    from types import SimpleNamespace

    from ackclock.evaluate import dossier

    pairs = {GOODPUT: (WORSE, WORSE), DELAY: (WORSE, NO_WORSE), LOSS: (WORSE, UNDECIDED)}
    found = [
        Finding(engine, "case", "5.2.1", {}, "harm", metric, verdict, {}, {}, {})
        for metric, verdicts_ in pairs.items()
        for engine, verdict in zip(("packet", "linux"), verdicts_, strict=True)
    ]
    evaluation = SimpleNamespace(request=SimpleNamespace(engines=("packet", "linux")), findings=found)
    assert dossier.agreement(evaluation) == [["5.2.1", "linux and packet", "1", "1"]]


def test_a_difference_is_over_the_first_reference_of_the_later_evaluation_whatever_the_order_of_a_set():
    names = [f"reference-{number}" for number in range(20)]

    def seeds(shift: float) -> dict[str, dict[int, float]]:
        return {name: {1: at, 2: at} for at, name in ((shift * place, name) for place, name in enumerate(names))}

    old, new = replace(finding(NO_WORSE, {}), by_seed=seeds(0.0)), replace(finding(WORSE, {}), by_seed=seeds(0.01))
    for first in range(len(names)):
        ordered = {name: new.by_seed[name] for name in (*names[first:], *names[:first])}
        (change,) = verdicts.changes([old], [replace(new, by_seed=ordered)])
        assert change.difference is not None
        assert change.difference.mean == pytest.approx(0.01 * first)
