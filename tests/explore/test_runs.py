"""Results for the page: pictures of a plan's runs, numbers, models, and limits."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ackclock as ac
from ackclock import metrics
from ackclock.errors import InputError, ScenarioError, UnsupportedError
from ackclock.explore import runs

SMALL = """
duration = "4s"
warmup = "1s"
repeats = {repeats}
network = {{ topology = "dumbbell", rate = "10Mbit", rtt = "20ms", queue = {{ discipline = "pfifo", limit = "1bdp" }} }}
[[flows]]
count = {count}
congestion = "cubic"
start = {{ jitter = "100ms" }}
[[flows]]
name = "second"
congestion = "{second}"
"""


def small(repeats: int = 1, count: int = 2, second: str = "reno") -> str:
    return SMALL.format(repeats=repeats, count=count, second=second)


def parts(text: str, **options: bool) -> dict[str, dict]:
    """The last part of each kind."""
    return {part["part"]: part for part in runs.parts(runs.prepared(text), **options)}


def test_the_numbers_are_those_of_a_run():
    numbers = parts(small(repeats=2))["numbers"]
    expected = ac.run(small(repeats=2)).metrics()["summary"]
    assert numbers["values"]["goodput_bps"] == expected["goodput_bps"]["mean"] > 5e6
    assert numbers["values"] == {name: expected[name]["mean"] for name in numbers["values"]}
    assert [row[0] for row in numbers["groups"]["rows"]] == ["cubic", "second"]


def test_the_same_request_gives_the_same_parts():
    one, other = (list(runs.parts(runs.prepared(small(repeats=3)), models=True)) for _ in range(2))
    assert json.dumps(one, allow_nan=False) == json.dumps(other, allow_nan=False)


def test_a_picture_has_the_runs_own_samples():
    data = ac.run(small())
    picture = parts(small())["picture"]
    view = next(metrics.runs(data))
    assert len(picture["cwnd"]["lines"]) == 3
    samples = data.flow_samples.filter(flow=0)
    expected = dict(zip(np.round(samples["time_s"], 5).tolist(), samples["cwnd"].to_list(), strict=True))
    drawn = dict(zip(picture["cwnd"]["t"], picture["cwnd"]["lines"][0]["y"], strict=True))
    assert {t: y for t, y in drawn.items() if y is not None} == pytest.approx(expected, abs=0.05)
    assert len(drawn) == 401 > len(expected) > 390
    assert sum(picture["events"]["drop"]) == view.events("drop")["time_s"].size > 0
    peak_s = data.queue_samples["sojourn_s"].max()
    assert max(picture["queue"]["y"]) == pytest.approx(1e3 * peak_s, rel=1e-3)


def test_goodput_of_groups_adds_up_to_what_was_delivered():
    goodput = parts(small())["picture"]["goodput"]
    late = [n for n, t in enumerate(goodput["t"]) if t > 1]
    mean = sum(np.mean([group["y"][n] for n in late]) for group in goodput["groups"])
    assert mean == pytest.approx(parts(small())["numbers"]["values"]["goodput_bps"] / 1e6, rel=0.05)
    assert goodput["rate"] == 10


def test_several_seeds_are_a_band_around_their_mean():
    assert "low" not in parts(small())["picture"]["queue"]
    picture = parts(small(repeats=4))["picture"]
    for band in (picture["queue"], *picture["goodput"]["groups"]):
        low, mean, high = (np.array(band[key]) for key in ("low", "y", "high"))
        assert (low <= mean).all()
        assert (mean <= high).all()
        assert (low < high).any()


def test_more_flows_than_lines_leave_each_group_a_line():
    cwnd = parts(small(count=30))["picture"]["cwnd"]
    assert cwnd["flows"] == 31
    assert len(cwnd["lines"]) == 12
    assert {line["group"] for line in cwnd["lines"]} == {"cubic", "second"}


def test_a_long_run_is_drawn_progressively_and_its_beginnings_are_its_own():
    text = small().replace("10Mbit", "2Gbit")
    pictures = [part for part in runs.parts(runs.prepared(text)) if part["part"] == "picture"]
    until_s = [picture["until_s"] for picture in pictures]
    assert len(until_s) >= 2
    assert until_s == sorted(set(until_s))
    assert until_s[-1] == 4 == pictures[0]["duration_s"]
    assert until_s[:-1] == [4 / 16, 4 / 4]
    for picture in pictures[:-1]:
        bins = int(picture["until_s"] / picture["events"]["width_s"])
        assert picture["events"]["drop"][:bins] == pictures[-1]["events"]["drop"][:bins]


def test_of_several_seeds_the_first_is_drawn_first():
    text = small(repeats=3).replace("10Mbit", "100Mbit").replace('"4s"', '"12s"')
    pictures = [part for part in runs.parts(runs.prepared(text)) if part["part"] == "picture"]
    assert [(picture["seeds"], picture["until_s"]) for picture in pictures] == [(1, 12), (3, 12)]
    assert pictures[0]["cwnd"] == pictures[1]["cwnd"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("10Mbit", "1Tbit", "packets"),
        ('"4s"', '"700h"', "samples"),
        ("count = 2", "count = 600", "flows"),
        ("repeats = 1", "repeats = 21", "seeds"),
    ],
)
def test_too_large_a_run_is_rejected_in_a_sentence(old, new, words):
    with pytest.raises(
        InputError, match=rf"found a run of up to [\d,]+ {words}.*; expected at most [\d,]+ on this page"
    ):
        runs.prepared(small().replace(old, new).replace('"10Mbit"', '"1kbit"' if words == "samples" else '"10Mbit"'))


def test_files_that_are_no_scenario_of_the_page():
    with pytest.raises(ScenarioError, match="ackclock sweep"):
        runs.prepared(small() + '\n[sweep]\n"network.rate" = ["1Mbit", "2Mbit"]\n')
    with pytest.raises(UnsupportedError, match="packet"):
        runs.prepared(small(second="nv"))


def test_no_file_is_read_for_a_text(tmp_path):
    (tmp_path / "trace.csv").write_text("0,1\n1,2\n")
    text = small().replace('rate = "10Mbit"', f'rate = {{ trace = "{tmp_path}/trace.csv" }}')
    with pytest.raises(ScenarioError, match="trace"):
        runs.prepared(text)


def test_models_that_do_not_apply_give_the_reason():
    fluid, theory = parts(small(), models=True)["models"]["models"]
    assert (fluid["engine"], fluid["why"]) == ("fluid", "")
    assert fluid["picture"]["until_s"] == 4
    assert fluid["metrics"]
    assert theory["picture"] is None
    assert "theory" in theory["why"]


def test_what_the_progress_raises_ends_the_run():
    class EndedError(Exception):
        pass

    def end(_: float) -> None:
        raise EndedError

    with pytest.raises(EndedError):
        list(runs.parts(runs.prepared(small()), end))


@pytest.mark.parametrize("digits", [3, 4])
def test_numbers_for_json_are_rounded_and_not_finite_ones_null(digits):
    given = np.array([np.nan, 123.456789, 0.0, -1e-9, np.inf])
    found = runs.listed(given, digits)
    assert found[0] is found[4] is None
    assert found[1] == pytest.approx(123.456789, abs=0.5 * 10 ** (3 - digits))
    assert found[2:4] == [0, 0]
    assert runs.listed(np.array([])) == []
