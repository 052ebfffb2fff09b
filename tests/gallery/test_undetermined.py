"""Undetermined verdicts: intervals that are too wide, and flows that stay in step."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from small_networks import dumbbell

from ackclock.experiments import phase_effects
from ackclock.gallery import AGREES, CONTRADICTS, DIFFERS, NOT_MEASURED, UNDETERMINED, Entry, Row, cases, runner

#: A mean of 10 with intervals that reach 0.4 and 12.7 (t of 1 degree of freedom) to either side.
NARROW, WIDE = (9.96, 10.04), (9.0, 11.0)


def row(values, agrees=(9, 11), differs=(5, 15), **more) -> Row:
    return Row("x", values, agrees, differs, **more)


def test_an_interval_from_what_agrees_to_what_contradicts_is_undetermined():
    assert row(NARROW).verdict == AGREES
    assert row(WIDE).verdict == UNDETERMINED
    assert row(WIDE).why("s") == "the interval reaches from 9 s to 11 s to beyond 5 s to 15 s"
    assert row((10.0,)).verdict == AGREES  # one run has no interval


@pytest.mark.parametrize("shift", [-6.5, 6.5])
def test_a_mean_that_contradicts_may_be_undetermined_too(shift):
    assert row(tuple(value + shift for value in WIDE)).verdict == UNDETERMINED
    assert row(tuple(value + shift for value in NARROW)).verdict == CONTRADICTS


def test_an_interval_within_one_kind_of_difference_is_not():
    assert row(WIDE, differs=(-10, 30)).verdict == AGREES  # reaches what differs, no further
    assert row(WIDE, agrees=(25, 30), differs=(9, 40)).verdict == DIFFERS  # reaches what contradicts, does not agree


def test_an_interval_is_cut_at_what_a_value_can_be():
    share = (0.95, 0.99)
    assert row(share, (0.9, 1), (0.6, 1)).verdict == AGREES
    assert row(share, (0.9, 1.1), (0.6, 1.1)).verdict == UNDETERMINED
    assert row((0.01, 0.05), (0, 0.1), (0, 0.5)).verdict == AGREES
    assert row((1.0, 1.2), (1, 1.25), (1, 3)).verdict == UNDETERMINED
    assert row((1.0, 1.2), (1, 1.25), (1, 3), limits=(1, inf)).verdict == AGREES


def test_a_perturbed_run_with_another_verdict_makes_it_undetermined():
    assert row((10.0,), perturbed=(10.5,)).verdict == AGREES
    assert row((10.0,), perturbed=(12.0,)).verdict == UNDETERMINED
    assert row((10.0,), perturbed=(None,)).verdict == AGREES
    assert row((None,), perturbed=(12.0,)).verdict == NOT_MEASURED
    told = "phase-locked: agrees here; differs, 12.0 s, where hosts take time for packets"
    assert row((10.0,), perturbed=(12.0,)).why("s") == told


ENTRY = {
    "README.md": "# In step\n",
    "scenario.toml": f"""
name = "in step"
duration = "2s"
{dumbbell("40Mbit", "20ms")}
access_rate = "10Mbit"
access_queue = {{ discipline = "pfifo", limit = "100p" }}
[tcp]
processing = "0s"
[[flows]]
count = 5
congestion = "reno"
""",
    "quick.toml": 'duration = "1s"\n',
    "published.csv": "claim,what,published,value,unit,where,how\nrate,goodput,1,1,,table 1,read\n",
    "check.py": """
from ackclock.gallery import Row
ENGINES = ("packet",)
MEASURES = {"noise": lambda view: 2.0 if view.data.manifest["plan"]["groups"][0]["tcp"]["processing"] else 1.0}
def check(measured, published):
    return [Row("rate", measured["all"]["noise"], (1, 1), (1, 3))]
""",
}


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    folder = tmp_path / "X1"
    folder.mkdir()
    for name, text in ENTRY.items():
        (folder / name).write_text(text)
    return Entry(folder)


def test_the_perturbed_run_of_a_prone_case_is_run_and_judged(entry, tmp_path):
    """The measure tells the twin from the case: hosts take time in it."""
    assert phase_effects.prone(cases.plans(entry.folder)["all"])
    (found,) = runner.run(entry, tmp_path / "out").rows
    assert (found.reproduced, found.verdict) == (1.0, UNDETERMINED)
    assert found.why.startswith("phase-locked: agrees here; differs, 2, where")
    assert (tmp_path / "out" / "noisy" / "packet" / "all" / "manifest.json").is_file()


def test_a_short_check_has_no_perturbed_run(entry, tmp_path):
    (found,) = runner.run(entry, tmp_path / "out", quick=True).rows
    assert found.verdict == AGREES
    assert not (tmp_path / "out" / "noisy").exists()


def test_a_case_that_is_not_prone_has_no_perturbed_run(entry, tmp_path):
    text = ENTRY["scenario.toml"].replace('"10Mbit"', '"11Mbit"')
    (entry.folder / "scenario.toml").write_text(text)
    (found,) = runner.run(replace(entry), tmp_path / "out").rows
    assert found.verdict == AGREES
