"""The dossiers in the documentation: what is kept of an evaluation, and that the pages are made from it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import claims  # noqa: E402 (it is no package)
import make_dossiers  # noqa: E402

from ackclock.evaluate.verdicts import NO_WORSE, UNDECIDED, WORSE  # noqa: E402


def interval(mean: float) -> dict[str, float | int]:
    return {"mean": mean, "low": mean - 0.05, "high": mean + 0.05, "n": 4}


def finding(verdict: str, kind: str = "harm", **more: object) -> dict[str, object]:
    return {
        "engine": "packet", "case": "a", "section": "5.1.3", "point": {"limit": "1bdp"}, "kind": kind,
        "metric": "loss_rate", "verdict": verdict, "values": {"candidate": 0.0123784, "cubic": 0.001, "reno": None},
        "excess": {"cubic": interval(0.7), "reno": interval(0.5)}, "by_seed": {"cubic": {"1": 0.7}},
    } | more  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An evaluation of an algorithm `mine`, and an empty folder of dossiers."""
    content = {
        "ackclock": "0.1.0", "candidate": "mine", "references": ["cubic", "reno"], "engines": ["packet"],
        "seeds": {"first": 1, "looks": [4, 8]}, "cases": [{"name": "a", "title": "Small buffers"}], "unsupported": [],
        "not_covered": {"7.10": "no engine has it", "7.11": "not selected"},
        "findings": [finding(WORSE), finding(UNDECIDED), finding(WORSE, "performance")],
    }  # fmt: skip
    made = tmp_path / "mine"
    made.mkdir()
    (made / "dossier.json").write_text(json.dumps(content))
    monkeypatch.setattr(make_dossiers, "FOLDER", tmp_path / "kept")
    monkeypatch.setattr(make_dossiers, "AGREEMENT", tmp_path / "kept" / "agreement.json")
    (tmp_path / "kept").mkdir()
    return made


def test_the_kept_record_has_rounded_values_and_the_smallest_excess(folder):
    make_dossiers.keep(folder)
    record = make_dossiers.read("mine")
    assert (record.candidate, record.sizes, record.is_quick) == ("mine", (4, 8), True)
    first = record.findings[0]
    assert first.values == {"candidate": 0.01238, "cubic": 0.001, "reno": None}
    assert first.smallest is not None
    assert (first.smallest.mean, first.smallest.n) == (0.5, 4)
    assert first.by_seed == {}


def test_the_page_counts_verdicts_and_lists_findings(folder):
    make_dossiers.keep(folder)
    record = make_dossiers.read("mine")
    page = make_dossiers.page(record, {"title": "Mine", "summary": "My own.", "module": "mine.py"})
    assert "`ackclock evaluate mine --module mine.py --quick`" in page
    assert page.endswith("## Not covered\n\n- 7.10 Multipath transport: no engine has multipath transport\n")
    (row,) = claims.rows(page, "## Scorecard")
    assert [row[head] for head in ("more harmful", "no more harmful", "undecided")] == ["1", "0", "1"]
    assert row["worse performance"] == "1 of 1"
    assert "| limit 1bdp | Loss rate at the bottleneck | 1.24 % | 0.100 % |  | +50 % (+45 to +55) | worse |" in page
    assert "| 5.1.3 | Protection against high packet loss | 1 of 2 |" in make_dossiers.index_page([record])


def test_of_two_engines_the_agreement_is_kept(folder):
    path = folder / "dossier.json"
    content = json.loads(path.read_text())
    verdicts = {"a": (WORSE, WORSE), "b": (WORSE, NO_WORSE), "c": (NO_WORSE, NO_WORSE), "d": (UNDECIDED, WORSE)}
    content["findings"] = [
        finding(verdict, case=case, engine=engine)
        for case, pair in verdicts.items()
        for engine, verdict in zip(("packet", "linux"), pair, strict=True)
    ]
    path.write_text(json.dumps({**content, "engines": ["packet", "linux"]}))
    make_dossiers.keep(folder)
    assert "| mine | 5.1.3 | 2 | 1 |" in make_dossiers.index_page([])


def test_a_dossier_with_other_yardsticks_is_not_taken(folder):
    path = folder / "dossier.json"
    path.write_text(path.read_text().replace('["cubic", "reno"]', '["bbr", "reno"]'))
    with pytest.raises(SystemExit, match="expected an evaluation against cubic and reno"):
        make_dossiers.keep(folder)


def test_the_pages_are_those_of_the_kept_records():
    made = make_dossiers.pages()
    assert len(made) > 7
    for name, text in made.items():
        assert (make_dossiers.FOLDER / name).read_text(encoding="utf-8") == text
    assert {path.name for path in make_dossiers.FOLDER.glob("*.md")} == made.keys()
