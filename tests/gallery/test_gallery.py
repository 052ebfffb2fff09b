"""Every entry runs, and the committed pages are what the committed results give."""

from __future__ import annotations

import importlib.util
import os
import shutil
import warnings
from pathlib import Path

import pytest

from ackclock import engines, gallery
from ackclock.gallery import cases
from ackclock.gallery.result import FULL, QUICK, Result
from ackclock.gallery.runner import TABLE, run

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "docs" / "gallery"
ENTRIES = gallery.entries()
every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)


def make_gallery():
    spec = importlib.util.spec_from_file_location("make_gallery", ROOT / "docs" / "make_gallery.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def keys(rows):
    return [(row.engine, row.claim, row.at, row.reading) for row in rows]


#: Engines that a machine may lack.
FOREIGN = ("linux", "ns2")


def of_others(entry, key):
    """Return True if a row is of an engine that may be missing, or may compare it with others."""
    foreign = [engine for engine in FOREIGN if engine in entry.engines]
    return bool(foreign) and (key[0] in foreign or "," in key[0])


def left_out(entry):
    """Return the engines that run no case of an entry in a quick run."""
    names = cases.plans(entry.folder) if entry.engines else ()
    return {engine for engine in entry.engines if not any(entry.runs(engine, case, quick=True) for case in names)}


@every_entry
def test_a_quick_run_has_the_rows_of_the_committed_result(entry, tmp_path, request):
    """It may leave out some rows of the kernel and of ns-2. Without a guest the kernel's are skipped by name."""
    lacks_guest = "linux" in entry.engines and engines.unavailable("linux")
    if lacks_guest and os.environ.get("CI"):
        request.getfixturevalue("guest_kernel")
    committed = Result.last(entry.folder / TABLE, entry.id)
    measured = entry.read_as(committed.readings)  # no reading that was never run at full scale
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is run without the engine")
        result = gallery.run(measured, tmp_path / entry.id, quick=True, jobs=1)  # tests go side by side
    assert {row.scale for row in result.rows} == {QUICK}
    if not committed.rows:
        assert {row.claim for row in result.rows} == set(entry.published)
        return
    found, every = keys(result.rows), keys(committed.rows)
    assert [key for key in found if not of_others(entry, key)] == [key for key in every if not of_others(entry, key)]
    assert {row.scale for row in committed.rows} == {FULL}
    assert (tmp_path / entry.id / "figure.png").stat().st_size > 1000
    if lacks_guest:
        request.getfixturevalue("guest_kernel")
    assert set(found) <= set(every)
    there = {key[0] for key in every if "," not in key[0] or not any(map(engines.unavailable, key[0].split(", ")))}
    assert {key[0] for key in found} == {label for label in there if not left_out(entry) & {*label.split(", ")}}


@every_entry
def test_every_published_claim_is_judged(entry):
    committed = Result.last(entry.folder / TABLE, entry.id)
    assert {row.claim for row in committed.rows} in (set(entry.published), set())  # not run yet: none


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.engines], ids=lambda entry: entry.id)
def test_the_scales_have_the_same_cases(entry):
    full, quick = cases.plans(entry.folder), cases.plans(entry.folder, quick=True)
    assert full.keys() == quick.keys()
    assert all(quick[name].duration_s * len(quick[name].seeds) < full[name].duration_s * len(full[name].seeds)
               for name in full)  # fmt: skip


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.readings.every], ids=lambda entry: entry.id)
def test_each_reading_changes_what_is_run(entry):
    first, *others = (cases.plans(entry.folder, reading=reading) for reading in entry.readings.every)
    assert all(other != first for other in others)


def test_the_pages_are_those_of_the_results():
    made = make_gallery().pages(ENTRIES)
    assert {name: (GALLERY / name).read_text("utf-8") for name in made} == made
    assert {path.name for path in GALLERY.glob("*.md")} == set(made)
    run = [entry for entry in ENTRIES if (entry.folder / TABLE).is_file()]
    figures = {name for entry in run for name in make_gallery().figures(entry)}
    assert {path.name for path in GALLERY.glob("*.png")} == figures


def test_results_of_some_engines_join_those_of_the_others(tmp_path, monkeypatch):
    module, entry = make_gallery(), gallery.find("B5.21")
    monkeypatch.setattr(module, "GALLERY", tmp_path)
    copy = tmp_path / "reproductions" / entry.id
    shutil.copytree(entry.folder, copy)
    new = tmp_path / "new"
    (new / "ns2").mkdir(parents=True)
    before = Result.read(entry.folder / TABLE, entry.id)
    Result(entry.id, [row for row in before.rows if row.engine == "ns2"]).write(new / TABLE)
    (new / "figure.png").write_bytes(b"drawn")
    (new / "manifest.json").write_text('{"reproduction": {"engines": ["ns2"]}}')
    module.take(gallery.Entry(copy), new)
    assert Result.read(copy / TABLE, entry.id) == before
    assert module.figures(gallery.Entry(copy)) == [f"{entry.id}.png", f"{entry.id}-ns2.png"]


def test_without_an_engine_no_comparison_is_made(tmp_path):
    """B2.6 has rows and a figure that set theory and packets beside each other."""
    found = run(gallery.find("B2.6").with_engines(["theory"]), tmp_path / "out", quick=True)
    assert found.rows and {each.engine for each in found.rows} == {"theory"}
    assert (tmp_path / "out" / "figure.png").exists()


def test_results_of_some_interpretations_join_those_of_the_others(tmp_path, monkeypatch):
    module, entry = make_gallery(), gallery.find("B5.13")
    monkeypatch.setattr(module, "GALLERY", tmp_path)
    copy = tmp_path / "reproductions" / entry.id
    shutil.copytree(entry.folder, copy)
    new = tmp_path / "new"
    new.mkdir()
    before = Result.read(entry.folder / TABLE, entry.id)
    Result(entry.id, [row for row in before.rows if row.reading == "kernel of 2014"]).write(new / TABLE)
    (new / "figure.png").write_bytes(b"drawn")
    (new / "manifest.json").write_text('{"reproduction": {"engines": ["packet"], "readings": ["kernel of 2014"]}}')
    (copy / TABLE).unlink()
    module.take(gallery.Entry(copy), new)
    assert Result.read(copy / TABLE, entry.id).readings == ["kernel of 2014"]
    assert module.figures(gallery.Entry(copy)) == [f"{entry.id}-packet-kernel-of-2014.png"]
    (tmp_path / f"{entry.id}.png").write_bytes(b"whole")
    assert module.figures(gallery.Entry(copy)) == [f"{entry.id}.png", f"{entry.id}-packet-kernel-of-2014.png"]
