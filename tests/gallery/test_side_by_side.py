"""Cases of entries whose runs leave places free go side by side, and their results do not show it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ackclock import engines, gallery
from ackclock.gallery import cases
from ackclock.gallery.runner import How


@pytest.fixture
def entry():
    """Two engines, and one seed where it is quick."""
    return gallery.find("B2.7")


def contents(folder):
    """Every file's bytes; of manifests all but when they were written, and their sums."""
    files = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    told = {name: json.loads(path.read_text()) for name, path in files.items() if path.name == "manifest.json"}
    for each in told.values():
        del each["created"]
        del each["sha256"]
        for name in told.keys() & each["files"].keys():
            del each["files"][name]
    return {name: path.read_bytes() for name, path in files.items() if name not in told}, told


def test_results_do_not_depend_on_how_many_cases_go_at_a_time(entry, tmp_path):
    one, three = tmp_path / "one", tmp_path / "three"
    gallery.run(entry, one, quick=True, jobs=1)
    told = []
    gallery.run(entry, three, quick=True, jobs=3, progress=told.append)
    assert contents(one) == contents(three)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1)


@pytest.mark.parametrize(("jobs", "seeds", "at_a_time"), [(1, 1, 1), (4, 1, 4), (4, 2, 2), (4, 3, 1), (2, 10, 1)])
def test_as_many_cases_as_their_seeds_leave_places_for(entry, jobs, seeds, at_a_time):
    every = [replace(plan, seeds=tuple(range(seeds))) for plan in cases.plans(entry.folder).values()]
    assert How(jobs, None, "", perturbed=False).at_a_time("packet", every) == at_a_time


def test_an_engine_that_has_the_machine_to_itself_runs_one_case_at_a_time(entry, monkeypatch):
    monkeypatch.setattr(engines.engine("packet").__class__, "exclusive", lambda self, plan: True)
    assert How(4, None, "", perturbed=False).at_a_time("packet", cases.plans(entry.folder).values()) == 1


def test_a_case_that_fails_ends_the_others_and_leaves_nothing(entry, tmp_path, monkeypatch):
    run = engines.engine("packet").__class__.run

    def fails(self, plan, seed, options=None):
        if plan == failing:
            raise MemoryError("no more")
        return run(self, plan, seed, options)

    failing = [*cases.plans(entry.folder, engine="packet", quick=True).values()][1]
    monkeypatch.setattr(engines.engine("packet").__class__, "run", fails)
    with pytest.raises(MemoryError):
        gallery.run(entry, tmp_path / "result", quick=True, jobs=2)
    assert list(tmp_path.iterdir()) == []
