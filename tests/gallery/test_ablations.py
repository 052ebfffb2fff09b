"""Mechanisms: what is switched, which rows that moves, and how it is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.gallery.test_interpretations import FILES

from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.gallery import AGREES, CONTRADICTS, Entry, Row, ablation_runner, entries, find, page
from ackclock.gallery.cases import SWITCHED as TABLE
from ackclock.gallery.result import FULL, QUICK, Judged, Result
from ackclock.gallery.runner import TABLE as OWN

MECHANISMS = """
[[mechanism]]
name = "a faster link"
says = "The link limits the flow."
moves = ["rate"]
reading = "one way"
engines = ["packet"]
cases = ["reno"]
changes.network.rate = "10Mbit"
at.reno.flows = [{ congestion = "aimd" }]
"""


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    folder = tmp_path / "X1.2"
    folder.mkdir()
    for name, text in {**FILES, "mechanisms.toml": MECHANISMS}.items():
        (folder / name).write_text(text)
    check = FILES["check.py"].replace("def compare(measured", "def both(measured")
    (folder / "check.py").write_text(check)
    return Entry(folder)


def judged(mean: float, reading: str, engine: str = "packet") -> Judged:
    return Judged.of(Row("rate", (mean,), (0, 1), (0, 3)), engine, "", FULL, reading)


def test_a_mechanism_changes_the_cases_that_it_names_in_the_engines_that_it_names(entry):
    [mechanism] = entry.mechanisms
    assert ablation_runner.plans(entry, mechanism, "fluid") == {}
    [plan] = ablation_runner.plans(entry, mechanism, "packet").values()
    assert plan.links[0].rate_bps == 10e6
    assert plan.groups[0].congestion.kind == "aimd"


def test_a_run_gives_the_changed_rows_with_those_of_the_entry(entry, tmp_path):
    folder = ablation_runner.place(tmp_path / "results", entry)
    found = ablation_runner.run(entry, entry.switched(["all"]), folder, quick=True)
    assert [(row.engine, row.claim, row.reading, row.scale) for row in found.rows] == [
        ("packet", "rate", "a faster link", QUICK)
    ]
    assert Result.read(folder / TABLE, entry.id).rows == found.rows
    assert (folder / "a-faster-link" / "packet" / "reno").is_dir()
    assert "**a faster link**, read as: one way. The link limits the flow." in (folder / "page.md").read_text()


def test_an_entry_about_the_machine_is_given_the_changes(tmp_path):
    entry = find("B4.dd")
    [mechanism] = entry.mechanisms
    found = ablation_runner.run(entry, [mechanism], tmp_path / "out", quick=True)
    assert [(row.claim, row.at, row.engine) for row in found.rows] == [
        ("blocks", at, "host") for at in ("write", "read")
    ]
    [disk] = (tmp_path / "out").glob("*/host/all")
    assert sorted(set(Dataset.read(disk).frame("disk")["block_bytes"])) == mechanism.changes["blocks_bytes"]


def test_a_moved_row_shows_both_values_and_both_verdicts(entry):
    last = Result(entry.id, [judged(4, "one way", "fluid, packet"), judged(2, "both ways")])
    what, published, engine, before, now, verdict = page.moved(entry, last, "one way", judged(1, "a faster link"))
    assert (what, published, engine) == ("goodput", "5 Mb/s", "packet")
    assert (before, now) == ("4.00 bit/s", "1.00 bit/s")
    assert verdict == f"{CONTRADICTS} → {AGREES}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('moves = ["rate"]\n', "", "mechanism 1: moves: found nothing; expected words"),
        ('"one way"', '"no way"', 'mechanism 1: reading: found "no way"; expected one of'),
        ("changes.", "change.", 'mechanism 1: found the key "change"; expected of name'),
    ],
)
def test_a_mistake_is_one_line(entry, old, new, message):
    (entry.folder / "mechanisms.toml").write_text(MECHANISMS.replace(old, new))
    with pytest.raises(InputError, match=message):
        _ = entry.mechanisms


def test_a_missing_ablation_or_case_is_rejected(entry):
    with pytest.raises(InputError, match='--ablation: found "magic"; expected of X1.2 all, one of a faster link'):
        entry.switched(["magic"])
    (entry.folder / "mechanisms.toml").write_text(MECHANISMS.replace('cases = ["reno"]', 'cases = ["bbr"]'))
    with pytest.raises(InputError, match="cases: found 'bbr'; expected one of"):
        ablation_runner.plans(entry, Entry(entry.folder).mechanisms[0], "packet")


@pytest.mark.parametrize("entry", [each for each in entries() if each.mechanisms], ids=lambda entry: entry.id)
def test_every_mechanism_of_the_gallery_can_be_run_and_moves_rows_of_its_entry(entry):
    rows = {row.claim for row in Result.last(entry.folder / OWN, entry.id).rows}
    for mechanism in entry.mechanisms:
        assert entry.examine or any(ablation_runner.plans(entry, mechanism, engine) for engine in entry.engines)
        assert set(mechanism.moves) <= rows
    shown = Result.last(entry.folder / TABLE, entry.id)
    assert set(shown.readings) <= {mechanism.name for mechanism in entry.mechanisms}
