"""Every entry runs, and the committed pages are what the committed results give."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from ackclock import reproduce
from ackclock.reproduce import cases
from ackclock.reproduce.result import FULL, QUICK, Result
from ackclock.reproduce.work import TABLE

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "docs" / "gallery"
ENTRIES = reproduce.entries()
every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)


def make_gallery():
    spec = importlib.util.spec_from_file_location("make_gallery", ROOT / "docs" / "make_gallery.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@every_entry
def test_a_quick_run_has_the_rows_of_the_committed_result(entry, tmp_path):
    result = reproduce.run(entry, tmp_path / entry.id, quick=True)
    committed = Result.read(entry.folder / TABLE, entry.id)
    assert [(row.engine, row.claim, row.at) for row in result.rows] == [
        (row.engine, row.claim, row.at) for row in committed.rows
    ]
    assert {row.scale for row in result.rows} == {QUICK}
    assert {row.scale for row in committed.rows} == {FULL}
    assert (tmp_path / entry.id / "figure.png").stat().st_size > 1000


@every_entry
def test_every_published_claim_is_judged(entry):
    committed = Result.read(entry.folder / TABLE, entry.id)
    assert {row.claim for row in committed.rows} == set(entry.published)


@every_entry
def test_the_scales_have_the_same_cases(entry):
    full, quick = cases.plans(entry.folder), cases.plans(entry.folder, quick=True)
    assert full.keys() == quick.keys()
    assert all(quick[name].duration_s * len(quick[name].seeds) < full[name].duration_s * len(full[name].seeds)
               for name in full)  # fmt: skip


def test_the_pages_are_those_of_the_results():
    made = make_gallery().pages(ENTRIES)
    assert {name: (GALLERY / name).read_text("utf-8") for name in made} == made
    assert {path.name for path in GALLERY.glob("*.md")} == set(made)
    assert {path.stem for path in GALLERY.glob("*.png")} == {entry.id for entry in ENTRIES}
