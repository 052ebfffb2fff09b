"""Effects of a sweep's keys, of tables whose answer is known, and how they are told."""

from __future__ import annotations

import json
import random
from itertools import product
from pathlib import Path

import polars as pl
import pytest

import ackclock as ac
from ackclock.experiments.effects import effects, sentences
from ackclock.experiments.sweep.result import Sweep
from ackclock.scenario.points import Axis

LIMIT, RTT, FLOWS = "network.queue.limit", "network.rtt", "flows[0].count"


def swept(function, values, seeds=(1, 2, 3), metric="queue_delay_mean_s") -> Sweep:
    """A finished sweep whose runs have `function(place of each value, seed)`."""
    axes = tuple(
        Axis(key, tuple(key.split(".")), ("sweep", key), tuple(of), tuple(range(len(of)))) for key, of in values.items()
    )
    places = list(product(*(range(len(of)) for of in values.values())))
    rows = [
        {"run": point * len(seeds) + number, "point": point, "seed": seed}
        | {axis.key: axis.values[at] for axis, at in zip(axes, place, strict=True)}
        | {metric: function(*place, seed)}
        for point, place in enumerate(places)
        for number, seed in enumerate(seeds)
    ]
    manifest = {"name": "known", "sweep": {"engine": "packet", "metrics": [metric]}}
    return Sweep(Path("known"), manifest, axes, pl.DataFrame(rows))


VALUES = {LIMIT: ["0.1bdp", "0.3bdp", "1bdp"], RTT: ["10ms", "20ms"], FLOWS: [1, 2]}


def noise(*of) -> float:
    """Return noise of standard deviation 1, the same for the same numbers."""
    return random.Random(repr(of)).gauss()


def two_keys(limit, rtt, flows, seed) -> float:
    """The limit's sum of squares is 100 · 2/3 for each run, that of the RTT 4 · 1/4: 98.5 and 1.5 %."""
    return 1e-3 * (10 * limit + 2 * rtt + 0.01 * noise(limit, rtt, flows, seed))


def a_pair(limit, rtt, flows, seed) -> float:
    """Return a metric on which the RTT's effect has the other sign with two flows."""
    return 1e-3 * (5 * (1 - 2 * rtt) * (1 - 2 * flows) + 0.1 * noise(limit, rtt, flows, seed))


def test_the_key_with_the_largest_effect_is_named_first():
    found = effects(swept(two_keys, VALUES), "queue_delay_mean")
    said = sentences(found)
    assert said[0].startswith("Mean queueing delay: limit matters most (99 % of the differences). From 0.1bdp to 1bdp ")
    assert said[0].endswith("the mean changes by +20.0 ± 0.0 ms.")
    assert said[1].startswith("rtt (1.5 %): from 10ms to 20ms the mean changes by +")
    assert found.analysis.steps[1].effect == pytest.approx(2e-3, rel=0.01)
    assert said[2] == "No clear effect: count."
    assert said[-1] == (
        "Intervals come from the repeats of each point, of which the same seeds are compared with each other."
    )


def test_a_pair_with_an_interaction():
    found = effects(swept(a_pair, VALUES), "queue_delay_mean_s")
    said = sentences(found)
    assert said[0].startswith("Mean queueing delay: rtt × count matters most (")
    assert said[0].endswith("what one of the two does depends on the other.")
    (idle,) = [sentence for sentence in said if sentence.startswith("No clear effect: ")]
    assert sorted(idle.removeprefix("No clear effect: ").rstrip(".").split(", ")) == ["count", "limit", "rtt"]


def test_nothing_is_made_of_noise():
    found = effects(swept(lambda *at: 1e-3 * noise(*at), VALUES), "queue_delay_mean_s")
    assert sentences(found)[0] == "Mean queueing delay: no key has a clear effect."


def test_what_all_points_have_in_common_with_a_seed_is_no_noise():
    def of(limit, rtt, flows, seed):
        return 1e-3 * (limit + 100 * seed + 0.1 * noise(limit, rtt, flows, seed))

    found = effects(swept(of, VALUES), "queue_delay_mean_s")
    assert found.seeds
    assert found.clear(found.terms[0])
    assert found.named(found.terms[0]) == "limit"


def test_shares_are_in_percentage_points_and_runs_without_a_value_are_counted():
    def of(limit, rtt, flows, seed):
        return (
            None if (limit, rtt, flows, seed) == (0, 0, 0, 1) else 0.1 * limit + 1e-4 * noise(limit, rtt, flows, seed)
        )

    said = sentences(effects(swept(of, VALUES, metric="utilisation"), "utilisation"))
    assert "percentage points" in said[0]
    assert said[-1].endswith("1 of 36 runs have no value.")


def test_without_repeats_the_assumption_is_stated():
    found = effects(swept(lambda *at: 1e-3 * (at[0] + 0.01 * noise(*at)), VALUES, seeds=(1,)), "queue_delay_mean_s")
    assert sentences(found)[-1].startswith("There are no repeats: intervals assume")
    assert found.analysis.error == "model"


def test_the_json_has_the_values_of_the_text():
    found = effects(swept(lambda limit, *rest: 1e-3 * (limit + 0.01 * noise(limit, *rest)), VALUES), "queue_delay_mean")
    told = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    first = told["effects"][0]
    assert (first["keys"], first["from"], first["to"], first["clear"]) == ([LIMIT], "0.1bdp", "1bdp", True)
    assert first["ci95_low"] < 2e-3 < first["ci95_high"]
    assert sum(effect["share"] for effect in told["effects"]) <= 1 + 1e-9


@pytest.mark.parametrize(
    ("values", "metric", "message"),
    [
        ({LIMIT: ["1bdp"]}, "queue_delay_mean_s", "known: found one point; expected a sweep of two or more"),
        (VALUES, "jain", "--metric: found jain, which this sweep does not have; expected queue_delay_mean_s"),
        (VALUES, "jian", '--metric: found "jian"; expected "jain"'),
    ],
)
def test_a_sweep_without_effects_is_rejected(values, metric, message):
    with pytest.raises(ac.InputError) as refused:
        effects(swept(noise, values), metric)
    assert str(refused.value) == message


def test_a_metric_without_values_is_rejected():
    with pytest.raises(
        ac.InputError, match=r"found no run with a value of queue_delay_mean_s; expected another metric"
    ):
        effects(swept(lambda *at: None, VALUES), "queue_delay_mean_s")
