"""Every entry runs, and the committed pages are what the committed results give."""

from __future__ import annotations

import importlib.util
import os
import warnings
from pathlib import Path

import pytest

from ackclock import engines
from ackclock.campaigns import reproduce
from ackclock.campaigns.reproduce import cases
from ackclock.campaigns.reproduce.result import FULL, QUICK, Result
from ackclock.campaigns.reproduce.work import TABLE

ROOT = Path(__file__).parents[3]
GALLERY = ROOT / "docs" / "gallery"
ENTRIES = reproduce.entries()
every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)


def make_gallery():
    spec = importlib.util.spec_from_file_location("make_gallery", ROOT / "docs" / "make_gallery.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def keys(rows):
    return [(row.engine, row.claim, row.at) for row in rows]


def of_kernel(entry, key):
    """Whether a row is the kernel's, or may set it beside others."""
    return "linux" in entry.engines and (key[0] == "linux" or "," in key[0])


@every_entry
def test_a_quick_run_has_the_rows_of_the_committed_result(entry, tmp_path, request):
    """A quick run may leave out some of the kernel's rows. Without a guest they are skipped by name."""
    lacks_guest = "linux" in entry.engines and engines.lacking("linux")
    if lacks_guest and os.environ.get("CI"):
        request.getfixturevalue("guest_kernel")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is run without the engine")
        result = reproduce.run(entry, tmp_path / entry.id, quick=True)
    committed = Result.read(entry.folder / TABLE, entry.id)
    found, every = keys(result.rows), keys(committed.rows)
    assert [key for key in found if not of_kernel(entry, key)] == [key for key in every if not of_kernel(entry, key)]
    assert {row.scale for row in result.rows} == {QUICK}
    assert {row.scale for row in committed.rows} == {FULL}
    assert (tmp_path / entry.id / "figure.png").stat().st_size > 1000
    if lacks_guest:
        request.getfixturevalue("guest_kernel")
    assert set(found) <= set(every)
    assert {key[0] for key in found} == {key[0] for key in every}


@every_entry
def test_every_published_claim_is_judged(entry):
    committed = Result.read(entry.folder / TABLE, entry.id)
    assert {row.claim for row in committed.rows} == set(entry.published)


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.engines], ids=lambda entry: entry.id)
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
